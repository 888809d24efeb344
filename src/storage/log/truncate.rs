//! Cutting the end off, as a follower does that has what its leader does not.

use model::{Offset, Timestamp};

use super::Log;
use crate::StorageError;
use crate::names::FileKind;
use crate::segment::Segment;

impl Log {
    /// Removes all batches that reach to `end` or beyond: the log ends there, or earlier where `end` lies inside a batch.
    /// The leader epochs are cut even where no batch is. Durable when it returns.
    pub fn truncate_to(&mut self, end: Offset, now: Timestamp) -> Result<(), StorageError> {
        self.place.folder.check()?;
        if self.epochs.truncate_end(end) {
            self.write_epochs()?;
        }
        if end >= self.log_end {
            return Ok(());
        }
        if end <= self.first_base() {
            return self.truncate_fully_and_start_at(end, now);
        }
        self.forget_from(end);
        self.remove_segments_from(end)?;
        self.cut_active(end)?;
        self.remove_snapshots(|snapshot, log_end| snapshot > log_end)?;
        self.reload_producers(now)?;
        self.sync_truncation()
    }

    /// Removes everything; the next record gets the offset `start`. Durable when it returns.
    pub fn truncate_fully_and_start_at(&mut self, start: Offset, now: Timestamp) -> Result<(), StorageError> {
        self.place.folder.check()?;
        self.forget_from(start.min(self.first_base()));
        while let Some(segment) = self.segments.pop() {
            segment.remove(&self.place)?;
        }
        self.segments.push(Segment::create(&self.place, start, now)?);
        (self.log_start, self.log_end, self.flushed_end) = (start, start, start);
        self.producers.clear();
        self.remove_snapshots(|_, _| true)?;
        self.epochs = crate::epochs::LeaderEpochs::default();
        self.write_epochs()?;
        self.sync_truncation()
    }

    fn first_base(&self) -> Offset {
        self.segments.first().map_or(self.log_start, |first| first.base_offset)
    }

    /// From here on no flush that began before counts.
    fn forget_from(&mut self, end: Offset) {
        self.truncations += 1;
        self.tail.truncate(end);
        self.flushed_end = self.flushed_end.min(end);
    }

    // The newest first: whatever a power cut leaves has no gap.
    fn remove_segments_from(&mut self, end: Offset) -> Result<(), StorageError> {
        while self.segments.last().is_some_and(|last| last.base_offset >= end) {
            if let Some(segment) = self.segments.pop() {
                segment.remove(&self.place)?;
            }
        }
        Ok(())
    }

    fn cut_active(&mut self, end: Offset) -> Result<(), StorageError> {
        let interval_bytes = self.config.index_interval_bytes;
        let active = self.segments.last_mut().expect("the first segment begins below the end");
        active.activate(&self.place)?;
        // Where the end lies inside a batch, that batch goes.
        let log_end = match active.find(&self.place, end, interval_bytes)? {
            Some((_, header)) => header.base_offset.min(end),
            None => end,
        };
        self.unsynced.extend(active.truncate(&self.place, end, interval_bytes)?);
        self.log_end = log_end;
        self.log_start = self.log_start.min(log_end);
        self.flushed_end = self.flushed_end.min(log_end);
        self.unflushed_files()
    }

    /// All files that hold offsets behind the flushed end are to be flushed again.
    pub(super) fn unflushed_files(&mut self) -> Result<(), StorageError> {
        for index in self.segment_of(self.flushed_end)..self.segments.len() {
            if self.segment_end(index) > self.flushed_end
                && let Some(segment) = self.segments.get(index)
            {
                self.unsynced.push(segment.file(&self.place)?);
            }
        }
        Ok(())
    }

    /// A removed segment must not come back beside what is written in its place: its name goes now.
    fn sync_truncation(&mut self) -> Result<(), StorageError> {
        let path = self.place.file(FileKind::Log, self.log_end);
        self.place.folder.checked(&path, self.place.folder.disk.sync_dir(&self.place.path))
    }
}
