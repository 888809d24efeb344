//! The partitions on this node: their logs, their part in replication, the committer, and those who wait.
//!
//! `Partition` is the lock that no await crosses, around a log and the machine that says what becomes of it. The committer
//! moves the flushed end, followers acknowledge by their fetches, the high watermark follows, and whoever waited for it
//! wakes. Fetchers ask the leaders of what others lead. Metadata decides which partitions there are;
//! [`Replication::apply`] makes it so.
//!
//! Invariants: a record is visible to consumers and acknowledged with acks=all only when every replica that counts has
//! flushed it; an append never waits for a flush; nothing here knows of clients' requests.
//!
//! Kafka: `ReplicaManager`, `LogManager`, `Partition`, `ReplicaFetcherManager`, `DelayedOperationPurgatory`.

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
mod lost;
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

pub use assignment::partition_state;
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
