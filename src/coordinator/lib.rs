//! Groups and the offsets they commit: who is a member, which generation it is, and how far each partition was read.
//!
//! [`Groups`] is the machine of one partition of `__consumer_offsets`. It is pure: time comes as an argument, records
//! and answers go out as an [`Outcome`]. `shards` runs it over the log.
//!
//! Kafka: the room `group-coordinator`, its classic part; KIP-345, KIP-394, KIP-559, KIP-814, KIP-211, KIP-496.

mod codec;
mod command;
mod commit;
mod config;
mod delete;
mod describe;
mod expiry;
mod fetch;
mod group;
mod groups;
mod heartbeat;
mod join;
mod leave;
mod member;
mod members;
mod offsets;
mod outcome;
mod partition;
mod rebalance;
mod record;
mod subscription;
mod sync;
mod timers;
mod turn;

pub use command::{
    Commit, CommitPartition, CommitTopic, DeleteOffsets, DeletedGroup, DescribedGroup, DescribedMember,
    FetchOffsets, FetchedPartition, FetchedTopic, Generation, GroupState, Heartbeat, Join, JoinMember,
    JoinReply, Leave, LeaveReply, LeavingMember, List, ListedGroup, Protocol, Sync, SyncReply, Text, Token,
    TopicErrors, TopicPartitions,
};
pub use commit::all_failed;
pub use config::Config;
pub use groups::Groups;
pub use offsets::CommittedOffset;
pub use outcome::{Fallback, Moment, Outcome, Released};
pub use partition::partition_for;
pub use record::{CoordinatorRecord, GroupMetadata, MemberMetadata};
