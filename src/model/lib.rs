//! The names of Ottla's world: identifiers, offsets and epochs, error codes, limits. No logic.
//!
//! Every room may use this one; it uses none.

mod error_code;
mod id;
mod limits;
mod map;
mod mutants;
mod time;
mod topic;
mod uuid;

pub use error_code::ErrorCode;
pub use id::{
    BrokerEpoch, ClusterId, DirectoryId, GroupId, GroupInstanceId, LeaderEpoch, MemberId, NodeId, Offset,
    PartitionEpoch, ProducerEpoch, ProducerId, Sequence,
};
pub use limits::Limits;
pub use map::{FixedHasher, Map, Set};
pub use time::{Instant, Timestamp};
pub use topic::{PartitionIndex, TopicId, TopicIdPartition, TopicName, TopicPartition, internal_topics};
pub use uuid::{ParseUuidError, Uuid};
