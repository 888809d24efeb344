//! Topics and their partitions.

use std::fmt;
use std::sync::Arc;

use crate::Uuid;
use crate::id::text;

text!(
    /// The name of a topic: 1 to 249 of `a-zA-Z0-9._-`, but neither `.` nor `..`, where it names one that exists.
    TopicName
);

/// The topics of the coordinators. Kafka: `org.apache.kafka.common.internals.Topic`.
pub mod internal_topics {
    /// Of groups.
    pub const CONSUMER_OFFSETS: &str = "__consumer_offsets";
    /// Of transactions.
    pub const TRANSACTION_STATE: &str = "__transaction_state";
    /// Of share groups.
    pub const SHARE_GROUP_STATE: &str = "__share_group_state";
}

impl TopicName {
    /// Whether the topic belongs to a coordinator, so that clients are told to leave it alone.
    pub fn is_internal(&self) -> bool {
        use internal_topics::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};
        [CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE].contains(&self.as_str())
    }
}

/// A topic's id (KIP-516). Zero is unknown.
pub type TopicId = Uuid;

/// The number of a partition in its topic, from 0.
pub type PartitionIndex = i32;

/// A partition by its topic's name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicPartition {
    /// The topic.
    pub topic: TopicName,
    /// The partition's number, from 0.
    pub partition: PartitionIndex,
}

/// A partition by its topic's id.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicIdPartition {
    /// The topic.
    pub topic_id: TopicId,
    /// The partition's number, from 0.
    pub partition: PartitionIndex,
}

impl TopicPartition {
    /// Puts the two together.
    pub fn new(topic: impl Into<TopicName>, partition: PartitionIndex) -> Self {
        Self { topic: topic.into(), partition }
    }
}

impl fmt::Display for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.topic, self.partition)
    }
}

impl fmt::Debug for TopicPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for TopicIdPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.topic_id, self.partition)
    }
}

impl fmt::Debug for TopicIdPartition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
