//! Waiting until what was appended is committed: Produce with acks=all, offset commits.

use std::sync::Arc;

use env::Clock;
use model::{ErrorCode, Instant, Offset};
use thiserror::Error;

use crate::{Partition, PartitionError, Signal};

/// What was appended is not known to be committed. It may still become so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// The deadline came first.
    #[error("the records were appended, but were not committed in time")]
    TimedOut,
    /// The partition failed or is led elsewhere.
    #[error(transparent)]
    Partition(#[from] PartitionError),
}

impl From<CommitError> for ErrorCode {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::TimedOut => Self::RequestTimedOut,
            CommitError::Partition(error) => error.into(),
        }
    }
}

/// Waits until each partition's high watermark has reached its offset, or the deadline; one answer each, in order.
pub async fn committed(
    clock: &dyn Clock,
    waits: &[(Arc<Partition>, Offset)],
    deadline: Instant,
) -> Vec<Result<(), CommitError>> {
    let signal = Signal::new(waits.len());
    let registrations: Vec<_> =
        waits.iter().map(|(partition, offset)| partition.register(*offset, &signal, 0)).collect();
    env::timeout(clock, deadline, signal.fired()).await;
    drop(registrations);
    waits
        .iter()
        .map(|(partition, offset)| match partition.offsets()? {
            offsets if offsets.high_watermark >= *offset => Ok(()),
            _ => Err(CommitError::TimedOut),
        })
        .collect()
}
