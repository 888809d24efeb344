//! A full disk is a normal state.
//!
//! A file of zeros, `.reserve`, is kept in the log folder once space is no longer ample. When a write finds no space it is
//! emptied: from then on clients are refused, and what it occupied is left to metadata, deletes and, half of it, offset commits. When
//! enough space is free again the file is written anew and clients are served. A node that starts and finds the file empty
//! knows that the disk was full: its clients do not get what is left.

use std::io::{self, IoSlice};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use env::{Disk, Open};
use model::{Limits, Timestamp};
use tracing::{info, warn};

const FILE: &str = ".reserve";
/// Bytes of zeros written at once.
const PIECE_BYTES: usize = 1 << 20;
/// With more free bytes than this no reserve is written: even the fastest disk is looked at again before they are gone.
const AMPLE_FREE_BYTES: u64 = 16 << 30;
/// Free bytes with which a file system that is too small for a reserve counts as not full.
const SMALL_FREE_BYTES: u64 = 1 << 20;
/// How long to wait before looking again whether space is free.
const LOOK_INTERVAL_MS: i64 = 1000;

/// The reserve of one log folder.
pub(crate) struct Reserve {
    folder: PathBuf,
    full: AtomicBool,
    /// Whether the file was there when the disk became full, and is empty since.
    released: AtomicBool,
    looked: AtomicI64,
}

impl Reserve {
    /// As it was left: a file that cannot be read is renewed, or not, like one that is not there.
    pub(crate) fn of(disk: &dyn Disk, folder: PathBuf) -> Self {
        let length = disk.open(&folder.join(FILE), Open::Read).and_then(|file| file.len());
        let released = length.is_ok_and(|length| length == 0);
        let (full, released) = (AtomicBool::new(released), AtomicBool::new(released));
        Self { folder, full, released, looked: AtomicI64::new(i64::MIN) }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Takes note that a write found no space; gives back whether the reserve made some.
    pub(crate) fn release(&self, disk: &dyn Disk) -> bool {
        if !self.full.swap(true, Ordering::Relaxed) {
            warn!(
                folder = %self.folder.display(),
                "the disk is full: records are refused until there is space; delete topics, shorten retention or make space"
            );
        }
        let released = self.empty(disk).unwrap_or(false);
        self.released.fetch_or(released, Ordering::Relaxed);
        released
    }

    /// Gives back whether there was anything in the file.
    fn empty(&self, disk: &dyn Disk) -> io::Result<bool> {
        let file = disk.open(&self.folder.join(FILE), Open::Write)?;
        let had_some = !file.is_empty()?;
        file.set_len(0)?;
        Ok(had_some)
    }

    /// Whether a client may write; looks for free space at most once a second.
    pub(crate) fn admits(&self, disk: &dyn Disk, now: Timestamp) -> bool {
        if self.is_full() && now.0.saturating_sub(self.looked.load(Ordering::Relaxed)) >= LOOK_INTERVAL_MS {
            self.looked.store(now.0, Ordering::Relaxed);
            self.restore(disk);
        }
        !self.is_full()
    }

    /// Writes the file where it is not there, space is not ample, and twice its size is free; then the disk is not full
    /// any more.
    pub(crate) fn restore(&self, disk: &dyn Disk) {
        let free = disk.free_bytes(&self.folder).unwrap_or(0);
        let had_one = self.released.load(Ordering::Relaxed);
        let is_ample = free > AMPLE_FREE_BYTES;
        if is_ample || (free >= 2 * Limits::DISK_RESERVE_BYTES && self.write(disk).is_ok()) {
            self.has_space();
            self.released.store(false, Ordering::Relaxed);
        } else if !had_one && free >= SMALL_FREE_BYTES {
            self.has_space();
        }
    }

    fn has_space(&self) {
        if self.full.swap(false, Ordering::Relaxed) {
            info!(folder = %self.folder.display(), "the disk has space again: records are taken");
        }
    }

    fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        let path = self.folder.join(FILE);
        let file = disk.open(&path, Open::Create)?;
        let zeros = vec![0; PIECE_BYTES];
        let mut position = file.len()?;
        while position < Limits::DISK_RESERVE_BYTES {
            let left = (Limits::DISK_RESERVE_BYTES - position).min(PIECE_BYTES as u64) as usize;
            let piece = IoSlice::new(zeros.get(..left).unwrap_or_default());
            if let Err(error) = file.write_at(&[piece], position) {
                self.give_up(disk, &path)?;
                return Err(error);
            }
            position += left as u64;
        }
        Ok(())
    }

    /// After a failed write: an empty file would say that there once was a whole one.
    fn give_up(&self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        if self.released.load(Ordering::Relaxed) {
            return self.empty(disk).map(drop);
        }
        disk.remove_file(path)
    }
}
