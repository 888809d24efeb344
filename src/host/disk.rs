//! Files of the operating system.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::sync::Arc;

use env::{Disk, Entry, File, Open};
use rustix::fs::{FlockOperation, fcntl_lock, fdatasync, flock, fsync, statvfs};
use rustix::io::{Errno, pread, pwritev, retry_on_intr};
use rustix::process::{Resource, getrlimit};

/// The file systems of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostDisk;

struct HostFile(fs::File);

/// A file locked for as long as this lives: closing it unlocks.
struct Locked(#[expect(dead_code, reason = "held for its descriptor")] fs::File);

/// The most pieces that one pwritev takes (IOV_MAX).
const PIECES_MAX: usize = 1024;

impl Disk for HostDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut options = fs::OpenOptions::new();
        options.read(true).write(how != Open::Read);
        options.create(matches!(how, Open::Create | Open::Truncate)).truncate(how == Open::Truncate);
        Ok(Arc::new(HostFile(options.open(path)?)))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::create_dir_all(path)
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            entries.push(Entry { name, is_dir: entry.file_type()?.is_dir() });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        Ok(fs::metadata(path)?.len())
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        fs::exists(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir_all(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        let folder = fs::File::open(folder)?;
        Ok(retry_on_intr(|| fsync(&folder))?)
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let status = statvfs(path)?;
        Ok(status.f_bavail.saturating_mul(status.f_frsize))
    }

    fn total_bytes(&self, path: &Path) -> io::Result<u64> {
        let status = statvfs(path)?;
        Ok(status.f_blocks.saturating_mul(status.f_frsize))
    }

    fn open_files_max(&self) -> usize {
        getrlimit(Resource::Nofile).current.map_or(usize::MAX, |limit| limit as usize)
    }

    // Two locks: Kafka's is the POSIX one, which knows processes only; flock also keeps two nodes of one process apart.
    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        let file = fs::OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive)?;
        match fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::ACCESS) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other.map(|()| Box::new(Locked(file)))?),
        }
    }
}

impl File for HostFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        Ok(retry_on_intr(|| pread(&self.0, &mut *buffer, position))?)
    }

    #[cfg(target_os = "linux")]
    fn try_read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let pieces = &mut [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(&self.0, pieces, position, rustix::io::ReadWriteFlags::NOWAIT) {
            // A file system that does not know the flag might wait.
            Err(Errno::OPNOTSUPP | Errno::INTR) => Err(io::ErrorKind::WouldBlock.into()),
            other => Ok(other?),
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn try_read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        self.read_at(buffer, position)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        write_all(pieces, position, |some, at| pwritev(&self.0, some, at))
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        // An interrupted sync is not a failed one: nothing was lost.
        Ok(retry_on_intr(|| fdatasync(&self.0))?)
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.0.as_fd())
    }
}

/// Calls `write` until it has taken all the pieces: it may take a part, or be interrupted.
fn write_all(
    pieces: &[IoSlice<'_>],
    mut position: u64,
    mut write: impl FnMut(&[IoSlice<'_>], u64) -> Result<usize, Errno>,
) -> io::Result<()> {
    let mut pieces = pieces.to_vec();
    let mut left = &mut pieces[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match write(&left[..left.len().min(PIECES_MAX)], position) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                position += written as u64;
                IoSlice::advance_slices(&mut left, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    fn content(path: &Path) -> Vec<u8> {
        HostDisk.read(path, 1 << 20).unwrap()
    }

    #[test]
    fn a_partial_or_interrupted_write_is_carried_on() {
        let mut out = Vec::new();
        let mut turn = 0;
        let pieces = [&b"ab"[..], b"", b"cdefg", b"h"].map(IoSlice::new);
        write_all(&pieces, 7, |some, at| {
            turn += 1;
            if turn % 2 == 0 {
                return Err(Errno::INTR);
            }
            assert_eq!(at, 7 + out.len() as u64);
            let bytes: Vec<u8> = some.iter().flat_map(|piece| piece.iter().copied()).take(3).collect();
            out.extend_from_slice(&bytes);
            Ok(bytes.len())
        })
        .unwrap();
        assert_eq!(out, b"abcdefgh");
    }

    #[test]
    fn a_write_that_takes_nothing_is_an_error() {
        let error = write_all(&[IoSlice::new(b"a")], 0, |_, _| Ok(0)).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WriteZero);
        write_all(&[], 0, |_, _| Ok(0)).unwrap();
    }

    #[test]
    fn more_pieces_than_the_kernel_takes_at_once_are_written() {
        let folder = folder();
        let path = folder.path().join("a");
        let file = HostDisk.open(&path, Open::Create).unwrap();
        file.write_at(&vec![IoSlice::new(b"xy"); 3000], 1).unwrap();
        assert_eq!(file.len().unwrap(), 6001);
        assert_eq!(content(&path)[..4], *b"\0xyx");
    }

    #[test]
    fn reads_end_at_the_end_of_the_file() {
        let folder = folder();
        let file = HostDisk.open(&folder.path().join("a"), Open::Create).unwrap();
        file.write_at(&[IoSlice::new(b"hello")], 0).unwrap();
        let mut buffer = [0; 8];
        assert_eq!(file.read_at(&mut buffer, 1).unwrap(), 4);
        assert_eq!(&buffer[..4], b"ello");
        assert_eq!(file.try_read_at(&mut buffer, 5).unwrap(), 0);
    }

    #[test]
    fn a_file_of_any_length_is_read_whole_or_not_at_all() {
        let folder = folder();
        let path = folder.path().join("a");
        for length in [0, 1, 4095, 4096, 4097, 100_000] {
            let bytes: Vec<u8> = (0..length).map(|n| n as u8).collect();
            HostDisk.open(&path, Open::Truncate).unwrap().write_at(&[IoSlice::new(&bytes)], 0).unwrap();
            assert_eq!(HostDisk.read(&path, length).unwrap(), bytes);
            if length > 0 {
                let error = HostDisk.read(&path, length - 1).unwrap_err();
                assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{length}");
            }
        }
    }

    #[test]
    fn how_a_file_is_opened_decides_what_is_kept() {
        let folder = folder();
        let path = folder.path().join("a");
        for how in [Open::Read, Open::Write] {
            assert_eq!(HostDisk.open(&path, how).err().unwrap().kind(), io::ErrorKind::NotFound);
        }
        HostDisk.open(&path, Open::Create).unwrap().write_at(&[IoSlice::new(b"kept")], 0).unwrap();
        HostDisk.open(&path, Open::Create).unwrap();
        assert_eq!(content(&path), b"kept");
        HostDisk.open(&path, Open::Truncate).unwrap();
        assert_eq!(content(&path), b"");
    }

    #[test]
    fn a_folder_lists_its_names_in_order() {
        let folder = folder();
        HostDisk.create_dir_all(&folder.path().join("b/inner")).unwrap();
        for name in ["c", "a"] {
            HostDisk.open(&folder.path().join(name), Open::Create).unwrap().set_len(3).unwrap();
        }
        let names: Vec<_> = HostDisk.list(folder.path()).unwrap();
        let entry = |name: &str, is_dir| Entry { name: name.into(), is_dir };
        assert_eq!(names, [entry("a", false), entry("b", true), entry("c", false)]);
        assert_eq!(HostDisk.length(&folder.path().join("a")).unwrap(), 3);
        HostDisk.sync_dir(folder.path()).unwrap();
    }

    #[test]
    fn a_lock_is_held_until_it_is_dropped() {
        let folder = folder();
        let path = folder.path().join(".lock");
        let held = HostDisk.lock(&path).unwrap();
        assert_eq!(HostDisk.lock(&path).err().unwrap().kind(), io::ErrorKind::WouldBlock);
        drop(held);
        HostDisk.lock(&path).unwrap();
    }

    #[test]
    fn a_file_is_replaced_as_a_whole() {
        let folder = folder();
        let path = folder.path().join("checkpoint");
        for text in [&b"one, long"[..], b"two"] {
            env::write_atomic(&HostDisk, &path, text).unwrap();
            assert_eq!(content(&path), text);
        }
        assert_eq!(HostDisk.list(folder.path()).unwrap().len(), 1);
        let free = HostDisk.free_bytes(folder.path()).unwrap();
        assert!(free > 0 && free < HostDisk.total_bytes(folder.path()).unwrap());
    }
}
