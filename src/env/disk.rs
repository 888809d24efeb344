//! Files: synchronous and positional.
//!
//! Invariants: what was written is durable only after `File::sync`; a new, renamed or removed name only after
//! `Disk::sync_dir` of its folder.

use std::io::{self, IoSlice};
use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::Arc;

/// What is read of a file without asking for its length: a start reads several small ones of each partition.
const SMALL_BYTES: usize = 4 << 10;

/// A file system.
pub trait Disk: Send + Sync {
    /// Opens a file.
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>>;

    /// Makes a folder and those above it; well if it exists.
    fn create_dir_all(&self, path: &Path) -> io::Result<()>;

    /// What is in a folder, sorted by name.
    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>>;

    /// A file's length in bytes.
    fn length(&self, path: &Path) -> io::Result<u64>;

    /// Whether the path exists.
    fn exists(&self, path: &Path) -> io::Result<bool>;

    /// Removes a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes a folder and all in it.
    fn remove_dir_all(&self, path: &Path) -> io::Result<()>;

    /// Renames a file or folder, replacing a file of that name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, folder: &Path) -> io::Result<()>;

    /// Bytes that may still be written to the file system of `path`.
    fn free_bytes(&self, path: &Path) -> io::Result<u64>;

    /// The size in bytes of the file system of `path`.
    fn total_bytes(&self, path: &Path) -> io::Result<u64>;

    /// How many files may be open at once.
    fn open_files_max(&self) -> usize {
        usize::MAX
    }

    /// Takes the lock file at `path` until the guard is dropped; `WouldBlock` where another process has it.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>>;

    /// A whole file of at most `bytes_max`.
    ///
    /// # Errors
    /// `InvalidData` where it is larger.
    fn read(&self, path: &Path, bytes_max: usize) -> io::Result<Vec<u8>> {
        let file = self.open(path, Open::Read)?;
        let mut bytes = vec![0; SMALL_BYTES];
        let mut filled = file.read_at(&mut bytes, 0)?;
        if filled == bytes.len() {
            let length = file.len()?.min(bytes_max as u64 + 1);
            bytes.resize(filled.max(length as usize), 0);
            while filled < bytes.len() {
                match file.read_at(&mut bytes[filled..], filled as u64)? {
                    0 => break,
                    n => filled += n,
                }
            }
        }
        bytes.truncate(filled);
        if filled > bytes_max {
            let why = format!("{} has more than the {bytes_max} bytes that are read at most", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        Ok(bytes)
    }
}

/// How to open a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Open {
    /// For reading; it must exist.
    Read,
    /// For reading and writing; it must exist.
    Write,
    /// For reading and writing; made if it does not exist.
    Create,
    /// For reading and writing, empty.
    Truncate,
}

/// An open file. Reads and writes are positional and may come from several threads.
pub trait File: Send + Sync {
    /// Reads what is there at `position`, up to the buffer's length. 0 is the end; a few KiB come at once if they are there.
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// As `read_at`, but `WouldBlock` where the disk would have to be waited for.
    fn try_read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize>;

    /// Writes all of it at `position`. After an error any part may have been written.
    fn write_at(&self, pieces: &[IoSlice<'_>], position: u64) -> io::Result<()>;

    /// Its length in bytes.
    fn len(&self) -> io::Result<u64>;

    /// Whether it is empty.
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts it, or fills it up with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes what was written durable (fdatasync). A failure must not be tried again, unless it [`is_too_many_files`].
    fn sync(&self) -> io::Result<()>;

    /// The descriptor, where there is one: for sendfile.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A run of bytes in a file.
#[derive(Clone)]
pub struct FileRange {
    /// The file, kept open by this.
    pub file: Arc<dyn File>,
    /// Where the run starts.
    pub position: u64,
    /// How long it is.
    pub length: usize,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name alone.
    pub name: String,
    /// Whether it is a folder.
    pub is_dir: bool,
}

/// Whether there was no space for something, on the disk or in its owner's share of it.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Whether something was not opened only because too many files are open, here or in the system: nothing was lost.
pub fn is_too_many_files(error: &io::Error) -> bool {
    /// Linux's numbers: ENFILE and EMFILE.
    const TOO_MANY_FILES: [i32; 2] = [23, 24];
    error.raw_os_error().is_some_and(|number| TOO_MANY_FILES.contains(&number))
}

/// Replaces the file at `path` as a whole: `.tmp`, sync, rename, sync of the folder. Where the disk is full, what was
/// written of it takes no space afterwards.
pub fn write_atomic(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".tmp");
    let temporary = Path::new(&temporary);
    let file = disk.open(temporary, Open::Truncate)?;
    if let Err(error) = file.write_at(&[IoSlice::new(bytes)], 0) {
        if is_disk_full(&error) {
            disk.remove_file(temporary)?;
        }
        return Err(error);
    }
    file.sync()?;
    disk.rename(temporary, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
}
