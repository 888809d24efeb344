//! OffsetFetch (Kafka: `OffsetMetadataManager.fetchOffsets`, `fetchAllOffsets`).

use model::{LeaderEpoch, Offset, PartitionIndex, TopicId};

use crate::command::{FetchOffsets, FetchedPartition, FetchedTopic, TopicPartitions};
use crate::groups::Groups;
use crate::offsets::{CommittedOffset, GroupOffsets, TopicOffsets};

impl Groups {
    /// The offsets asked for, or all there are. The caller answers once the log is committed up to its present end:
    /// what was appended is seen here before that.
    pub fn fetch_offsets(&self, fetch: &FetchOffsets) -> Vec<FetchedTopic> {
        let offsets = self.offsets.of(&fetch.group_id);
        match &fetch.topics {
            Some(topics) => topics.iter().map(|topic| fetch_some(topic, offsets)).collect(),
            None => {
                offsets.into_iter().flatten().map(|(topic, partitions)| all_of(topic, partitions)).collect()
            }
        }
    }
}

fn fetch_some(asked: &TopicPartitions, offsets: Option<&GroupOffsets>) -> FetchedTopic {
    let committed = offsets.and_then(|offsets| offsets.get(&asked.topic));
    let fetch = |partition: &PartitionIndex| {
        let offset = committed.and_then(|partitions| partitions.get(partition));
        fetched(*partition, offset.filter(|offset| is_of_topic(offset, asked.topic_id)))
    };
    FetchedTopic {
        topic: asked.topic.clone(),
        topic_id: asked.topic_id,
        partitions: asked.partitions.iter().map(fetch).collect(),
    }
}

fn all_of(topic: &model::TopicName, partitions: &TopicOffsets) -> FetchedTopic {
    FetchedTopic {
        topic: topic.clone(),
        topic_id: TopicId::ZERO,
        partitions: partitions.iter().map(|(partition, offset)| fetched(*partition, Some(offset))).collect(),
    }
}

/// An offset of an earlier topic of that name says nothing about this one. Where an id is not known, the name decides.
fn is_of_topic(offset: &CommittedOffset, topic_id: TopicId) -> bool {
    offset.topic_id.is_zero() || topic_id.is_zero() || offset.topic_id == topic_id
}

fn fetched(partition: PartitionIndex, offset: Option<&CommittedOffset>) -> FetchedPartition {
    let (offset, leader_epoch, metadata) = match offset {
        Some(committed) => (committed.offset, committed.leader_epoch, committed.metadata.clone()),
        None => (Offset(-1), LeaderEpoch::NONE, "".into()),
    };
    FetchedPartition { partition, offset, leader_epoch, metadata }
}
