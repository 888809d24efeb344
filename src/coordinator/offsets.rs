//! The committed offsets of all groups of one machine.

use std::collections::BTreeMap;

use model::{GroupId, LeaderEpoch, Offset, PartitionIndex, Timestamp, TopicId, TopicName};

use crate::command::Text;

/// A committed offset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommittedOffset {
    /// The next offset to read.
    pub offset: Offset,
    /// The leader epoch of the last record read; `NONE` if not known.
    pub leader_epoch: LeaderEpoch,
    /// The client's own note.
    pub metadata: Text,
    /// When it was committed.
    pub commit_timestamp: Timestamp,
    /// When it expires, where the client said so.
    pub expire_timestamp: Option<Timestamp>,
    /// The topic's id; zero if not known.
    pub topic_id: TopicId,
}

pub(crate) type TopicOffsets = BTreeMap<PartitionIndex, CommittedOffset>;
pub(crate) type GroupOffsets = BTreeMap<TopicName, TopicOffsets>;

/// Offsets by group, topic and partition. No level of it is ever empty.
#[derive(Debug, Default)]
pub(crate) struct Offsets {
    by_group: BTreeMap<GroupId, GroupOffsets>,
}

impl Offsets {
    /// A group's, by topic.
    pub(crate) fn of(&self, group_id: &GroupId) -> Option<&GroupOffsets> {
        self.by_group.get(group_id)
    }

    pub(crate) fn get(
        &self,
        group_id: &GroupId,
        topic: &TopicName,
        partition: PartitionIndex,
    ) -> Option<&CommittedOffset> {
        self.of(group_id)?.get(topic)?.get(&partition)
    }

    pub(crate) fn put(
        &mut self,
        group_id: GroupId,
        topic: TopicName,
        partition: PartitionIndex,
        value: CommittedOffset,
    ) {
        self.by_group.entry(group_id).or_default().entry(topic).or_default().insert(partition, value);
    }

    pub(crate) fn remove(&mut self, group_id: &GroupId, topic: &TopicName, partition: PartitionIndex) {
        let Some(topics) = self.by_group.get_mut(group_id) else { return };
        let Some(partitions) = topics.get_mut(topic) else { return };
        partitions.remove(&partition);
        if partitions.is_empty() {
            topics.remove(topic);
        }
        if topics.is_empty() {
            self.by_group.remove(group_id);
        }
    }

    /// All groups that have any.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&GroupId, &GroupOffsets)> {
        self.by_group.iter()
    }
}
