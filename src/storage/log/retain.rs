//! What becomes old: retention by time and size, the log start offset, producers that write no more.
//!
//! Kafka: `UnifiedLog.deleteOldSegments`, `LogManager.cleanupLogs`.

use model::{Offset, Timestamp};

use super::Log;
use super::removal::Removals;
use crate::StorageError;
use crate::error::unless_full;
use crate::names::FileKind;

/// Segments that one step deletes.
const SEGMENTS_AT_ONCE: usize = 8;

/// What one step of maintenance did to the log, and left to be done to its files.
#[must_use = "files are to be removed"]
pub struct Maintained {
    /// Segments that were deleted.
    pub segments_deleted: usize,
    /// Whether the log start offset moved.
    pub log_start_moved: bool,
    more: bool,
    removals: Removals,
}

impl Maintained {
    /// Removes the files of what was deleted. Waits for the disk; the log is not needed for it. Whether there is more to do:
    /// another step is due soon.
    ///
    /// # Errors
    /// The folder is offline; or something is in the way that passes, and the next step goes on.
    pub fn remove_files(self) -> Result<bool, StorageError> {
        self.removals.finish()?;
        Ok(self.more)
    }
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

    /// One bounded step: forgets idle producers and deletes old segments, whole ones and only below the high watermark. A
    /// full disk does not keep it from that.
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
            removals: self.removals.clone(),
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
        self.settle_checkpoint();
        let (gone, kept): (Vec<Offset>, _) = self.snapshots.iter().partition(|snapshot| **snapshot < start);
        self.snapshots = kept;
        let snapshots = gone.iter().map(|at| self.place.file(FileKind::ProducerSnapshot, *at));
        let mut files: Vec<_> = snapshots.collect();
        for segment in self.segments.drain(..count) {
            files.extend(segment.into_files(&self.place));
            self.removals.push(std::mem::take(&mut files));
        }
        tracing::debug!(
            topic = self.topic_partition.topic.as_str(),
            partition = self.topic_partition.partition,
            offset = start.0,
            count,
            "old segments deleted"
        );
        Ok(())
    }
}
