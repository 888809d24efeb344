//! What must be on disk, handed out as a job: this room owns no thread.
//!
//! * A job lists everything that is not known to be on disk, and the log end of that moment. When it is done, everything
//!   below that end is durable, with the names of the files and the leader epochs that it needs.
//! * It carries the truncation count: what was written behind a truncation is not what the job flushed.
//! * A failure is final: the operating system may have dropped the bytes, and would call the next try a success. Only where
//!   too many files are open nothing was dropped, and the flush is asked again.
//!
//! Kafka: `UnifiedLog.flush`; KAFKA-19571, KAFKA-16541.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use env::{Disk, File};
use model::Offset;

use super::Log;
use crate::names::FileKind;
use crate::segment::Place;
use crate::{StorageError, epochs};

/// Files to be flushed, in order, and what that will prove.
pub struct FlushJob {
    /// Each of them is to be synced. Some stand for a rename or for a folder's names.
    pub files: Vec<Arc<dyn File>>,
    /// The offset, exclusive, up to which everything is on disk when that is done.
    pub end: Offset,
    /// The log's truncation count when the job was made.
    pub truncations: u64,
    /// Up to which of the unsynced files it goes, and to which text of the leader epochs.
    unsynced_end: u64,
    epochs_written: u64,
}

/// Files that are not known to be on disk, numbered in the order in which they were written to. They stay until a job
/// that had them is done, so that every job proves what it says, whatever became of another.
#[derive(Default)]
pub(super) struct Unsynced {
    first: u64,
    files: Vec<Arc<dyn File>>,
}

impl Unsynced {
    pub(super) fn push(&mut self, file: Arc<dyn File>) {
        self.files.push(file);
    }

    fn end(&self) -> u64 {
        self.first + self.files.len() as u64
    }

    fn synced(&mut self, end: u64) {
        let count = end.saturating_sub(self.first).min(self.files.len() as u64);
        self.files.drain(..count as usize);
        self.first += count;
    }
}

impl Extend<Arc<dyn File>> for Unsynced {
    fn extend<T: IntoIterator<Item = Arc<dyn File>>>(&mut self, files: T) {
        self.files.extend(files);
    }
}

impl Log {
    /// Everything that is not known to be on disk; none if there is nothing. It stays that until a job is done. Names of files
    /// alone are nothing: they go with what is in the files.
    pub fn flush_job(&mut self) -> Option<FlushJob> {
        let has_records = self.flushed_end < self.log_end;
        if !has_records && self.unsynced.files.is_empty() && self.epoch_file.pending.is_none() {
            return None;
        }
        if std::mem::take(&mut self.names_unsynced) {
            self.unsynced.push(self.epoch_file.names.clone());
        }
        let mut files: Vec<Arc<dyn File>> = Vec::new();
        files.extend(self.epoch_file.hand_out().map(|commit| commit as Arc<dyn File>));
        files.extend(self.unsynced.files.iter().cloned());
        if has_records {
            files.push(self.segments.last()?.active_file()?);
        }
        Some(FlushJob {
            files,
            end: self.log_end,
            truncations: self.truncations,
            unsynced_end: self.unsynced.end(),
            epochs_written: self.epoch_file.written,
        })
    }

    /// Takes note of what became of a job. Gives back the flushed end.
    ///
    /// # Errors
    /// The flush failed: the log folder is offline for good, unless it is [`StorageError::Io`]: then the next job has all of it
    /// once more.
    pub fn flush_done(&mut self, job: &FlushJob, result: io::Result<()>) -> Result<Offset, StorageError> {
        let active = self.segments.last().map_or(Offset(0), |active| active.base_offset);
        if let Err(error) = result {
            return Err(self.place.folder.flush_failed(&self.place.file(FileKind::Log, active), error));
        }
        self.place.folder.check()?;
        self.unsynced.synced(job.unsynced_end);
        self.epoch_file.synced(job.epochs_written);
        if job.truncations == self.truncations {
            assert!(job.end <= self.log_end, "without a truncation the log only grows");
            self.flushed_end = self.flushed_end.max(job.end);
        }
        Ok(self.flushed_end)
    }

    /// Flushes everything, here and now, and the names in any case.
    pub(super) fn flush_now(&mut self) -> Result<(), StorageError> {
        if std::mem::take(&mut self.names_unsynced) {
            self.unsynced.push(self.epoch_file.names.clone());
        }
        if let Some(job) = self.flush_job() {
            let result = job.files.iter().try_for_each(|file| file.sync());
            self.flush_done(&job, result)?;
        }
        Ok(())
    }

    /// Names in the folder were added or removed.
    pub(super) fn names_changed(&mut self) {
        self.names_unsynced = true;
    }

    /// Writes the leader epochs; they take the old file's place with the next flush.
    pub(super) fn write_epochs(&mut self) -> Result<(), StorageError> {
        self.epochs_unwritten = true;
        self.epoch_file.write(&self.place, &self.epochs.encode())?;
        self.epochs_unwritten = false;
        Ok(())
    }

    /// The folder is about to be removed: what is still in flight need not find it.
    pub(super) fn abandon_flushes(&self) {
        // Whoever renames now holds the lock; who comes later finds the folder gone, whatever has its name then.
        let _committed = self.epoch_file.committed.lock().unwrap_or_else(PoisonError::into_inner);
        self.epoch_file.names.gone.store(true, Ordering::Release);
    }
}

/// The leader epochs' file: written aside, renamed by the flush.
pub(super) struct EpochFile {
    names: Arc<FolderNames>,
    written: u64,
    pending: Option<Arc<EpochCommit>>,
    /// Whether a job has the pending text.
    is_handed_out: bool,
    /// The newest text that has the file's name.
    committed: Arc<Mutex<u64>>,
}

impl EpochFile {
    pub(super) fn new(place: &Place) -> Self {
        let (disk, path) = (place.folder.disk.clone(), place.path.clone());
        let names = Arc::new(FolderNames { disk, path, gone: AtomicBool::new(false) });
        Self { names, written: 0, pending: None, is_handed_out: false, committed: Arc::default() }
    }

    /// Syncing it makes the partition's own folder findable in its log folder.
    pub(super) fn parent_names(&self, parent: &Path) -> Arc<dyn File> {
        let (disk, path) = (self.names.disk.clone(), parent.to_owned());
        Arc::new(FolderNames { disk, path, gone: AtomicBool::new(false) })
    }

    fn hand_out(&mut self) -> Option<Arc<EpochCommit>> {
        self.is_handed_out = true;
        self.pending.clone()
    }

    fn synced(&mut self, number: u64) {
        self.pending.take_if(|pending| pending.number <= number);
    }

    fn write(&mut self, place: &Place, text: &str) -> Result<(), StorageError> {
        let number = self.written + 1;
        let aside = place.path.join(format!("{}.{number}.tmp", epochs::FILE));
        let file = place.folder.write_file(&aside, text.as_bytes())?;
        self.written = number;
        if let Some(superseded) = self.pending.take().filter(|_| !self.is_handed_out) {
            place.folder.remove_file(&superseded.aside)?;
        }
        self.is_handed_out = false;
        let (names, committed) = (self.names.clone(), self.committed.clone());
        let file = Mutex::new(Some(file));
        self.pending = Some(Arc::new(EpochCommit { file, aside, number, names, committed }));
        Ok(())
    }
}

/// Syncing it makes one text of the leader epochs the true one.
struct EpochCommit {
    /// Until it has its name.
    file: Mutex<Option<Arc<dyn File>>>,
    aside: PathBuf,
    number: u64,
    names: Arc<FolderNames>,
    committed: Arc<Mutex<u64>>,
}

/// Syncing it makes the names in a folder durable.
struct FolderNames {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    gone: AtomicBool,
}

impl FolderNames {
    /// Nothing need be found in a folder that is removed.
    fn unless_gone(&self, result: io::Result<()>) -> io::Result<()> {
        if self.gone.load(Ordering::Acquire) { Ok(()) } else { result }
    }

    fn rename(&self, from: &Path, to: &str) -> io::Result<()> {
        self.disk.rename(from, &self.path.join(to))
    }
}

/// A step that goes with a flush as if it were a file; only its sync is called.
macro_rules! only_sync {
    ($name:ident, $self:ident => $sync:block) => {
        impl File for $name {
            fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
                Err(io::ErrorKind::Unsupported.into())
            }

            fn try_read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
                Err(io::ErrorKind::Unsupported.into())
            }

            fn write_at(&self, _: &[IoSlice<'_>], _: u64) -> io::Result<()> {
                Err(io::ErrorKind::Unsupported.into())
            }

            fn len(&self) -> io::Result<u64> {
                Ok(0)
            }

            fn set_len(&self, _: u64) -> io::Result<()> {
                Err(io::ErrorKind::Unsupported.into())
            }

            fn sync(&$self) -> io::Result<()> $sync
        }
    };
}

only_sync!(FolderNames, self => { self.unless_gone(self.disk.sync_dir(&self.path)) });

only_sync!(EpochCommit, self => {
    let mut committed = self.committed.lock().unwrap_or_else(PoisonError::into_inner);
    if self.names.gone.load(Ordering::Acquire) {
        return Ok(());
    }
    let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(unsynced) = file.as_ref().filter(|_| *committed < self.number) {
        unsynced.sync()?;
        self.names.rename(&self.aside, epochs::FILE)?;
        *committed = self.number;
    }
    // Closed now: the folder is to be opened, perhaps with the last descriptor, perhaps in a later try.
    *file = None;
    self.names.sync()
});
