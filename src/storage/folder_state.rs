//! What all logs of a folder share: its disk, whether it still works, open files, the tail budget.
//!
//! Every result of a file operation passes [`FolderState::checked`], which tells three kinds apart: no space (a normal
//! state), what concerns one call or one file only, and a disk that failed, which takes the folder offline for good.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use env::{Disk, File, Open, is_disk_full, is_too_many_files};
use model::{Limits, Timestamp};

use crate::checkpoints::Checkpoints;
use crate::open_files::OpenFiles;
use crate::reserve::Reserve;
use crate::{StorageError, TailBudget};

/// What a write is for: may it use the space that is kept for when the disk is full?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A client's records, directly or by way of a leader.
    Records,
    /// What lets the broker go on: commits, metadata, checkpoints.
    Upkeep,
}

/// The shared state of one log folder.
pub(crate) struct FolderState {
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) path: PathBuf,
    pub(crate) files: OpenFiles,
    pub(crate) tail: TailBudget,
    pub(crate) reserve: Reserve,
    pub(crate) checkpoints: Mutex<Checkpoints>,
    offline: OnceLock<StorageError>,
    /// Who waits for it to go offline.
    watcher: Mutex<Option<Waker>>,
}

/// A log's place among the open ones.
pub(crate) struct Seat(Arc<FolderState>);

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.files.leave();
    }
}

impl FolderState {
    pub(crate) fn new(disk: Arc<dyn Disk>, path: PathBuf, tail: TailBudget) -> Self {
        let files = OpenFiles::new(disk.open_files_max());
        let reserve = Reserve::of(&*disk, path.clone());
        let checkpoints = Mutex::default();
        Self {
            disk,
            path,
            files,
            tail,
            reserve,
            checkpoints,
            offline: OnceLock::new(),
            watcher: Mutex::default(),
        }
    }

    /// # Errors
    /// The folder is offline.
    pub(crate) fn check(&self) -> Result<(), StorageError> {
        self.offline.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    /// Why the folder is offline.
    pub(crate) fn offline(&self) -> Option<&StorageError> {
        self.offline.get()
    }

    /// Ready when the folder is offline. One task can wait for that.
    pub(crate) fn poll_offline(&self, cx: &Context<'_>) -> Poll<()> {
        *self.watcher() = Some(cx.waker().clone());
        if self.offline.get().is_some() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn watcher(&self) -> MutexGuard<'_, Option<Waker>> {
        self.watcher.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the folder offline for good.
    pub(crate) fn fail(&self, path: &Path, error: &io::Error) -> StorageError {
        let (folder, path) = (self.path.clone(), path.to_owned());
        let offline = StorageError::Offline { folder, path, cause: error.to_string() };
        if self.offline.set(offline.clone()).is_ok() {
            tracing::error!(folder = %self.path.display(), %error, "log folder is offline");
            self.watcher().take().into_iter().for_each(Waker::wake);
        }
        offline
    }

    /// Sorts out the failure of an operation on `path`.
    pub(crate) fn checked<T>(&self, path: &Path, result: io::Result<T>) -> Result<T, StorageError> {
        let error = match result {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        if is_disk_full(&error) {
            self.reserve.release(&*self.disk);
            return Err(StorageError::DiskFull { folder: self.path.clone() });
        }
        if concerns_one_call(&error) {
            return Err(StorageError::Io { path: path.to_owned(), cause: Arc::new(error) });
        }
        Err(self.fail(path, &error))
    }

    /// What a failed flush means: it is final, unless all that failed was opening something.
    pub(crate) fn flush_failed(&self, path: &Path, error: io::Error) -> StorageError {
        if is_too_many_files(&error) {
            return StorageError::Io { path: path.to_owned(), cause: Arc::new(error) };
        }
        self.fail(path, &error)
    }

    /// Runs an operation that needs space; where there is none, once more with what the reserve gives.
    pub(crate) fn with_reserve<T>(
        &self,
        path: &Path,
        operation: impl Fn() -> io::Result<T>,
    ) -> Result<T, StorageError> {
        let result = match operation() {
            Err(error) if is_disk_full(&error) && self.reserve.release(&*self.disk) => operation(),
            result => result,
        };
        self.checked(path, result)
    }

    /// Counts a log in until the seat is dropped.
    pub(crate) fn seat(self: &Arc<Self>, path: &Path) -> Result<Seat, StorageError> {
        let refused = |files_max| {
            let cause = format!("{files_max} logs are open; raise the limit of open files (ulimit -n)");
            StorageError::Io { path: path.to_owned(), cause: Arc::new(io::Error::other(cause)) }
        };
        self.files.enter().map_err(refused)?;
        Ok(Seat(self.clone()))
    }

    /// Writes all of it at `position`.
    pub(crate) fn write(
        &self,
        path: &Path,
        file: &dyn File,
        bytes: &[u8],
        position: u64,
        purpose: Purpose,
    ) -> Result<(), StorageError> {
        let write = || file.write_at(&[IoSlice::new(bytes)], position);
        match purpose {
            Purpose::Records => self.checked(path, write()),
            Purpose::Upkeep => self.with_reserve(path, write),
        }
    }

    /// Writes a small file as a whole, not yet durable.
    pub(crate) fn write_file(&self, path: &Path, bytes: &[u8]) -> Result<Arc<dyn File>, StorageError> {
        self.with_reserve(path, || {
            let file = self.disk.open(path, Open::Truncate)?;
            file.write_at(&[IoSlice::new(bytes)], 0)?;
            Ok(file)
        })
    }

    /// A small file's bytes; none where it is not there.
    pub(crate) fn read_file(&self, path: &Path) -> Result<Option<Vec<u8>>, StorageError> {
        match self.disk.read(path, Limits::SMALL_FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            result => self.checked(path, result).map(Some),
        }
    }

    /// Removes a file; well if it is not there.
    pub(crate) fn remove_file(&self, path: &Path) -> Result<(), StorageError> {
        self.removed(path, self.disk.remove_file(path))
    }

    /// Removes a folder and all that is in it; one that is not there is removed already.
    pub(crate) fn remove_folder(&self, path: &Path) -> Result<(), StorageError> {
        self.removed(path, self.disk.remove_dir_all(path))
    }

    fn removed(&self, path: &Path, result: io::Result<()>) -> Result<(), StorageError> {
        match result {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => self.checked(path, result),
        }
    }

    /// # Errors
    /// The disk is full for what a client writes.
    pub(crate) fn admit(&self, purpose: Purpose, now: Timestamp) -> Result<(), StorageError> {
        self.check()?;
        if purpose == Purpose::Records && !self.reserve.admits(&*self.disk, now) {
            return Err(StorageError::DiskFull { folder: self.path.clone() });
        }
        Ok(())
    }
}

/// Failures that say nothing about the disk: of the process's limits, or of one name.
fn concerns_one_call(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, NotFound, OutOfMemory, WouldBlock};
    matches!(error.kind(), InvalidData | NotFound | OutOfMemory | WouldBlock) || is_too_many_files(error)
}
