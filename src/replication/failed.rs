//! The partitions that this node should hold, and whose logs it could not open.
//!
//! They stay known: who asks for one is told that its storage failed, not to look elsewhere, and the checkpoints keep what
//! they said of it. Where it was only for lack of space or of open files, it is tried again.
//!
//! Kafka: `HostedPartition.Offline`.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use model::{Offset, PartitionIndex, TopicIdPartition, TopicPartition};
use storage::StorageError;

use crate::PartitionError;
use crate::assignment::Assignment;

/// One of them.
pub(crate) struct FailedPartition {
    pub(crate) assignment: Assignment,
    /// Whether this node had never had it.
    pub(crate) is_new: bool,
    pub(crate) why: OpenError,
}

/// Why a log was not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("no log folder works, or it may lie in one that is offline")]
    NoFolder,
    #[error("{error}")]
    Storage {
        /// The log folder: an index into the node's.
        at: usize,
        error: StorageError,
    },
    #[error(
        "its log ends at {end} and {restored} was committed, as the controller hears when this broker starts: start it again"
    )]
    Lost {
        /// The log folder.
        at: usize,
        end: Offset,
        restored: Offset,
    },
}

impl OpenError {
    /// Whether the reason may go by itself.
    fn may_heal(&self) -> bool {
        let Self::Storage { error, .. } = self else { return false };
        matches!(error, StorageError::DiskFull { .. } | StorageError::Io { .. })
    }

    pub(crate) fn folder(&self) -> Option<usize> {
        match self {
            Self::NoFolder => None,
            Self::Storage { at, .. } | Self::Lost { at, .. } => Some(*at),
        }
    }
}

/// All of them.
#[derive(Default)]
pub(crate) struct Failed(Mutex<BTreeMap<TopicIdPartition, FailedPartition>>);

impl Failed {
    pub(crate) fn insert(&self, failed: FailedPartition) {
        self.lock().insert(failed.assignment.id, failed);
    }

    /// Of one that failed, whether this node had never had it.
    pub(crate) fn was_new(&self, id: TopicIdPartition) -> Option<bool> {
        self.lock().get(&id).map(|failed| failed.is_new)
    }

    pub(crate) fn remove(&self, id: TopicIdPartition) {
        self.lock().remove(&id);
    }

    /// Takes those out that are to be tried again.
    pub(crate) fn take_healing(&self) -> Vec<FailedPartition> {
        let mut failed = self.lock();
        let healing = failed.extract_if(.., |_, failed| failed.why.may_heal());
        healing.map(|(_, failed)| failed).collect()
    }

    /// The names of those in a log folder.
    pub(crate) fn in_folder(&self, at: usize) -> Vec<TopicPartition> {
        let failed = self.lock();
        let here = failed.values().filter(|failed| failed.why.folder() == Some(at));
        here.map(|failed| failed.assignment.name.clone()).collect()
    }

    /// What to say of a partition that is not held: `error`, or that its storage failed.
    pub(crate) fn explain_name(
        &self,
        topic: &str,
        index: PartitionIndex,
        error: PartitionError,
    ) -> PartitionError {
        let is_it = |failed: &FailedPartition| {
            let name = &failed.assignment.name;
            name.partition == index && name.topic.as_str() == topic
        };
        if self.lock().values().any(is_it) { PartitionError::Offline } else { error }
    }

    /// As [`Self::explain_name`].
    pub(crate) fn explain_id(&self, id: TopicIdPartition, error: PartitionError) -> PartitionError {
        if self.lock().contains_key(&id) { PartitionError::Offline } else { error }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<TopicIdPartition, FailedPartition>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
