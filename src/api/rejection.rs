//! What a producer is told of the records that its topic did not take, in Kafka's words (KIP-467): it fails these with
//! their causes, and the others of the batch as their companions.
//!
//! Kafka: `LogValidator.processRecordErrors`.

use model::{ErrorCode, TopicPartition};
use protocol::StrBytes;
use protocol::messages::produce_response::BatchIndexAndErrorMessage;
use replication::{RejectedRecord, RejectedRecords, RejectionCause};

/// The message as a whole repeats only so many.
const REPEATED_MAX: usize = 3;

/// The message for the batch, and those for its records.
pub(crate) fn lower(
    code: ErrorCode,
    rejected: &RejectedRecords,
    partition: &TopicPartition,
) -> (String, Vec<BatchIndexAndErrorMessage>) {
    let records = rejected.first.iter().map(|record| lower_record(record, partition));
    (message(code, rejected, partition), records.collect())
}

fn lower_record(record: &RejectedRecord, partition: &TopicPartition) -> BatchIndexAndErrorMessage {
    BatchIndexAndErrorMessage::default()
        .with_batch_index(record.index)
        .with_batch_index_error_message(Some(StrBytes::from_string(cause(record, partition))))
}

fn message(code: ErrorCode, rejected: &RejectedRecords, partition: &TopicPartition) -> String {
    if code == ErrorCode::InvalidTimestamp {
        return "One or more records have been rejected due to invalid timestamp".to_owned();
    }
    let first = rejected.first.iter().take(REPEATED_MAX);
    let first: Vec<_> = first
        .map(|record| {
            format!("RecordError(batchIndex={}, message='{}')", record.index, cause(record, partition))
        })
        .collect();
    format!(
        "One or more records have been rejected due to {} record errors in total, and only showing the first three errors \
         at most: [{}]",
        rejected.count,
        first.join(", ")
    )
}

fn cause(record: &RejectedRecord, partition: &TopicPartition) -> String {
    match record.cause {
        RejectionCause::NoKey => {
            format!("Compacted topic cannot accept message without key in topic partition {partition}")
        }
        RejectionCause::Timestamp { timestamp, oldest, newest } => format!(
            "Timestamp {} of message with offset {} is out of range. The timestamp should be within [{}, {}]",
            timestamp.0, record.index, oldest.0, newest.0
        ),
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;

    use super::*;

    fn rejected(cause: RejectionCause) -> RejectedRecords {
        let record = |index| RejectedRecord { index, cause };
        RejectedRecords { count: 4, first: (1..5).map(record).collect() }
    }

    #[test]
    fn records_without_keys_are_all_named_and_three_of_them_in_the_message() {
        let partition = TopicPartition { topic: "t".into(), partition: 0 };
        let (message, records) =
            lower(ErrorCode::InvalidRecord, &rejected(RejectionCause::NoKey), &partition);
        let cause = "Compacted topic cannot accept message without key in topic partition t-0";
        assert_eq!(
            message,
            format!(
                "One or more records have been rejected due to 4 record errors in total, and only showing the first \
                 three errors at most: [RecordError(batchIndex=1, message='{cause}'), \
                 RecordError(batchIndex=2, message='{cause}'), RecordError(batchIndex=3, message='{cause}')]"
            )
        );
        let told: Vec<_> = records.iter().map(|record| record.batch_index).collect();
        assert_eq!(told, [1, 2, 3, 4]);
        assert_eq!(records[0].batch_index_error_message.as_deref(), Some(cause));
    }

    #[test]
    fn a_wrong_time_is_told_with_its_bounds() {
        let time = |ms| Timestamp(ms);
        let cause = RejectionCause::Timestamp { timestamp: time(9), oldest: time(-5), newest: time(8) };
        let (message, records) = lower(
            ErrorCode::InvalidTimestamp,
            &rejected(cause),
            &TopicPartition { topic: "t".into(), partition: 0 },
        );
        assert_eq!(message, "One or more records have been rejected due to invalid timestamp");
        assert_eq!(
            records[0].batch_index_error_message.as_deref(),
            Some(
                "Timestamp 9 of message with offset 1 is out of range. The timestamp should be within [-5, 8]"
            )
        );
    }
}
