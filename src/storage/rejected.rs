//! The records of a batch that a leader refuses, one by one, so that a producer can fail these and say why.
//!
//! Kafka: `RecordValidationException`, `LogValidator.ApiRecordError`; KIP-467.

use model::{ErrorCode, Limits, Timestamp};

/// Records of one batch that were refused.
#[derive(Clone, Debug, Default)]
pub struct RejectedRecords {
    /// How many.
    pub count: usize,
    /// The first of them, at most `Limits::REJECTED_RECORDS_NAMED`.
    pub first: Vec<RejectedRecord>,
}

/// A record that was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRecord {
    /// Its place in the batch, from 0.
    pub index: i32,
    /// Why.
    pub cause: RejectionCause,
}

/// Why a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionCause {
    /// Its topic is compacted, and it has no key.
    NoKey,
    /// Its timestamp is out of the topic's bounds, both inclusive.
    Timestamp {
        /// The record's.
        timestamp: Timestamp,
        /// The oldest that is taken now.
        oldest: Timestamp,
        /// The newest that is taken now.
        newest: Timestamp,
    },
}

impl RejectedRecords {
    pub(crate) fn push(&mut self, index: i32, cause: RejectionCause) {
        self.count += 1;
        if self.first.len() < Limits::REJECTED_RECORDS_NAMED {
            self.first.push(RejectedRecord { index, cause });
        }
    }

    /// One wrong time makes it a matter of time.
    pub(crate) fn code(&self) -> ErrorCode {
        let is_time = |record: &RejectedRecord| matches!(record.cause, RejectionCause::Timestamp { .. });
        if self.first.iter().any(is_time) { ErrorCode::InvalidTimestamp } else { ErrorCode::InvalidRecord }
    }
}
