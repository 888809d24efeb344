//! What becomes old: retention by time and size, the log start offset, producers that write no more.
//!
//! Kafka: `UnifiedLog.deleteOldSegments`, `LogManager.cleanupLogs`.

use std::sync::Arc;

use env::File;
use model::{Offset, Timestamp};

use super::Log;
use crate::error::unless_full;
use crate::names::FileKind;
use crate::{LogCheckpoint, StorageError, snapshot};

/// Segments that one step deletes.
const SEGMENTS_AT_ONCE: usize = 8;

/// What one step of maintenance did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Maintained {
    /// Segments that were deleted.
    pub segments_deleted: usize,
    /// Whether the log start offset moved.
    pub log_start_moved: bool,
    /// Whether there is more to do: call again soon.
    pub more: bool,
}

impl Log {
    /// The log begins at `start` from now on: nothing below is read any more, and it will be deleted.
    ///
    /// # Errors
    /// `start` is beyond the log end. Below the log start nothing happens.
    pub fn advance_log_start(&mut self, start: Offset) -> Result<(), StorageError> {
        self.place.folder.check()?;
        if start > self.log_end {
            let (log_start, log_end) = (self.log_start, self.log_end);
            return Err(StorageError::OutOfRange { offset: start, log_start, log_end });
        }
        if start > self.log_start {
            self.log_start = start;
            if self.epochs.truncate_start(start) {
                // A file that says more does no harm.
                unless_full(self.write_epochs())?;
            }
        }
        Ok(())
    }

    /// One bounded step, which waits for the disk where segments are deleted: forgets idle producers and deletes old
    /// segments, whole ones and only below the high watermark. A full disk does not keep it from that.
    pub fn maintain(&mut self, now: Timestamp, high_watermark: Offset) -> Result<Maintained, StorageError> {
        self.place.folder.check()?;
        self.producers.expire(now, self.config.producer_id_expiration_ms);
        for segment in &mut self.segments {
            self.unsynced.extend(unless_full(segment.unload(&self.place))?);
        }
        let log_start = self.log_start;
        let deletable = self.deletable(now, high_watermark)?;
        let mut segments_deleted = deletable.min(SEGMENTS_AT_ONCE);
        if segments_deleted == self.segments.len() {
            // Where there is no space for a new one, the last one goes after the others.
            let has_rolled = unless_full(self.roll(self.log_end, now).map(|()| true))?;
            segments_deleted -= usize::from(!has_rolled);
        }
        if segments_deleted > 0 {
            self.delete_first(segments_deleted)?;
        }
        Ok(Maintained {
            segments_deleted,
            log_start_moved: self.log_start != log_start,
            more: segments_deleted > 0 && deletable > segments_deleted,
        })
    }

    /// How many segments, from the first on, are too old or too many.
    fn deletable(&self, now: Timestamp, high_watermark: Offset) -> Result<usize, StorageError> {
        let config = &self.config;
        let is_old = |timestamp: Timestamp| now.0.saturating_sub(timestamp.0) > config.retention_ms;
        let by_time = config.cleanup.delete && config.retention_ms >= 0;
        let by_size = config.cleanup.delete && config.retention_bytes >= 0;
        let mut excess = self.size_bytes() as i64 - config.retention_bytes;
        let mut count = 0;
        for (index, segment) in self.segments.iter().enumerate() {
            let is_active = index + 1 == self.segments.len();
            if self.segment_end(index) > high_watermark || (is_active && segment.size == 0) {
                break;
            }
            excess -= segment.size as i64;
            let below_start = !is_active && self.segment_end(index) <= self.log_start;
            let by_size = by_size && excess >= 0;
            if !(below_start || by_size || by_time && is_old(self.latest_timestamp(index)?)) {
                break;
            }
            count += 1;
        }
        Ok(count)
    }

    fn latest_timestamp(&self, index: usize) -> Result<Timestamp, StorageError> {
        let Some(segment) = self.segments.get(index) else { return Ok(Timestamp::NONE) };
        let latest = segment.latest(&self.place, self.config.index_interval_bytes)?.0;
        Ok(if latest == Timestamp::NONE { segment.created } else { latest })
    }

    fn delete_first(&mut self, count: usize) -> Result<(), StorageError> {
        let start = self.segment_end(count - 1);
        self.advance_log_start(start)?;
        for _ in 0..count {
            self.segments.remove(0).remove(&self.place)?;
            // One by one: a power cut must not bring back one whose successor is gone.
            self.sync_names()?;
        }
        self.remove_snapshots(|snapshot, _| snapshot < start)?;
        tracing::debug!(
            topic = self.topic_partition.topic.as_str(),
            partition = self.topic_partition.partition,
            offset = start.0,
            count,
            "old segments deleted"
        );
        Ok(())
    }

    /// Writes what a restart after a kill need not find out again: the index entries and the producers so far. Nothing
    /// waits for it to be on disk: what a power cut leaves of it is checked before it is used. Gives back what the folder's
    /// checkpoints are to say of this log.
    ///
    /// # Errors
    /// The folder is offline; a full disk is not one.
    pub fn checkpoint(&mut self, high_watermark: Offset) -> Result<LogCheckpoint, StorageError> {
        self.place.folder.gather_recovery_point(&self.topic_partition);
        if let Err(error) = self.write_hints() {
            self.place.folder.check()?;
            tracing::warn!(path = %self.place.path.display(), %error, "a restart after a kill will take longer");
        }
        Ok(LogCheckpoint {
            topic_partition: self.topic_partition.clone(),
            recovery_point: self.flushed_end,
            log_start: self.log_start,
            high_watermark,
        })
    }

    fn write_hints(&mut self) -> Result<(), StorageError> {
        self.place.folder.check()?;
        let active = self.segments.last_mut().expect("a log has an active segment");
        active.write_indexes(&self.place)?;
        self.write_snapshot(self.log_end)?;
        self.remove_stray_snapshots()
    }

    /// Writes the producers as of `offset`, which is the log end. Gives back the file, where there was none yet.
    pub(super) fn write_snapshot(&mut self, offset: Offset) -> Result<Option<Arc<dyn File>>, StorageError> {
        if self.snapshots.last().is_some_and(|last| *last >= offset) {
            return Ok(None);
        }
        let path = self.place.file(FileKind::ProducerSnapshot, offset);
        let file = self.place.folder.write_file(&path, &snapshot::encode(&self.producers))?;
        self.snapshots.push(offset);
        Ok(Some(file))
    }

    /// Keeps the snapshots at the segments' starts and the last two of those between.
    pub(super) fn remove_stray_snapshots(&mut self) -> Result<(), StorageError> {
        let bases: Vec<Offset> = self.segments.iter().map(|segment| segment.base_offset).collect();
        let is_stray = |snapshot: &&Offset| bases.binary_search(snapshot).is_err();
        let kept = self.snapshots.iter().rev().filter(is_stray).nth(1).copied().unwrap_or(Offset(0));
        self.remove_snapshots(|snapshot, _| snapshot < kept && bases.binary_search(&snapshot).is_err())
    }

    /// Removes the producer snapshots that are `unwanted`, given their offset and the log end.
    pub(super) fn remove_snapshots(
        &mut self,
        unwanted: impl Fn(Offset, Offset) -> bool,
    ) -> Result<(), StorageError> {
        let log_end = self.log_end;
        let (gone, kept): (Vec<Offset>, _) =
            self.snapshots.iter().partition(|snapshot| unwanted(**snapshot, log_end));
        self.snapshots = kept;
        for snapshot in gone {
            self.place.folder.remove_file(&self.place.file(FileKind::ProducerSnapshot, snapshot))?;
        }
        Ok(())
    }
}
