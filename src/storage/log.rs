//! One partition's log.
//!
//! ```text
//!  log start                flushed end       log end
//!      |                         |               |
//!  ----[ segment ][ segment ][ active segment    ]
//!      what was on disk at the last flush ^      ^ what the operating system was given
//! ```
//!
//! Not locked inside: its owner holds it in a lock that no await crosses. Each file below `log/` is one of its aspects.
//!
//! Kafka: `UnifiedLog`, `LocalLog`, `LogSegments`.

mod append;
mod check;
mod checkpoint;
mod close;
mod flush;
mod read;
pub(crate) mod recover;
mod removal;
mod retain;
mod rewrite;
mod times;
mod truncate;

use std::sync::Arc;

use env::write_atomic;
use model::{LeaderEpoch, Offset, Timestamp, TopicId, TopicPartition};
use protocol::batch::BatchHeader;

pub use append::{Appended, Origin};
pub use checkpoint::CheckpointJob;
pub use close::DeletedLog;
pub use flush::FlushJob;
pub use read::Slice;
pub use retain::Maintained;
pub use times::{TimeSearch, TimestampOffset};

use crate::epochs::LeaderEpochs;
use crate::folder_state::{Purpose, Seat};
use crate::producers::{ProducerState, Producers};
use crate::segment::{Place, Segment};
use crate::tail::Tail;
use crate::{LogConfig, StorageError};
use checkpoint::{HandedOut, Turn};
use flush::{EpochFile, Unsynced};
use removal::Removals;

/// One partition on disk.
#[expect(clippy::struct_field_names, reason = "log start and log end are Kafka's words")]
pub struct Log {
    topic_partition: TopicPartition,
    topic_id: TopicId,
    place: Place,
    config: LogConfig,
    /// By base offset; never empty, the last one is the active one.
    segments: Vec<Segment>,
    log_start: Offset,
    log_end: Offset,
    flushed_end: Offset,
    /// Grows with each truncation: a flush that began before one proves nothing about what came after it.
    truncations: u64,
    epochs: LeaderEpochs,
    epoch_file: EpochFile,
    /// When a cut at the log end began that is not done: too many files were open, for example.
    unfinished_cut: Option<Timestamp>,
    /// The epochs are to be written before the next records: the newest has none yet, or there was no space.
    epochs_unwritten: bool,
    producers: Producers,
    /// The offsets of the producer snapshots on disk, growing.
    snapshots: Vec<Offset>,
    /// Whose turn it is to write index entries and snapshots, and what a job was given of it.
    turn: Arc<Turn>,
    handed_out: Option<HandedOut>,
    removals: Removals,
    tail: Tail,
    /// What was written beside the active log file and is not known to be on disk.
    unsynced: Unsynced,
    /// Whether names in the partition's folder are not known to be on disk.
    names_unsynced: bool,
    /// Of the append that is being done; kept for its capacity.
    headers: Vec<BatchHeader>,
    _seat: Seat,
}

impl Log {
    /// Whose log it is.
    pub fn topic_partition(&self) -> &TopicPartition {
        &self.topic_partition
    }

    /// Its topic's id.
    pub fn topic_id(&self) -> TopicId {
        self.topic_id
    }

    /// Writes a small file of another room into the log's folder, as a whole and durably; it may use the reserve.
    ///
    /// # Errors
    /// The disk failed, which takes the folder offline, or it is full to the last byte.
    pub fn write_beside(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        let (folder, path) = (&self.place.folder, self.place.path.join(name));
        folder.check()?;
        folder.with_reserve(&path, || write_atomic(&*folder.disk, &path, bytes))
    }

    /// As [`Self::write_beside`], for what can wait: the reserve is not for it.
    ///
    /// # Errors
    /// The disk failed, which takes the folder offline, or there is too little space.
    pub fn write_beside_where_space_is(
        &self,
        name: &str,
        bytes: &[u8],
        now: Timestamp,
    ) -> Result<(), StorageError> {
        let (folder, path) = (&self.place.folder, self.place.path.join(name));
        folder.admit(Purpose::Records, now)?;
        if folder.checked(&path, folder.disk.free_bytes(&self.place.path))? < bytes.len() as u64 {
            return Err(StorageError::DiskFull { folder: folder.path.clone() });
        }
        folder.checked(&path, write_atomic(&*folder.disk, &path, bytes))
    }

    /// The first offset that may be read, inclusive.
    pub fn log_start(&self) -> Offset {
        self.log_start
    }

    /// The offset that the next record gets.
    pub fn log_end(&self) -> Offset {
        self.log_end
    }

    /// The offset, exclusive, up to which everything is on disk.
    pub fn flushed_end(&self) -> Offset {
        self.flushed_end
    }

    /// How often it was truncated since it was opened.
    pub fn truncations(&self) -> u64 {
        self.truncations
    }

    /// Bytes of all log files.
    pub fn size_bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.size).sum()
    }

    /// How many segments there are; never 0.
    pub fn segment_count(&self) -> usize {
        self.segments.len()
    }

    /// All leader epochs that are known, and the offset with which each begins, growing.
    pub fn epochs(&self) -> Vec<(LeaderEpoch, Offset)> {
        self.epochs.all()
    }

    /// The newest leader epoch that is known.
    pub fn latest_epoch(&self) -> Option<LeaderEpoch> {
        self.epochs.latest()
    }

    /// The largest epoch up to `epoch` and the offset, exclusive, where it ends. None where `epoch` is newer than all.
    pub fn epoch_end(&self, epoch: LeaderEpoch) -> Option<(LeaderEpoch, Offset)> {
        self.epochs.end_of(epoch, self.log_end)
    }

    /// The epoch that wrote `offset`; of the log end the newest one.
    pub fn epoch_at(&self, offset: Offset) -> Option<LeaderEpoch> {
        self.epochs.at(offset)
    }

    /// Says that a leader's epoch begins at `start`, which is the log end for a new leader. It counts when the next flush
    /// job is done.
    pub fn assign_epoch(&mut self, epoch: LeaderEpoch, start: Offset) -> Result<(), StorageError> {
        self.place.folder.check()?;
        if self.epochs.assign(epoch, start) {
            self.write_epochs()?;
        }
        Ok(())
    }

    /// As [`Self::assign_epoch`], but the epoch is written with its first records: one that stays without records need not
    /// outlive the process, and a node that takes the lead of many partitions writes no file for each.
    pub fn begin_epoch(&mut self, epoch: LeaderEpoch, start: Offset) -> Result<(), StorageError> {
        self.place.folder.check()?;
        self.epochs_unwritten |= self.epochs.assign(epoch, start);
        Ok(())
    }

    /// Where the first open transaction begins, or `high_watermark`.
    pub fn last_stable_offset(&self, high_watermark: Offset) -> Offset {
        self.producers.first_open_transaction().map_or(high_watermark, |open| open.min(high_watermark))
    }

    /// The producers that are known, by id.
    pub fn producers(&self) -> Vec<ProducerState> {
        self.producers.sorted().into_iter().cloned().collect()
    }

    /// The configuration in force.
    pub fn config(&self) -> &LogConfig {
        &self.config
    }

    /// Changes the configuration, from the next operation on.
    pub fn set_config(&mut self, config: LogConfig) {
        self.config = config;
    }

    /// # Errors
    /// The folder is offline.
    pub fn check(&self) -> Result<(), StorageError> {
        self.place.folder.check()
    }

    /// The index of the segment that holds `offset`, or would.
    fn segment_of(&self, offset: Offset) -> usize {
        self.segments.partition_point(|segment| segment.base_offset <= offset).saturating_sub(1)
    }

    /// Where the segment after the `index`th begins; the log end for the last.
    fn segment_end(&self, index: usize) -> Offset {
        self.segments.get(index + 1).map_or(self.log_end, |next| next.base_offset)
    }
}
