//! A file system in memory that loses what was not synced, and fails on demand.
//!
//! Invariants: a sync makes a file's bytes durable, not its name; a folder's sync makes the names in it durable, not its
//! own. Handles that were open when the node died are dead: they change nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, IoSlice};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use env::{Disk, Entry, File, Open};
use fastrand::Rng;

use crate::History;
use crate::inode::{Content, InodeId, NameChange, Names};

/// A node's disk, as that node sees it until it dies: [`SimDisk::kill`] and [`SimDisk::power_loss`] give the next node's.
#[derive(Clone)]
pub struct SimDisk {
    shared: Arc<Mutex<State>>,
    life: u64,
}

/// Kinds of operations that can be made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads of a file.
    Read,
    /// Writes, and changes of a file's length.
    Write,
    /// `File::sync` and `Disk::sync_dir`.
    Sync,
    /// Opening, listing, renaming, removing.
    Name,
    /// Opening a file, or a folder to sync it: too many are open.
    Open,
}

struct State {
    rng: Rng,
    history: History,
    inodes: BTreeMap<InodeId, Inode>,
    next_inode: InodeId,
    /// Grows with each death; a handle of another life is dead.
    life: u64,
    locked: BTreeSet<PathBuf>,
    capacity: u64,
    faults: Vec<Fault>,
    cold_percent: u8,
    late_writes: u64,
}

enum Inode {
    File(Content),
    Folder(Names),
}

struct Fault {
    kind: Kind,
    under: PathBuf,
    /// Operations that still go well.
    after: u64,
    /// Operations that then fail.
    times: u64,
}

struct SimFile {
    disk: SimDisk,
    inode: InodeId,
    path: PathBuf,
    writable: bool,
}

struct Lock {
    disk: SimDisk,
    path: PathBuf,
}

const ROOT: InodeId = 0;
/// Linux's numbers of "input/output error" and "too many open files".
const EIO: i32 = 5;
const EMFILE: i32 = 24;

impl SimDisk {
    /// An empty disk, endless until [`SimDisk::set_capacity`].
    pub fn new(seed: u64) -> Self {
        Self::with_history(seed, History::default())
    }

    /// As `new`; what happens is noted in `history`.
    pub(crate) fn with_history(seed: u64, history: History) -> Self {
        let state = State {
            rng: Rng::with_seed(seed),
            history,
            inodes: BTreeMap::from([(ROOT, Inode::Folder(Names::default()))]),
            next_inode: ROOT + 1,
            life: 0,
            locked: BTreeSet::new(),
            capacity: u64::MAX,
            faults: Vec::new(),
            cold_percent: 0,
            late_writes: 0,
        };
        Self { shared: Arc::new(Mutex::new(state)), life: 0 }
    }

    /// The process dies: what it wrote is kept, its handles and locks are gone. The disk of the next process.
    #[must_use]
    pub fn kill(&self) -> Self {
        let mut state = self.state();
        state.history.add("kill", &[], &[]);
        state.die();
        Self { shared: Arc::clone(&self.shared), life: state.life }
    }

    /// The machine loses power: an arbitrary part of what was not synced is lost. The disk of the next process.
    #[must_use]
    pub fn power_loss(&self) -> Self {
        let mut state = self.state();
        state.history.add("power loss", &[], &[]);
        state.die();
        state.lose_power();
        Self { shared: Arc::clone(&self.shared), life: state.life }
    }

    /// The disk is replaced by an empty one, while the node is down. The disk of the next process.
    #[must_use]
    pub fn replace(&self) -> Self {
        let mut state = self.state();
        state.history.add("replace", &[], &[]);
        state.die();
        state.inodes = BTreeMap::from([(ROOT, Inode::Folder(Names::default()))]);
        state.faults.clear();
        Self { shared: Arc::clone(&self.shared), life: state.life }
    }

    /// Bytes that all files together may have. At less than they have now, nothing more can be written.
    pub fn set_capacity(&self, bytes: u64) {
        self.state().capacity = bytes;
    }

    /// Operations of this kind on `under`, or on what is below it, fail with EIO (`Kind::Open` with EMFILE): after `after` good ones, `times` of
    /// them (`u64::MAX`: until [`SimDisk::heal`]). What a failed sync should have written is lost.
    pub fn fail(&self, kind: Kind, under: impl AsRef<Path>, after: u64, times: u64) {
        self.state().faults.push(Fault { kind, under: under.as_ref().to_owned(), after, times });
    }

    /// No operation fails any more.
    pub fn heal(&self) {
        self.state().faults.clear();
    }

    /// So many in a hundred `try_read_at` would have to wait.
    pub fn set_cold_percent(&self, percent: u8) {
        self.state().cold_percent = percent;
    }

    /// Changes one byte of a file, as it happens to old disks.
    ///
    /// # Errors
    /// `NotFound` where there is no such file.
    pub fn rot(&self, path: &Path, position: u64) -> io::Result<()> {
        let mut state = self.state();
        let inode = state.find(path)?;
        state.content(inode)?.rot(position as usize);
        Ok(())
    }

    /// Changes that were tried through handles of the dead: a destructor wrote. Must be 0.
    pub(crate) fn late_writes(&self) -> u64 {
        self.state().late_writes
    }

    /// What happened so far.
    pub fn history(&self) -> History {
        self.state().history.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, where an operation may go on.
    fn begin(&self, kind: Kind, path: &Path) -> io::Result<MutexGuard<'_, State>> {
        let mut state = self.state();
        if self.life != state.life {
            state.late_writes += u64::from(kind != Kind::Read);
            return Err(io::Error::other("the node is dead"));
        }
        if state.fails(kind, path) {
            state.history.add("EIO", &[kind as u64], path.as_os_str().as_encoded_bytes());
            return Err(io::Error::from_raw_os_error(EIO));
        }
        Ok(state)
    }

    fn begin_change(&self, path: &Path, what: &str) -> io::Result<MutexGuard<'_, State>> {
        let state = self.begin(Kind::Name, path)?;
        state.history.add(what, &[], path.as_os_str().as_encoded_bytes());
        Ok(state)
    }
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, how: Open) -> io::Result<Arc<dyn File>> {
        let mut state = self.begin_change(path, "open")?;
        state.take_handle(path)?;
        let inode = match state.find(path) {
            Ok(inode) => inode,
            Err(error)
                if error.kind() == io::ErrorKind::NotFound && how != Open::Read && how != Open::Write =>
            {
                state.create(path, Inode::File(Content::default()))?
            }
            Err(error) => return Err(error),
        };
        let content = state.content(inode)?;
        if how == Open::Truncate && !content.live.is_empty() {
            content.set_len(0);
        }
        let writable = how != Open::Read;
        Ok(Arc::new(SimFile { disk: self.clone(), inode, path: path.to_owned(), writable }))
    }

    fn create_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change(path, "create_dir_all")?;
        let mut folder = PathBuf::new();
        for part in path.components() {
            folder.push(part);
            match state.find(&folder) {
                Ok(inode) => drop(state.names(inode)?),
                Err(_missing) => drop(state.create(&folder, Inode::Folder(Names::default()))?),
            }
        }
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<Entry>> {
        let mut state = self.begin(Kind::Name, folder)?;
        let inode = state.find(folder)?;
        let names = state.names(inode)?.live.clone();
        let is_dir = |inode| !matches!(state.inodes.get(&inode), Some(Inode::File(_)));
        Ok(names.into_iter().map(|(name, inode)| Entry { name, is_dir: is_dir(inode) }).collect())
    }

    fn length(&self, path: &Path) -> io::Result<u64> {
        let mut state = self.begin(Kind::Name, path)?;
        let inode = state.find(path)?;
        Ok(state.content(inode)?.live.len() as u64)
    }

    fn exists(&self, path: &Path) -> io::Result<bool> {
        Ok(self.begin(Kind::Name, path)?.find(path).is_ok())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change(path, "remove_file")?;
        let inode = state.find(path)?;
        state.content(inode)?;
        state.change_name(path, NameChange::Remove(name_of(path)?))
    }

    fn remove_dir_all(&self, path: &Path) -> io::Result<()> {
        let mut state = self.begin_change(path, "remove_dir_all")?;
        let inode = state.find(path)?;
        state.names(inode)?;
        state.change_name(path, NameChange::Remove(name_of(path)?))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.begin_change(from, "rename")?;
        state.history.add("to", &[], to.as_os_str().as_encoded_bytes());
        let inode = state.find(from)?;
        if state.find(to).is_ok_and(|there| matches!(state.inodes.get(&there), Some(Inode::Folder(_)))) {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                format!("{} is a folder", to.display()),
            ));
        }
        if from.parent() == to.parent() {
            return state.change_name(from, NameChange::Rename(name_of(from)?, name_of(to)?));
        }
        state.change_name(to, NameChange::Put(name_of(to)?, inode))?;
        state.change_name(from, NameChange::Remove(name_of(from)?))
    }

    fn sync_dir(&self, folder: &Path) -> io::Result<()> {
        let mut state = self.begin(Kind::Sync, folder)?;
        state.take_handle(folder)?;
        state.history.add("sync_dir", &[], folder.as_os_str().as_encoded_bytes());
        let inode = state.find(folder)?;
        state.names(inode)?.sync();
        Ok(())
    }

    fn free_bytes(&self, path: &Path) -> io::Result<u64> {
        let state = self.begin(Kind::Name, path)?;
        Ok(state.free())
    }

    fn total_bytes(&self, path: &Path) -> io::Result<u64> {
        Ok(self.begin(Kind::Name, path)?.capacity)
    }

    fn lock(&self, path: &Path) -> io::Result<Box<dyn Send + Sync>> {
        self.open(path, Open::Create)?;
        if !self.state().locked.insert(path.to_owned()) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(Box::new(Lock { disk: self.clone(), path: path.to_owned() }))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let mut state = self.disk.state();
        if state.life == self.disk.life {
            state.locked.remove(&self.path);
        }
    }
}

impl File for SimFile {
    fn read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut state = self.disk.begin(Kind::Read, &self.path)?;
        let live = &state.content(self.inode)?.live;
        let there = live.get(position as usize..).unwrap_or_default();
        let length = there.len().min(buffer.len());
        buffer[..length].copy_from_slice(&there[..length]);
        Ok(length)
    }

    fn try_read_at(&self, buffer: &mut [u8], position: u64) -> io::Result<usize> {
        let mut state = self.disk.state();
        let percent = state.cold_percent;
        if percent > 0 && state.rng.u8(..100) < percent {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        drop(state);
        self.read_at(buffer, position)
    }

    fn write_at(&self, pieces: &[IoSlice<'_>], position: u64) -> io::Result<()> {
        let mut state = self.begin_write()?;
        let bytes: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
        state.history.add("write", &[self.inode, position], &bytes);
        let free = state.free();
        let content = state.content(self.inode)?;
        let within = (content.live.len() as u64).saturating_sub(position);
        let fits = bytes.len().min(within.saturating_add(free) as usize);
        content.write(position as usize, &bytes[..fits]);
        if fits < bytes.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn len(&self) -> io::Result<u64> {
        Ok(self.disk.begin(Kind::Read, &self.path)?.content(self.inode)?.live.len() as u64)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut state = self.begin_write()?;
        state.history.add("set_len", &[self.inode, length], &[]);
        state.content(self.inode)?.set_len(length as usize);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let result = self.disk.begin(Kind::Sync, &self.path).map(drop);
        let mut state = self.disk.state();
        if state.life != self.disk.life {
            return result;
        }
        state.history.add("sync", &[self.inode, u64::from(result.is_ok())], &[]);
        let mut rng = state.rng.fork();
        let content = state.content(self.inode)?;
        match result {
            Ok(()) => content.sync(),
            Err(_) => content.fail_sync(&mut rng),
        }
        result
    }
}

impl SimFile {
    fn begin_write(&self) -> io::Result<MutexGuard<'_, State>> {
        let state = self.disk.begin(Kind::Write, &self.path)?;
        if self.writable { Ok(state) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }
}

impl State {
    fn die(&mut self) {
        self.life += 1;
        self.locked.clear();
    }

    fn lose_power(&mut self) {
        for inode in self.inodes.values_mut() {
            match inode {
                Inode::File(content) => content.lose_power(&mut self.rng),
                Inode::Folder(names) => names.lose_power(&mut self.rng),
            }
        }
        let kept = self.reachable();
        self.inodes.retain(|inode, _| kept.contains(inode));
    }

    /// What still has a name. A removed file lives on while it is open, and until its removal is durable.
    fn reachable(&self) -> BTreeSet<InodeId> {
        let mut reached = BTreeSet::new();
        let mut next = vec![ROOT];
        while let Some(inode) = next.pop() {
            if reached.insert(inode)
                && let Some(Inode::Folder(names)) = self.inodes.get(&inode)
            {
                next.extend(names.live.values());
            }
        }
        reached
    }

    fn free(&self) -> u64 {
        if self.capacity == u64::MAX { u64::MAX } else { self.capacity.saturating_sub(self.used()) }
    }

    fn used(&self) -> u64 {
        let length = |inode: &InodeId| match self.inodes.get(inode) {
            Some(Inode::File(content)) => content.live.len() as u64,
            _ => 0,
        };
        self.reachable().iter().map(length).sum()
    }

    fn fails(&mut self, kind: Kind, path: &Path) -> bool {
        for fault in &mut self.faults {
            if fault.kind != kind || !path.starts_with(&fault.under) || fault.times == 0 {
                continue;
            }
            if fault.after > 0 {
                fault.after -= 1;
                continue;
            }
            fault.times = if fault.times == u64::MAX { u64::MAX } else { fault.times - 1 };
            return true;
        }
        false
    }

    fn take_handle(&mut self, path: &Path) -> io::Result<()> {
        if self.fails(Kind::Open, path) { Err(io::Error::from_raw_os_error(EMFILE)) } else { Ok(()) }
    }

    fn find(&mut self, path: &Path) -> io::Result<InodeId> {
        let mut inode = ROOT;
        for part in path.components() {
            match part {
                Component::Normal(name) => {
                    let next = self.names(inode)?.live.get(&*name.to_string_lossy()).copied();
                    inode = next.ok_or_else(|| not_found(path))?;
                }
                Component::RootDir | Component::CurDir => {}
                Component::ParentDir | Component::Prefix(_) => return Err(io::ErrorKind::Unsupported.into()),
            }
        }
        Ok(inode)
    }

    fn content(&mut self, inode: InodeId) -> io::Result<&mut Content> {
        match self.inodes.get_mut(&inode) {
            Some(Inode::File(content)) => Ok(content),
            Some(Inode::Folder(_)) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn names(&mut self, inode: InodeId) -> io::Result<&mut Names> {
        match self.inodes.get_mut(&inode) {
            Some(Inode::Folder(names)) => Ok(names),
            Some(Inode::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn create(&mut self, path: &Path, inode: Inode) -> io::Result<InodeId> {
        let created = self.next_inode;
        self.change_name(path, NameChange::Put(name_of(path)?, created))?;
        self.next_inode += 1;
        self.inodes.insert(created, inode);
        Ok(created)
    }

    /// Changes a name in the folder that `path` is in.
    fn change_name(&mut self, path: &Path, change: NameChange) -> io::Result<()> {
        let folder = self.find(path.parent().unwrap_or(Path::new("")))?;
        self.names(folder)?.change(change);
        Ok(())
    }
}

fn name_of(path: &Path) -> io::Result<String> {
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    Ok(name.to_string_lossy().into_owned())
}

fn not_found(path: &Path) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, format!("{} is not there", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> SimDisk {
        disk_of(1)
    }

    /// A disk with a folder of a partition.
    fn disk_of(seed: u64) -> SimDisk {
        let disk = SimDisk::new(seed);
        disk.create_dir_all(Path::new("/data/t-0")).unwrap();
        disk.sync_dir(Path::new("/")).unwrap();
        disk.sync_dir(Path::new("/data")).unwrap();
        disk
    }

    const LOG: &str = "/data/t-0/0.log";

    fn log(disk: &SimDisk) -> Arc<dyn File> {
        disk.open(Path::new(LOG), Open::Create).unwrap()
    }

    fn write(file: &dyn File, bytes: &[u8]) {
        file.write_at(&[IoSlice::new(bytes)], file.len().unwrap()).unwrap();
    }

    fn content(disk: &SimDisk) -> Vec<u8> {
        disk.read(Path::new(LOG), 1 << 20).unwrap()
    }

    #[test]
    fn kill_keeps_what_was_written_and_ends_the_handles() {
        let disk = disk();
        let file = log(&disk);
        write(&*file, b"ab");
        let lock = disk.lock(Path::new("/data/.lock")).unwrap();
        assert!(disk.lock(Path::new("/data/.lock")).is_err());
        let next = disk.kill();
        assert_eq!(content(&next), b"ab");
        next.lock(Path::new("/data/.lock")).unwrap();
        drop(lock);
        assert_eq!(next.late_writes(), 0);
        file.write_at(&[IoSlice::new(b"late")], 0).unwrap_err();
        disk.open(Path::new(LOG), Open::Create).err().unwrap();
        assert_eq!((content(&next), next.late_writes()), (b"ab".to_vec(), 2));
    }

    #[test]
    fn power_loss_keeps_what_was_synced_name_and_bytes() {
        for seed in 0..50 {
            let disk = disk_of(seed);
            let file = log(&disk);
            write(&*file, b"synced");
            file.sync().unwrap();
            disk.sync_dir(Path::new("/data/t-0")).unwrap();
            write(&*file, b"not");
            let bytes = content(&disk.power_loss());
            assert!(bytes.starts_with(b"synced") && bytes.len() <= 9);
        }
    }

    #[test]
    fn power_loss_may_lose_a_synced_file_whose_name_was_not_synced() {
        let lost = (0..50).filter(|seed| {
            let disk = SimDisk::new(*seed);
            disk.create_dir_all(Path::new("/data")).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            let file = disk.open(Path::new("/data/a"), Open::Create).unwrap();
            write(&*file, b"synced");
            file.sync().unwrap();
            !disk.power_loss().exists(Path::new("/data/a")).unwrap()
        });
        assert!((1..50).contains(&lost.count()));
    }

    #[test]
    fn a_file_replaced_as_a_whole_is_the_old_or_the_new_one() {
        let path = Path::new("/data/checkpoint");
        for seed in 0..100 {
            let disk = SimDisk::new(seed);
            disk.create_dir_all(Path::new("/data")).unwrap();
            disk.sync_dir(Path::new("/")).unwrap();
            env::write_atomic(&disk, path, b"old").unwrap();
            disk.fail(Kind::Sync, "/data", seed % 2, 1);
            let result = env::write_atomic(&disk, path, b"new, longer");
            assert!(result.is_err());
            let bytes = disk.power_loss().read(path, 100).unwrap();
            assert!(bytes == b"old" || bytes == b"new, longer");
        }
    }

    #[test]
    fn faults_begin_after_so_many_operations_and_end() {
        let disk = disk();
        let file = log(&disk);
        disk.fail(Kind::Write, "/data", 1, 2);
        let results: Vec<_> = (0..4).map(|_| file.write_at(&[IoSlice::new(b"x")], 0).is_ok()).collect();
        assert_eq!(results, [true, false, false, true]);
        disk.fail(Kind::Read, "/data", 0, u64::MAX);
        assert!(file.read_at(&mut [0], 0).is_err());
        disk.heal();
        assert_eq!(file.read_at(&mut [0], 0).unwrap(), 1);
    }

    #[test]
    fn a_full_disk_takes_a_part_and_heals_when_something_is_removed() {
        let disk = disk();
        let file = log(&disk);
        disk.open(Path::new("/data/other"), Open::Create).unwrap().set_len(6).unwrap();
        disk.set_capacity(10);
        let error = file.write_at(&[IoSlice::new(b"abcdef")], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
        assert_eq!(content(&disk), b"abcd");
        file.write_at(&[IoSlice::new(b"ABCD")], 0).unwrap();
        disk.remove_file(Path::new("/data/other")).unwrap();
        assert_eq!(disk.free_bytes(Path::new("/data")).unwrap(), 6);
        file.write_at(&[IoSlice::new(b"ef")], 4).unwrap();
    }

    #[test]
    fn folders_are_renamed_and_removed_with_what_is_in_them() {
        let disk = disk();
        write(&*log(&disk), b"ab");
        disk.rename(Path::new("/data/t-0"), Path::new("/data/t-0.x-delete")).unwrap();
        let names: Vec<_> =
            disk.list(Path::new("/data")).unwrap().into_iter().map(|entry| entry.name).collect();
        assert_eq!(names, ["t-0.x-delete"]);
        let moved = disk.list(Path::new("/data/t-0.x-delete")).unwrap();
        assert_eq!(disk.length(&Path::new("/data/t-0.x-delete").join(&moved[0].name)).unwrap(), 2);
        disk.remove_dir_all(Path::new("/data/t-0.x-delete")).unwrap();
        assert_eq!(disk.open(Path::new(LOG), Open::Create).err().unwrap().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn an_empty_disk_and_a_rotten_byte() {
        let disk = disk();
        write(&*log(&disk), b"ab");
        disk.rot(Path::new(LOG), 1).unwrap();
        assert_eq!(content(&disk), b"a\x22");
        let empty = disk.replace();
        assert_eq!(empty.list(Path::new("/")).unwrap(), []);
    }

    #[test]
    fn one_seed_is_one_history() {
        let run = |seed| {
            let disk = disk_of(seed);
            let file = log(&disk);
            disk.sync_dir(Path::new("/data/t-0")).unwrap();
            (0..20).for_each(|i| write(&*file, &[i; 700]));
            let disk = disk.power_loss();
            let left = disk.read(Path::new(LOG), 1 << 20).unwrap_or_default();
            disk.history().add("left", &[], &left);
            disk.history().hash()
        };
        assert_eq!(run(7), run(7));
        assert!((0..20).map(run).collect::<BTreeSet<_>>().len() > 5);
    }
}
