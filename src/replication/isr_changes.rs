//! What the partitions that this node leads ask of the controller: other in-sync replicas.
//!
//! Whoever speaks with the controller takes all questions at once, so that many partitions share a request.
//!
//! Invariant: one question a partition at most, its latest; so they are bounded by the partitions.
//!
//! Kafka: `AlterPartitionManager`.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use model::TopicIdPartition;
use replica::AlterPartition;
use tokio::sync::Notify;

/// A partition's question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IsrChange {
    /// The partition.
    pub id: TopicIdPartition,
    /// What it asks for.
    pub ask: AlterPartition,
}

/// The questions that nobody has taken yet.
#[derive(Default)]
pub(crate) struct IsrChanges {
    asked: Mutex<BTreeMap<TopicIdPartition, AlterPartition>>,
    news: Notify,
}

impl IsrChanges {
    pub(crate) fn ask(&self, id: TopicIdPartition, ask: AlterPartition) {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).insert(id, ask);
        self.news.notify_one();
    }

    /// All questions, when there are any.
    pub(crate) async fn next(&self) -> Vec<IsrChange> {
        loop {
            let asked = std::mem::take(&mut *self.asked.lock().unwrap_or_else(PoisonError::into_inner));
            if !asked.is_empty() {
                return asked.into_iter().map(|(id, ask)| IsrChange { id, ask }).collect();
            }
            self.news.notified().await;
        }
    }
}
