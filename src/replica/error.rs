//! What a replica refuses, and Kafka's codes for it.

use model::{ErrorCode, Offset};
use thiserror::Error;

/// A Fetch, or another request about the log, is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FetchError {
    /// Another node leads, or none; or the follower has registered anew since it sent this.
    #[error("this node does not lead the partition, or not for this replica")]
    NotLeader,
    /// The leader epoch of the request is older.
    #[error("the leader epoch of the request is older than the partition's")]
    FencedLeaderEpoch,
    /// The leader epoch of the request is newer; or the follower is a replica in newer metadata only.
    #[error(
        "the leader epoch of the request, or the metadata that made its sender a replica, is not known here yet"
    )]
    UnknownLeaderEpoch,
    /// The offset is not in the log.
    #[error("the log holds offsets {log_start} up to {log_end}")]
    OutOfRange {
        /// The first offset.
        log_start: Offset,
        /// The next offset that is given.
        log_end: Offset,
    },
}

impl From<FetchError> for ErrorCode {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::NotLeader => Self::NotLeaderOrFollower,
            FetchError::FencedLeaderEpoch => Self::FencedLeaderEpoch,
            FetchError::UnknownLeaderEpoch => Self::UnknownLeaderEpoch,
            FetchError::OutOfRange { .. } => Self::OffsetOutOfRange,
        }
    }
}

/// Records are not taken, or not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ProduceError {
    /// Another node leads, or none; or it changed since the records were appended.
    #[error("this node does not lead the partition; refresh the metadata")]
    NotLeader,
    /// acks=all, and too few replicas are in sync. Nothing was appended.
    #[error("{isr} replicas are in sync; min.insync.replicas asks for {min_isr}")]
    NotEnoughReplicas {
        /// Replicas in sync.
        isr: usize,
        /// `min.insync.replicas`.
        min_isr: usize,
    },
    /// The records are committed, and too few replicas are in sync by now.
    #[error(
        "{isr} replicas are in sync since the records were appended; min.insync.replicas asks for {min_isr}"
    )]
    NotEnoughReplicasAfterAppend {
        /// Replicas in sync.
        isr: usize,
        /// `min.insync.replicas`.
        min_isr: usize,
    },
}

impl From<ProduceError> for ErrorCode {
    fn from(error: ProduceError) -> Self {
        match error {
            ProduceError::NotLeader => Self::NotLeaderOrFollower,
            ProduceError::NotEnoughReplicas { .. } => Self::NotEnoughReplicas,
            ProduceError::NotEnoughReplicasAfterAppend { .. } => Self::NotEnoughReplicasAfterAppend,
        }
    }
}
