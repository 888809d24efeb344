//! Topics, by id and by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::{PartitionIndex, TopicId, TopicIdPartition, TopicName};
use protocol::records::metadata::{
    ClearElrRecord, MetadataRecord, PartitionChangeRecord, PartitionRecord, RemoveTopicRecord, TopicRecord,
};

use crate::{ApplyError, Delta, Partition};

/// All topics. Cheap to clone.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Topics {
    by_id: Arc<BTreeMap<TopicId, Arc<Topic>>>,
    ids: Arc<BTreeMap<TopicName, TopicId>>,
}

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct Topic {
    /// Its id, which no other topic ever has.
    pub id: TopicId,
    /// Its name, which no other topic has while it is there.
    pub name: TopicName,
    /// Its partitions, numbered from 0 without a gap.
    pub partitions: BTreeMap<PartitionIndex, Partition>,
}

impl Topics {
    /// The topic of this id.
    pub fn by_id(&self, id: TopicId) -> Option<&Arc<Topic>> {
        self.by_id.get(&id)
    }

    /// The topic of this name.
    pub fn by_name(&self, name: &str) -> Option<&Arc<Topic>> {
        self.by_id(*self.ids.get(name)?)
    }

    /// The partition of this id.
    pub fn partition(&self, of: TopicIdPartition) -> Option<&Partition> {
        self.by_id(of.topic_id)?.partitions.get(&of.partition)
    }

    /// All topics in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Topic>> {
        self.ids.values().filter_map(|id| self.by_id.get(id))
    }

    /// The topics whose names are `name` or come after it, in that order.
    pub fn from_name(&self, name: &str) -> impl Iterator<Item = &Arc<Topic>> {
        let ids = self.ids.range::<str, _>((std::ops::Bound::Included(name), std::ops::Bound::Unbounded));
        ids.filter_map(|(_, id)| self.by_id.get(id))
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    fn topic_mut(&mut self, id: TopicId) -> Result<&mut Topic, ApplyError> {
        let topic = Arc::make_mut(&mut self.by_id).get_mut(&id).ok_or(ApplyError::UnknownTopic(id))?;
        Ok(Arc::make_mut(topic))
    }

    pub(crate) fn create(&mut self, record: &TopicRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        let (id, name) = (record.topic_id, TopicName::from(record.name.as_str()));
        if self.ids.contains_key(&name) || self.by_id.contains_key(&id) {
            return Err(ApplyError::TopicExists(record.name.clone()));
        }
        Arc::make_mut(&mut self.ids).insert(name.clone(), id);
        let topic = Topic { id, name, partitions: BTreeMap::new() };
        Arc::make_mut(&mut self.by_id).insert(id, Arc::new(topic));
        delta.topics_created.insert(id);
        Ok(())
    }

    pub(crate) fn create_partition(
        &mut self,
        record: &PartitionRecord,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let topic = self.topic_mut(record.topic_id)?;
        topic.partitions.insert(record.partition_id, Partition::from_record(record));
        changed(delta, record.topic_id, record.partition_id);
        Ok(())
    }

    pub(crate) fn change_partition(
        &mut self,
        record: &PartitionChangeRecord,
        delta: &mut Delta,
    ) -> Result<(), ApplyError> {
        let (topic, partition) = (record.topic_id, record.partition_id);
        let partitions = &mut self.topic_mut(topic)?.partitions;
        let old = partitions.get_mut(&partition).ok_or(ApplyError::UnknownPartition { topic, partition })?;
        *old = old.changed_by(record);
        changed(delta, topic, partition);
        Ok(())
    }

    pub(crate) fn clear_elr(&mut self, record: &ClearElrRecord, delta: &mut Delta) -> Result<(), ApplyError> {
        let ids: Vec<TopicId> = match record.topic_name.as_str() {
            "" => self.by_id.keys().copied().collect(),
            name => self.ids.get(name).copied().into_iter().collect(),
        };
        for id in ids {
            for (index, partition) in &mut self.topic_mut(id)?.partitions {
                if partition.clear_elr() {
                    changed(delta, id, *index);
                }
            }
        }
        Ok(())
    }

    pub(crate) fn remove(
        &mut self,
        record: &RemoveTopicRecord,
        delta: &mut Delta,
    ) -> Result<Arc<Topic>, ApplyError> {
        let id = record.topic_id;
        let topic = Arc::make_mut(&mut self.by_id).remove(&id).ok_or(ApplyError::UnknownTopic(id))?;
        Arc::make_mut(&mut self.ids).remove(topic.name.as_str());
        delta.partitions_changed.retain(|partition| partition.topic_id != id);
        if !delta.topics_created.remove(&id) {
            delta.topics_deleted.push(Arc::clone(&topic));
        }
        Ok(topic)
    }

    pub(crate) fn write(&self, records: &mut Vec<MetadataRecord>) {
        for topic in self.by_id.values() {
            let record = TopicRecord { name: topic.name.to_string(), topic_id: topic.id };
            records.push(MetadataRecord::Topic(record));
            let partitions = topic.partitions.iter();
            records.extend(
                partitions.map(|(index, partition)| {
                    MetadataRecord::Partition(partition.to_record(topic.id, *index))
                }),
            );
        }
    }
}

fn changed(delta: &mut Delta, topic_id: TopicId, partition: PartitionIndex) {
    delta.partitions_changed.insert(TopicIdPartition { topic_id, partition });
}
