//! The partition log on disk: segments, indexes, leader epochs, producer state, checkpoints, in Kafka's files.
//!
//! A [`LogFolder`] is one entry of `log.dirs`; a [`Log`] is one partition in it. All is synchronous and owns no thread:
//! appends run in the caller's task, and what is slow is handed out as a [`FlushJob`] or a [`TimeSearch`], or done in
//! bounded steps by [`Log::maintain`]. Files are reached only through `env::Disk`, so that the simulator can take the
//! power away.
//!
//! Invariants
//! * What a reader is given was checked when it was appended; offsets and leader epochs only grow.
//! * Nothing counts as flushed that a power cut can take back: see [`Log::flushed_end`].
//! * A write that failed leaves nothing behind that is visible, or takes the folder offline.
//! * Bytes that come from a file are checked, never trusted: an error or a recovery, no panic.
//!
//! Kafka: `LogManager`, `UnifiedLog`, `LocalLog`, `LogSegment`, `LogLoader`.
#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod checkpoint;
mod checkpoints;
mod clean_shutdown;
mod config;
mod epochs;
mod error;
mod folder;
mod folder_state;
mod index;
mod log;
mod meta_properties;
mod names;
mod open_files;
mod partition_metadata;
mod producers;
mod rejected;
mod reserve;
mod scan;
mod segment;
mod snapshot;
mod tail;

pub use config::{CleanupPolicy, LogConfig};
pub use error::{AppendError, FolderError, ReadError, StorageError};
pub use folder::{FoundLog, LogCheckpoint, LogFolder};
pub use log::{
    Appended, CheckpointJob, DeletedLog, FlushJob, Log, Maintained, Origin, Slice, TimeSearch,
    TimestampOffset,
};
pub use meta_properties::MetaProperties;
pub use producers::{ProducerState, ProducerWindowBatch};
pub use rejected::{RejectedRecord, RejectedRecords, RejectionCause};
pub use tail::TailBudget;
