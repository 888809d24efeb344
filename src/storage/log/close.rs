//! Ending a log: in order, or for good.

use std::path::PathBuf;
use std::sync::Arc;

use super::Log;
use crate::folder_state::FolderState;
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

    /// Gives the log's folder the name of one that is to be removed, durably: a power cut does not bring the log back.
    ///
    /// Nothing else may be asked of it afterwards.
    ///
    /// # Errors
    /// The folder is offline, or the name could not be changed.
    pub fn delete(&mut self) -> Result<DeletedLog, StorageError> {
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
        Ok(DeletedLog { folder: folder.clone(), path: gone })
    }
}

/// What is left of a log that was deleted. If its files are not removed now, [`crate::LogFolder::maintain`] does it.
#[must_use]
pub struct DeletedLog {
    folder: Arc<FolderState>,
    path: PathBuf,
}

impl DeletedLog {
    /// Removes the files, which upkeep may have done already. May take long.
    ///
    /// # Errors
    /// Of the disk.
    pub fn remove_files(self) -> Result<(), StorageError> {
        self.folder.remove_folder(&self.path)
    }
}
