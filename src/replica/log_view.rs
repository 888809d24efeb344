//! What the machine sees of a partition's log. Whoever holds the log holds the bytes and answers.
//!
//! Kafka: `UnifiedLog`, `LeaderEpochFileCache`.

use model::{LeaderEpoch, Offset};

/// A leader epoch and where its records end, exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EpochEnd {
    /// The epoch.
    pub epoch: LeaderEpoch,
    /// The end, exclusive.
    pub end: Offset,
}

/// The shape of a log at one moment. Log start <= counted end <= log end.
pub trait LogView {
    /// The first offset that may be read.
    fn log_start(&self) -> Offset;
    /// The next offset that is given.
    fn log_end(&self) -> Offset;
    /// Up to where, exclusive, the log counts: the flushed end, or the log end where the topic caches writes. A flush
    /// that began before a truncation proves nothing of what was written after it.
    fn counted_end(&self) -> Offset;
    /// The newest leader epoch that began in this log, with or without records.
    fn latest_epoch(&self) -> Option<LeaderEpoch>;
    /// The largest epoch up to `epoch` and where it ends; none where `epoch` is newer than all. An epoch older than all
    /// ends where the first begins.
    fn epoch_end(&self, epoch: LeaderEpoch) -> Option<EpochEnd>;
}
