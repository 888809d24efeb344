//! Runs group machines over the log: decide, append, apply, answer when it is committed.
//!
//! Each partition of `__consumer_offsets` that this node leads is a shard: one task, which owns the machine and takes
//! commands from a bounded mailbox. It loads the machine from the log when the node becomes leader, and drops it when it
//! no longer is. A run of offset commits becomes one batch.
//!
//! Invariants: a machine sees only what is in the log; an answer leaves only when the log is committed up to where the
//! machine stood when it gave it; a shard of an older leader epoch has ended before a newer one reads the log.
//!
//! Kafka: `CoordinatorRuntime`, `CoordinatorLoaderImpl`, `PartitionWriter`, `GroupCoordinatorService`.

mod answer;
mod config;
mod error;
mod load;
mod log;
mod partition_log;
mod shard;
mod shards;
#[cfg(test)]
mod tests;

pub use answer::Appended;
pub use config::Config;
pub use error::ShardError;
pub use shards::Shards;
