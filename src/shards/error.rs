//! Why a shard gives no answer.

use model::ErrorCode;
use thiserror::Error;

/// The group could not be asked, or what it decided is not known to be committed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ShardError {
    /// This node does not lead the group's partition, or no longer does.
    #[error("another node coordinates the group; find the coordinator again")]
    NotCoordinator,
    /// The group's partition is being read.
    #[error("the coordinator is still reading its log; try again")]
    LoadInProgress,
    /// The log refused the records, or they were not committed in time.
    #[error("the coordinator could not write to its log ({0:?})")]
    Refused(ErrorCode),
}

impl From<ShardError> for ErrorCode {
    fn from(error: ShardError) -> Self {
        match error {
            ShardError::NotCoordinator => Self::NotCoordinator,
            ShardError::LoadInProgress => Self::CoordinatorLoadInProgress,
            ShardError::Refused(code) => code,
        }
    }
}

impl ShardError {
    /// What clients of groups are told of an error of the partition below (Kafka:
    /// `GroupCoordinatorService.handleOperationException`).
    pub(crate) fn of_log(code: ErrorCode) -> Self {
        match code {
            ErrorCode::NotLeaderOrFollower
            | ErrorCode::FencedLeaderEpoch
            | ErrorCode::UnknownLeaderEpoch
            | ErrorCode::KafkaStorageError => Self::NotCoordinator,
            ErrorCode::UnknownTopicOrPartition
            | ErrorCode::NotEnoughReplicas
            | ErrorCode::NotEnoughReplicasAfterAppend
            | ErrorCode::RequestTimedOut => Self::Refused(ErrorCode::CoordinatorNotAvailable),
            ErrorCode::MessageTooLarge | ErrorCode::RecordListTooLarge | ErrorCode::InvalidFetchSize => {
                Self::Refused(ErrorCode::UnknownServerError)
            }
            other => Self::Refused(other),
        }
    }
}
