//! Files of segments that the log has no more: those of retention are removed where no append waits for it.
//!
//! Invariants
//! * One segment after the other, whoever removes it: a power cut leaves no gap. Retention takes the oldest first, a cut the
//!   newest.
//! * Before a log makes files of names that it had before, those are gone.
//!
//! Kafka: `LocalLog.deleteSegmentFiles`, which waits for `file.delete.delay.ms` instead: its readers open files by name.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::StorageError;
use crate::segment::Place;

/// What is to be removed of one log, in order.
#[derive(Clone)]
pub(super) struct Removals {
    place: Place,
    /// The files of a segment each.
    queue: Arc<Mutex<VecDeque<Vec<PathBuf>>>>,
}

impl Removals {
    pub(super) fn new(place: &Place) -> Self {
        Self { place: place.clone(), queue: Arc::default() }
    }

    pub(super) fn push(&self, files: Vec<PathBuf>) {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).push_back(files);
    }

    /// Removes all. Waits for the disk.
    ///
    /// # Errors
    /// The folder is offline; or something is in the way that passes: then the rest stays for the next time.
    pub(super) fn finish(&self) -> Result<(), StorageError> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Place { folder, path } = &self.place;
        while let Some(files) = queue.front() {
            folder.check()?;
            files.iter().try_for_each(|file| folder.remove_file(file))?;
            folder.checked(path, folder.disk.sync_dir(path))?;
            queue.pop_front();
        }
        Ok(())
    }
}
