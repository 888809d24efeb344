//! Ending a log: in order, or for good.

use super::Log;
use crate::{StorageError, names};

impl Log {
    /// Writes and flushes everything, so that the next start reads nothing but the last few KiB.
    pub fn close(&mut self) -> Result<(), StorageError> {
        self.place.folder.check()?;
        self.settle_checkpoint();
        self.removals.finish()?;
        self.finish_cut()?;
        let active = self.segments.last_mut().expect("a log has an active segment");
        let mut files = active.complete_indexes(&self.place)?;
        files.extend(self.write_snapshot(self.log_end)?);
        if !files.is_empty() {
            self.names_changed();
        }
        self.unsynced.extend(files);
        self.flush_now()
    }

    /// Removes the log and its folder. The new name is durable first: a power cut does not bring it back.
    ///
    /// Nothing else may be asked of it afterwards.
    pub fn delete(&mut self) -> Result<(), StorageError> {
        self.settle_checkpoint();
        let folder = &self.place.folder;
        folder.check()?;
        self.removals.finish()?;
        self.abandon_flushes();
        let gone = folder.path.join(names::deleted_name(&self.topic_partition, self.topic_id));
        folder.checked(&self.place.path, folder.disk.rename(&self.place.path, &gone))?;
        folder.checked(&folder.path, folder.disk.sync_dir(&folder.path))?;
        for segment in &self.segments {
            segment.forget(&self.place);
        }
        folder.checked(&gone, folder.disk.remove_dir_all(&gone))
    }
}
