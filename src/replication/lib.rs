//! The partitions on this node: their logs, their part in replication, the committer, and those who wait.
//!
//! `Partition` is the lock that no await crosses; the committer moves its flushed end, the high watermark follows, and
//! whoever waited for it wakes. Metadata decides which partitions there are; [`Replication::apply`] makes it so.
//!
//! Invariants: a record is visible to consumers and acknowledged with acks=all only when it is flushed (design:
//! durability, rules 1-4); an append never waits for a flush; nothing here knows of requests.
//!
//! Kafka: `ReplicaManager`, `LogManager`, `Partition`, `DelayedOperationPurgatory`.

mod asked;
mod assignment;
mod closing;
mod committed;
mod committer;
mod error;
mod failed;
mod fetch_session;
mod fetcher;
mod fetchers;
mod folders;
mod isr_changes;
mod log_shape;
mod opening;
mod outlets;
mod partition;
mod partitions;
mod recovery_debt;
#[cfg(test)]
mod replica_tests;
mod replication;
#[cfg(test)]
mod tests;
mod ticks;
mod upkeep;
mod wait;
mod wire;

pub use committed::{Commit, CommitError, committed};
pub use error::{AppendError, PartitionError, ReadError};
pub use fetchers::ReplicasConfig;
pub use folders::FolderDescription;
pub use isr_changes::IsrChange;
pub use partition::{Awaited, Isolation, Offsets, Partition, Read, ReadLimits};
pub use replica::{
    AlterPartition, AlteredPartition, Config as MachineConfig, EpochEnd, FetchRequest, FollowerFetch,
    IsrMember, QuestionId,
};
pub use replication::{Config, Replication};
pub use storage::{
    AppendError as LogAppendError, Appended, Origin, RejectedRecord, RejectedRecords, RejectionCause, Slice,
    StorageError, TimestampOffset,
};
pub use upkeep::Config as UpkeepConfig;
pub use wait::{Registration, Signal};
pub use wire::FetchConfig;
