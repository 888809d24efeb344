//! What can go wrong at a partition, and Kafka's codes for it.

use model::{ErrorCode, Offset};
use replica::{FetchError, ProduceError};
use thiserror::Error;

/// The partition cannot be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PartitionError {
    /// No such topic or partition on this node, nor in the metadata.
    #[error("this server does not host this topic-partition")]
    Unknown,
    /// Another node leads it.
    #[error("this node does not lead the partition; refresh the metadata")]
    NotLeader,
    /// Its log folder failed.
    #[error("the partition's log folder is offline; see this node's log for the failure")]
    Offline,
    /// The client's leader epoch is older.
    #[error("the leader epoch of the request is older than the partition's")]
    FencedLeaderEpoch,
    /// The client's leader epoch is newer.
    #[error("the leader epoch of the request is newer than the partition's")]
    UnknownLeaderEpoch,
}

impl From<FetchError> for PartitionError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::FencedLeaderEpoch => Self::FencedLeaderEpoch,
            FetchError::UnknownLeaderEpoch => Self::UnknownLeaderEpoch,
            // Whoever asked for no offset does not hear of one.
            FetchError::NotLeader | FetchError::OutOfRange { .. } => Self::NotLeader,
        }
    }
}

impl From<FetchError> for ReadError {
    fn from(error: FetchError) -> Self {
        match error {
            FetchError::OutOfRange { log_start, log_end } => Self::OutOfRange { log_start, log_end },
            other => Self::Partition(other.into()),
        }
    }
}

impl From<ProduceError> for AppendError {
    fn from(error: ProduceError) -> Self {
        match error {
            ProduceError::NotLeader => Self::Partition(PartitionError::NotLeader),
            ProduceError::NotEnoughReplicas { isr, min_isr }
            | ProduceError::NotEnoughReplicasAfterAppend { isr, min_isr } => {
                Self::NotEnoughReplicas { isr, min_isr }
            }
        }
    }
}

/// Nothing was appended.
#[derive(Debug, Error)]
pub enum AppendError {
    /// The partition cannot be used.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// acks=all, and too few replicas are in sync.
    #[error("{isr} replicas are in sync; min.insync.replicas asks for {min_isr}")]
    NotEnoughReplicas {
        /// Replicas in sync.
        isr: usize,
        /// `min.insync.replicas`.
        min_isr: usize,
    },
    /// The log refused it.
    #[error(transparent)]
    Log(#[from] storage::AppendError),
}

/// Nothing was read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The partition cannot be used.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// The offset is not in the log.
    #[error("the log holds offsets {log_start} up to {log_end}")]
    OutOfRange {
        /// The first offset.
        log_start: Offset,
        /// The next offset that is given.
        log_end: Offset,
    },
    /// The log could not be read.
    #[error(transparent)]
    Log(#[from] storage::ReadError),
}

impl From<PartitionError> for ErrorCode {
    fn from(error: PartitionError) -> Self {
        match error {
            PartitionError::Unknown => Self::UnknownTopicOrPartition,
            PartitionError::NotLeader => Self::NotLeaderOrFollower,
            PartitionError::Offline => Self::KafkaStorageError,
            PartitionError::FencedLeaderEpoch => Self::FencedLeaderEpoch,
            PartitionError::UnknownLeaderEpoch => Self::UnknownLeaderEpoch,
        }
    }
}

impl From<&AppendError> for ErrorCode {
    fn from(error: &AppendError) -> Self {
        match error {
            AppendError::Partition(error) => (*error).into(),
            AppendError::NotEnoughReplicas { .. } => Self::NotEnoughReplicas,
            AppendError::Log(error) => error.into(),
        }
    }
}

impl From<&ReadError> for ErrorCode {
    fn from(error: &ReadError) -> Self {
        match error {
            ReadError::Partition(error) => (*error).into(),
            ReadError::OutOfRange { .. } => Self::OffsetOutOfRange,
            ReadError::Log(error) => error.into(),
        }
    }
}
