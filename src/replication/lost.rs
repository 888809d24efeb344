//! The partitions whose recovered logs end below what was known to be committed.
//!
//! The controller takes them out of their ISRs and ELRs when it unfences this broker, and at no other time. So they are all
//! known before that; one that is opened later stays away until the next start.

use std::sync::{Mutex, MutexGuard, PoisonError};

use model::TopicIdPartition;

/// None before the logs are open.
#[derive(Default)]
pub(crate) struct Lost(Mutex<Option<Vec<TopicIdPartition>>>);

impl Lost {
    /// The logs are open that could be opened at the start, and these have lost records.
    pub(crate) fn found(&self, ids: impl FnOnce() -> Vec<TopicIdPartition>) {
        self.lock().get_or_insert_with(ids);
    }

    /// Whether the controller is told by now, or is about to be.
    pub(crate) fn is_known(&self) -> bool {
        self.lock().is_some()
    }

    /// Those that the controller is to be told of.
    pub(crate) fn all(&self) -> Vec<TopicIdPartition> {
        self.lock().clone().unwrap_or_default()
    }

    /// The controller was told of these.
    pub(crate) fn take(&self) -> Vec<TopicIdPartition> {
        self.lock().as_mut().map(std::mem::take).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, Option<Vec<TopicIdPartition>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
