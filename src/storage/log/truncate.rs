//! Cutting the end off, as a follower does that has what its leader does not.

use model::{Offset, Timestamp};

use super::Log;
use crate::StorageError;
use crate::segment::Segment;

impl Log {
    /// Removes all batches that reach to `end` or beyond: the log ends there, or earlier where `end` lies inside a batch,
    /// but not below the log start. Where `end` is below that, nothing is left, and the log starts at `end`.
    /// The leader epochs are cut even where no batch is. Waits for the disk: what was cut off does not come back.
    ///
    /// # Errors
    /// The folder is offline; or something is in the way that passes: then the cut is to be asked for again.
    pub fn truncate_to(&mut self, end: Offset, now: Timestamp) -> Result<(), StorageError> {
        self.place.folder.check()?;
        if self.epochs.truncate_end(end) {
            self.write_epochs()?;
        }
        if end < self.log_end {
            if end <= self.log_start || self.batch_boundary(end)? <= self.log_start {
                return self.truncate_fully_and_start_at(end.min(self.log_start), now);
            }
            let end = self.batch_boundary(end)?;
            self.forget_from(end)?;
            self.log_end = end;
            self.unfinished_cut = Some(now);
        }
        self.finish_cut()
    }

    /// Removes what a cut left behind the log end, before anything is written there.
    pub(super) fn finish_cut(&mut self) -> Result<(), StorageError> {
        let Some(begun) = self.unfinished_cut else { return Ok(()) };
        self.remove_segments_behind_end()?;
        self.cut_active()?;
        self.remove_snapshots(|snapshot, log_end| snapshot > log_end)?;
        self.reload_producers(begun)?;
        self.sync_names()?;
        self.unfinished_cut = None;
        Ok(())
    }

    /// Removes everything; the next record gets the offset `start`. Waits for the disk.
    ///
    /// # Errors
    /// As of [`Self::truncate_to`].
    pub fn truncate_fully_and_start_at(&mut self, start: Offset, now: Timestamp) -> Result<(), StorageError> {
        self.place.folder.check()?;
        self.removals.finish()?;
        let first = self.segments.first().map_or(start, |first| first.base_offset);
        self.forget_from(start.min(first))?;
        // What may be hindered comes first: a log is never without a segment.
        let fresh = Segment::create(&self.place, start, now)?;
        // Its file may be one that had records.
        self.unsynced.extend(fresh.active_file());
        let old = std::mem::replace(&mut self.segments, vec![fresh]);
        (self.log_start, self.log_end, self.flushed_end) = (start, start, start);
        self.unfinished_cut = None;
        self.names_changed();
        for segment in old.into_iter().rev() {
            if segment.base_offset == start {
                segment.forget(&self.place);
            } else {
                self.removals.push(segment.into_files(&self.place));
            }
        }
        self.removals.finish()?;
        self.producers.clear();
        self.remove_snapshots(|_, _| true)?;
        self.epochs = crate::epochs::LeaderEpochs::default();
        self.write_epochs()?;
        self.flush_now()
    }

    /// From here on no flush that began before counts.
    fn forget_from(&mut self, end: Offset) -> Result<(), StorageError> {
        self.settle_checkpoint();
        self.place.folder.lower_checkpoints(&self.topic_partition, end)?;
        self.truncations += 1;
        self.tail.truncate(end);
        self.flushed_end = self.flushed_end.min(end);
        Ok(())
    }

    // The newest first: whatever a power cut leaves has no gap.
    fn remove_segments_behind_end(&mut self) -> Result<(), StorageError> {
        self.removals.finish()?;
        while let Some(segment) = self.segments.pop_if(|last| last.base_offset >= self.log_end) {
            self.removals.push(segment.into_files(&self.place));
        }
        self.removals.finish()
    }

    /// `end`, or where the batch begins that it lies in.
    fn batch_boundary(&self, end: Offset) -> Result<Offset, StorageError> {
        let holder = self.segments.get(self.segment_of(end));
        let interval_bytes = self.config.index_interval_bytes;
        let found = holder.map_or(Ok(None), |segment| segment.find(&self.place, end, interval_bytes))?;
        Ok(found.map_or(end, |(_, header)| header.base_offset.min(end)))
    }

    fn cut_active(&mut self) -> Result<(), StorageError> {
        let active = self.segments.last_mut().expect("the first segment begins below the end");
        active.activate(&self.place)?;
        let files = active.truncate(&self.place, self.log_end, self.config.index_interval_bytes)?;
        self.unsynced.extend(files);
        self.unflushed_files()
    }

    /// All files that hold offsets behind the flushed end are to be flushed again.
    pub(super) fn unflushed_files(&mut self) -> Result<(), StorageError> {
        // The active one is in every job that has records.
        for index in self.segment_of(self.flushed_end)..self.segments.len() - 1 {
            if self.segment_end(index) > self.flushed_end
                && let Some(segment) = self.segments.get(index)
            {
                self.unsynced.push(segment.file(&self.place)?);
            }
        }
        Ok(())
    }

    /// What was removed must not come back beside what is written in its place: its name goes now.
    pub(super) fn sync_names(&self) -> Result<(), StorageError> {
        let folder = &self.place.folder;
        folder.checked(&self.place.path, folder.disk.sync_dir(&self.place.path))
    }
}
