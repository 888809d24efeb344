//! DeleteGroups, OffsetDelete, and the offsets of partitions that are no more.
//!
//! Kafka: `GroupCoordinatorShard.deleteGroups`, `OffsetMetadataManager.deleteOffsets`, `onPartitionsDeleted`; KIP-496.

use std::collections::{BTreeMap, BTreeSet};

use model::{ErrorCode, GroupId, PartitionIndex, TopicName, TopicPartition};

use crate::command::{DeleteOffsets, DeletedGroup, GroupState, TopicErrors, TopicPartitions};
use crate::group::Group;
use crate::groups::Groups;
use crate::outcome::Outcome;
use crate::record::CoordinatorRecord;

impl Groups {
    /// DeleteGroups, of one group: an empty one goes, with its offsets.
    pub fn handle_delete(&mut self, group_id: GroupId) -> Outcome<DeletedGroup> {
        let (error, error_message) = match self.group(&group_id) {
            None => (ErrorCode::GroupIdNotFound, not_found(&group_id)),
            Some(group) if !group.is(GroupState::Empty) => {
                (ErrorCode::NonEmptyGroup, "The group is not empty.".to_owned())
            }
            Some(_) => {
                let mut records = self.offset_tombstones(&group_id);
                records.push(CoordinatorRecord::GroupMetadata { group_id: group_id.clone(), value: None });
                let reply = DeletedGroup { group_id, error: ErrorCode::None, error_message: None };
                return Outcome::records(reply, records);
            }
        };
        Outcome::reply(DeletedGroup { group_id, error, error_message: Some(error_message) })
    }

    fn offset_tombstones(&self, group_id: &GroupId) -> Vec<CoordinatorRecord> {
        let topics = self.offsets.of(group_id).into_iter().flatten();
        let partitions = topics.flat_map(|(topic, offsets)| offsets.keys().map(move |p| (topic, *p)));
        partitions
            .map(|(topic, partition)| CoordinatorRecord::offset_tombstone(group_id, topic, partition))
            .collect()
    }

    /// OffsetDelete: of topics that no consumer of the group is subscribed to.
    ///
    /// # Errors
    /// `GROUP_ID_NOT_FOUND`; `NON_EMPTY_GROUP` for a group that is not one of consumers and has members.
    pub fn handle_delete_offsets(
        &mut self,
        delete: &DeleteOffsets,
    ) -> Outcome<Result<Vec<TopicErrors>, ErrorCode>> {
        let Some(group) = self.group(&delete.group_id) else {
            return Outcome::reply(Err(ErrorCode::GroupIdNotFound));
        };
        if !group.is(GroupState::Empty) && !group.is_consumer() {
            return Outcome::reply(Err(ErrorCode::NonEmptyGroup));
        }
        let mut records = Vec::new();
        let topics = delete.topics.iter().map(|topic| self.delete_topic_offsets(group, topic, &mut records));
        let reply = topics.collect();
        Outcome::records(Ok(reply), records)
    }

    fn delete_topic_offsets(
        &self,
        group: &Group,
        topic: &TopicPartitions,
        records: &mut Vec<CoordinatorRecord>,
    ) -> TopicErrors {
        let is_subscribed = group.is_subscribed_to(&topic.topic);
        let error = if is_subscribed { ErrorCode::GroupSubscribedToTopic } else { ErrorCode::None };
        for partition in topic.partitions.iter().filter(|_| !is_subscribed) {
            if self.offsets.get(&group.id, &topic.topic, *partition).is_some() {
                records.push(CoordinatorRecord::offset_tombstone(&group.id, &topic.topic, *partition));
            }
        }
        TopicErrors {
            topic: topic.topic.clone(),
            topic_id: topic.topic_id,
            partitions: topic.partitions.iter().map(|partition| (*partition, error)).collect(),
        }
    }

    /// Forgets every group's offsets of partitions that were deleted.
    pub fn handle_partitions_deleted(&mut self, partitions: &[TopicPartition]) -> Outcome<()> {
        let mut deleted: BTreeMap<&TopicName, BTreeSet<PartitionIndex>> = BTreeMap::new();
        for TopicPartition { topic, partition } in partitions {
            deleted.entry(topic).or_default().insert(*partition);
        }
        let mut records = Vec::new();
        for (group_id, topics) in self.offsets.groups() {
            for (topic, deleted) in &deleted {
                let offsets = topics.get(*topic).into_iter().flat_map(BTreeMap::keys);
                let gone = offsets.filter(|partition| deleted.contains(partition));
                records.extend(gone.map(|p| CoordinatorRecord::offset_tombstone(group_id, topic, *p)));
            }
        }
        Outcome::records((), records)
    }
}

/// What Kafka says of a group that does not exist.
pub(crate) fn not_found(group_id: &GroupId) -> String {
    format!("Group {group_id} not found.")
}
