//! The partitions on this node, by name and by id.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use model::{Map, PartitionIndex, TopicId, TopicIdPartition, TopicName};

use crate::{Partition, PartitionError};

/// All partitions of this node. Looked up by every request, changed by metadata alone.
#[derive(Default)]
pub(crate) struct Partitions(RwLock<Tables>);

#[derive(Default)]
struct Tables {
    by_name: Map<TopicName, BTreeMap<PartitionIndex, Arc<Partition>>>,
    by_id: Map<TopicId, TopicName>,
}

impl Partitions {
    pub(crate) fn by_name(
        &self,
        topic: &str,
        index: PartitionIndex,
    ) -> Result<Arc<Partition>, PartitionError> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .by_name
            .get(topic)
            .and_then(|partitions| partitions.get(&index))
            .cloned()
            .ok_or(PartitionError::Unknown)
    }

    pub(crate) fn by_id(&self, id: TopicIdPartition) -> Result<Arc<Partition>, PartitionError> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        tables
            .by_id
            .get(&id.topic_id)
            .and_then(|name| tables.by_name.get(name))
            .and_then(|partitions| partitions.get(&id.partition))
            .filter(|partition| partition.id == id)
            .cloned()
            .ok_or(PartitionError::Unknown)
    }

    /// All of them, sorted by topic and partition.
    pub(crate) fn all(&self) -> Vec<Arc<Partition>> {
        let tables = self.0.read().unwrap_or_else(PoisonError::into_inner);
        let sorted: BTreeMap<_, _> = tables.by_name.iter().collect();
        sorted.values().flat_map(|partitions| partitions.values().cloned()).collect()
    }

    pub(crate) fn insert(&self, partition: Arc<Partition>) {
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let topic = partition.name.topic.clone();
        tables.by_id.insert(partition.id.topic_id, topic.clone());
        let (id, of_topic) = (partition.id, tables.by_name.entry(topic).or_default());
        let before = of_topic.insert(id.partition, partition);
        assert!(before.is_none_or(|before| before.id != id), "the log of {id:?} was opened twice");
    }

    pub(crate) fn remove(&self, id: TopicIdPartition) -> Option<Arc<Partition>> {
        let partition = self.by_id(id).ok()?;
        let mut tables = self.0.write().unwrap_or_else(PoisonError::into_inner);
        let topic = &partition.name.topic;
        if let Some(partitions) = tables.by_name.get_mut(topic) {
            partitions.remove(&id.partition);
            if partitions.is_empty() {
                tables.by_name.remove(topic);
                tables.by_id.remove(&id.topic_id);
            }
        }
        Some(partition)
    }
}
