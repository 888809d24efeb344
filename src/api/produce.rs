//! Produce: appends one batch a partition, and answers when they are as safe as `acks` asks.
//!
//! All partitions are appended to before the handler returns: that is its ordered point. With acks=all the answer comes
//! when all of them are committed, or at the request's timeout.
//!
//! Kafka: `KafkaApis.handleProduceRequest`, `ReplicaManager.appendRecords`, `ProduceRequest.validateRecords`.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use metadata::Image;
use model::{ErrorCode, LeaderEpoch, Offset, Timestamp, Uuid};
use protocol::batch::{self, BatchError, Codec};
use protocol::messages::produce_request::{PartitionProduceData, TopicProduceData};
use protocol::messages::produce_response::{
    BatchIndexAndErrorMessage, LeaderIdAndEpoch, PartitionProduceResponse, TopicProduceResponse,
};
use protocol::messages::{ProduceRequest, ProduceResponse, TopicName};
use protocol::{StrBytes, ToWire};
use replication::{AppendError, Appended, Commit, LogAppendError, Origin, Partition, committed};

use crate::{Node, Reply, Session, rejection};

/// Produce v7 is the first that may carry zstd (KIP-110).
const ZSTD_VERSION_MIN: i16 = 7;

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: ProduceRequest,
    version: i16,
) -> Reply<ProduceResponse> {
    let acks = request.acks;
    let deadline = node.env.clock.now().plus(Duration::from_millis(request.timeout_ms.max(0) as u64));
    let attempt = Attempt {
        node,
        image: &node.image(),
        version,
        acks,
        is_admin: session.client_id == "__admin_client",
    };
    let topics: Vec<_> = request.topic_data.into_iter().map(|topic| attempt.topic(topic)).collect();
    match acks {
        0 if topics.iter().any(TopicOutcome::failed) => Reply::Close,
        0 => Reply::Nothing,
        -1 => {
            let clock = node.env.clock.clone();
            Reply::Later(Box::pin(async move {
                let mut topics = topics;
                let waits: Vec<_> = topics.iter().flat_map(TopicOutcome::waits).collect();
                let mut ends = committed(clock.as_ref(), &waits, deadline).await.into_iter();
                for partition in topics.iter_mut().flat_map(|topic| &mut topic.partitions) {
                    partition.settle(&mut ends);
                }
                lower(topics)
            }))
        }
        _ => Reply::Now(lower(topics)),
    }
}

/// One request on its way into the logs.
struct Attempt<'a> {
    node: &'a Node,
    image: &'a Image,
    version: i16,
    acks: i16,
    is_admin: bool,
}

struct TopicOutcome {
    name: TopicName,
    id: Uuid,
    partitions: Vec<PartitionOutcome>,
}

struct PartitionOutcome {
    index: i32,
    result: Result<Done, Failure>,
}

struct Done {
    partition: Arc<Partition>,
    appended: Appended,
}

/// Why nothing was appended, or is not known to be committed.
struct Failure {
    code: ErrorCode,
    message: String,
    /// Told where the log looked at the batch; -1 elsewhere.
    log_start: Offset,
    /// The records that are to blame, where it is not the whole batch (KIP-467).
    records: Vec<BatchIndexAndErrorMessage>,
}

impl Failure {
    fn new(code: ErrorCode, message: impl ToString) -> Self {
        Self { code, message: message.to_string(), log_start: Offset(-1), records: Vec::new() }
    }

    fn of_append(error: &AppendError, partition: &Partition) -> Self {
        let failure = Self::new(error.into(), error);
        let log_start = match failure.code {
            // To Kafka these did not get as far as the log.
            ErrorCode::CorruptMessage
            | ErrorCode::MessageTooLarge
            | ErrorCode::RecordListTooLarge
            | ErrorCode::KafkaStorageError
            | ErrorCode::NotLeaderOrFollower
            | ErrorCode::UnknownTopicOrPartition => failure.log_start,
            _ => partition.offsets().map_or(failure.log_start, |offsets| offsets.log_start),
        };
        match error {
            AppendError::Log(LogAppendError::RejectedRecords(rejected)) => {
                let (message, records) = rejection::lower(failure.code, rejected, &partition.name);
                Self { message, log_start, records, ..failure }
            }
            _ => Self { log_start, ..failure },
        }
    }
}

impl Attempt<'_> {
    fn topic(&self, topic: TopicProduceData) -> TopicOutcome {
        let id = Uuid(topic.topic_id.into_bytes());
        let partitions = topic
            .partition_data
            .into_iter()
            .map(|data| PartitionOutcome { index: data.index, result: self.partition(&topic.name, id, data) })
            .collect();
        TopicOutcome { name: own(&topic.name), id, partitions }
    }

    fn partition(&self, topic: &str, id: Uuid, data: PartitionProduceData) -> Result<Done, Failure> {
        if !(-1..=1).contains(&self.acks) {
            return Err(Failure::new(ErrorCode::InvalidRequiredAcks, "acks is -1 (all), 0 or 1"));
        }
        let partition = if self.version >= 13 {
            self.node.partition_by_id(self.image, id, data.index)
        } else {
            self.node.partition(self.image, topic, data.index)
        }
        .map_err(|code| Failure::new(code, "no partition to write to here; refresh the metadata"))?;
        if partition.name.topic.is_internal() && !self.is_admin {
            let message = format!("Cannot append to internal topic {}", partition.name.topic);
            return Err(Failure::new(ErrorCode::InvalidTopicException, message));
        }
        let records = data.records.unwrap_or_default();
        self.check(&records)?;
        let from = (Origin::Client, LeaderEpoch::NONE);
        let appended = partition
            .append(&records, from, self.acks == -1)
            .map_err(|error| Failure::of_append(&error, &partition))?;
        Ok(Done { partition, appended })
    }

    /// What a Produce may carry: exactly one batch of format 2, of a codec that this version knows.
    fn check(&self, records: &Bytes) -> Result<(), Failure> {
        let mut batches = batch::batches(records);
        let first = match batches.next() {
            Some(Ok(batch)) => batch,
            Some(Err(error)) => return Err(Failure::new(refused(error), error)),
            None => {
                return Err(Failure::new(
                    ErrorCode::InvalidRecord,
                    format!(
                        "Produce requests with version {} must have at least one record batch per partition",
                        self.version
                    ),
                ));
            }
        };
        if batches.next().is_some() {
            return Err(Failure::new(
                ErrorCode::InvalidRecord,
                format!(
                    "Produce requests with version {} are only allowed to contain exactly one record batch per partition",
                    self.version
                ),
            ));
        }
        if first.header.attributes.codec() == Ok(Codec::Zstd) && self.version < ZSTD_VERSION_MIN {
            let message = format!(
                "Produce requests with version {} are not allowed to use ZStandard compression",
                self.version
            );
            return Err(Failure::new(ErrorCode::UnsupportedCompressionType, message));
        }
        if first.header.attributes.is_transactional() {
            return Err(Failure::new(ErrorCode::InvalidTxnState, "transactions are not supported yet"));
        }
        Ok(())
    }
}

/// The name without the frame that it came in: the answer may have to wait, and the frame's memory is wanted.
fn own(name: &TopicName) -> TopicName {
    TopicName(StrBytes::from_string(name.to_string()))
}

/// Bytes that are no batch of format 2 at all.
fn refused(error: BatchError) -> ErrorCode {
    match error {
        BatchError::UnsupportedMagic { .. } => ErrorCode::InvalidRecord,
        other => other.into(),
    }
}

impl TopicOutcome {
    fn failed(&self) -> bool {
        self.partitions.iter().any(|partition| partition.result.is_err())
    }

    fn waits(&self) -> impl Iterator<Item = Commit> + '_ {
        self.partitions
            .iter()
            .filter_map(|partition| partition.result.as_ref().ok())
            .map(|done| Commit::of(done.partition.clone(), &done.appended))
    }
}

impl PartitionOutcome {
    /// Takes this partition's answer of the wait, if it waited.
    fn settle(&mut self, ends: &mut impl Iterator<Item = Result<(), replication::CommitError>>) {
        if self.result.is_ok()
            && let Some(Err(error)) = ends.next()
        {
            self.result = Err(Failure::new(error.into(), error));
        }
    }
}

fn lower(topics: Vec<TopicOutcome>) -> ProduceResponse {
    let responses = topics
        .into_iter()
        .map(|topic| {
            let partitions = topic.partitions.into_iter().map(lower_partition).collect();
            TopicProduceResponse::default()
                .with_name(topic.name)
                .with_topic_id(topic.id.to_wire())
                .with_partition_responses(partitions)
        })
        .collect();
    ProduceResponse::default().with_responses(responses)
}

fn lower_partition(outcome: PartitionOutcome) -> PartitionProduceResponse {
    let response = PartitionProduceResponse::default()
        .with_index(outcome.index)
        .with_current_leader(LeaderIdAndEpoch::default().with_leader_id((-1).into()).with_leader_epoch(-1));
    match outcome.result {
        Ok(done) => response
            .with_base_offset(done.appended.base_offset.0)
            .with_log_append_time_ms(done.appended.log_append_time.unwrap_or(Timestamp::NONE).0)
            .with_log_start_offset(done.appended.log_start.0),
        Err(failure) => response
            .with_error_code(failure.code.code())
            .with_base_offset(-1)
            .with_log_append_time_ms(-1)
            .with_log_start_offset(failure.log_start.0)
            .with_record_errors(failure.records)
            .with_error_message(Some(StrBytes::from_string(failure.message))),
    }
}
