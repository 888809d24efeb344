//! Waiting until what was appended is committed: Produce with acks=all, offset commits.

use std::sync::Arc;

use env::Clock;
use model::{ErrorCode, Instant, LeaderEpoch, Offset};
use replica::ProduceError;
use storage::Appended;
use thiserror::Error;

use crate::{Awaited, Partition, PartitionError, Signal};

/// Something that was appended and is to be committed.
pub struct Commit {
    /// Where.
    pub partition: Arc<Partition>,
    /// In which leader epoch: under another leader something else may have come to stand there.
    pub epoch: LeaderEpoch,
    /// The offset after the last record, of the original where it was a duplicate.
    pub end: Offset,
}

impl Commit {
    /// What an append to `partition` did.
    pub fn of(partition: Arc<Partition>, appended: &Appended) -> Self {
        Self { partition, epoch: appended.leader_epoch, end: appended.last_offset.plus(1) }
    }
}

/// What was appended is not known to be committed. It may still become so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CommitError {
    /// The deadline came first.
    #[error("the records were appended, but were not committed in time")]
    TimedOut,
    /// The partition failed or is led elsewhere.
    #[error(transparent)]
    Partition(#[from] PartitionError),
    /// They are committed, and too few replicas are in sync by now.
    #[error(
        "{isr} replicas are in sync since the records were appended; min.insync.replicas asks for {min_isr}"
    )]
    NotEnoughReplicas {
        /// Replicas in sync.
        isr: usize,
        /// `min.insync.replicas`.
        min_isr: usize,
    },
}

impl From<CommitError> for ErrorCode {
    fn from(error: CommitError) -> Self {
        match error {
            CommitError::TimedOut => Self::RequestTimedOut,
            CommitError::Partition(error) => error.into(),
            CommitError::NotEnoughReplicas { .. } => Self::NotEnoughReplicasAfterAppend,
        }
    }
}

impl From<ProduceError> for CommitError {
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

/// Waits until each partition's high watermark has reached its offset, or the deadline; one answer each, in order.
pub async fn committed(
    clock: &dyn Clock,
    commits: &[Commit],
    deadline: Instant,
) -> Vec<Result<(), CommitError>> {
    let signal = Signal::new(commits.len());
    let register =
        |commit: &Commit| commit.partition.register(Awaited::HighWatermark(commit.end), &signal, 0);
    let registrations: Vec<_> = commits.iter().map(register).collect();
    env::timeout(clock, deadline, signal.fired()).await;
    drop(registrations);
    commits.iter().map(verdict).collect()
}

fn verdict(commit: &Commit) -> Result<(), CommitError> {
    match commit.partition.verdict(commit.epoch, commit.end)? {
        Some(verdict) => Ok(verdict?),
        None => Err(CommitError::TimedOut),
    }
}
