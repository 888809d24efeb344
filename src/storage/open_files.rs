//! How many log files are open. Each log keeps its active segment's; the files of closed segments take what is left, and
//! of them that is closed first which was not used for longest.
//!
//! Invariant: a quarter of what the process may open is left to connections and to files that are open for a moment.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use env::File;
use model::{Limits, Map};

/// Names a file among the open ones, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey(u64);

/// The open files of one log folder.
pub(crate) struct OpenFiles(Mutex<Table>);

struct Table {
    files_max: usize,
    logs: usize,
    next_key: u64,
    /// Grows with every use.
    uses: u64,
    files: Map<FileKey, (Arc<dyn File>, u64)>,
    by_use: BTreeMap<u64, FileKey>,
}

impl OpenFiles {
    /// `process_max`: how many files of any kind may be open at once.
    pub(crate) fn new(process_max: usize) -> Self {
        let (files, by_use) = (Map::default(), BTreeMap::new());
        let files_max = process_max - process_max / 4;
        Self(Mutex::new(Table { files_max, logs: 0, next_key: 0, uses: 0, files, by_use }))
    }

    /// Leaves room for as many folders in all, this one among them.
    pub(crate) fn share(&self, folders: usize) {
        self.table().files_max /= folders.max(1);
    }

    /// Counts a log in, which then keeps a file open.
    ///
    /// # Errors
    /// There are as many as there may be.
    pub(crate) fn enter(&self) -> Result<(), usize> {
        let mut table = self.table();
        if table.logs >= table.files_max {
            return Err(table.files_max);
        }
        table.logs += 1;
        table.close_oldest();
        Ok(())
    }

    /// Whether there are so many logs that none should have more than one file open: a new one's are three until they are
    /// flushed.
    pub(crate) fn is_crowded(&self) -> bool {
        let table = self.table();
        table.logs > table.files_max / 16
    }

    /// Counts a log out.
    pub(crate) fn leave(&self) {
        self.table().logs -= 1;
    }

    /// A key that no other file has.
    pub(crate) fn key(&self) -> FileKey {
        let mut table = self.table();
        table.next_key += 1;
        FileKey(table.next_key)
    }

    /// The open file, or what `open` gives.
    ///
    /// # Errors
    /// What `open` gives.
    pub(crate) fn get(
        &self,
        key: FileKey,
        open: impl FnOnce() -> io::Result<Arc<dyn File>>,
    ) -> io::Result<Arc<dyn File>> {
        let known = self.table().take(key);
        let file = known.map_or_else(open, Ok)?;
        self.put(key, file.clone());
        Ok(file)
    }

    /// Keeps a file open as the one that was used last.
    pub(crate) fn put(&self, key: FileKey, file: Arc<dyn File>) {
        let mut table = self.table();
        table.take(key);
        table.uses += 1;
        let now = table.uses;
        table.files.insert(key, (file, now));
        table.by_use.insert(now, key);
        table.close_oldest();
    }

    /// Closes a file; who still reads it keeps it.
    pub(crate) fn close(&self, key: FileKey) {
        self.table().take(key);
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn close_oldest(&mut self) {
        let closed_max = (self.files_max - self.logs.min(self.files_max)).min(Limits::OPEN_FILES_MAX);
        while self.files.len() > closed_max {
            let Some((_, oldest)) = self.by_use.pop_first() else { break };
            self.files.remove(&oldest);
        }
    }

    fn take(&mut self, key: FileKey) -> Option<Arc<dyn File>> {
        let (file, used) = self.files.remove(&key)?;
        self.by_use.remove(&used);
        Some(file)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use env::{Disk, Open};
    use sim::SimDisk;

    use super::*;

    fn table(process_max: usize) -> (OpenFiles, Arc<dyn File>) {
        let file = SimDisk::new(1).open(Path::new("/a"), Open::Create).expect("a file");
        (OpenFiles::new(process_max), file)
    }

    #[test]
    fn no_more_logs_are_open_than_leave_room_for_connections() {
        let (files, _) = table(1024);
        files.share(2);
        assert_eq!((0..1000).filter(|_| files.enter().is_ok()).count(), 384);
        files.leave();
        assert_eq!((files.enter(), files.enter()), (Ok(()), Err(384)));
    }

    #[test]
    fn closed_segments_have_what_the_logs_leave_them() {
        let (files, file) = table(8);
        let open = || files.table().files.len();
        (0..9).for_each(|_| files.put(files.key(), file.clone()));
        assert_eq!(open(), 6);
        (0..6).for_each(|logs| {
            files.enter().expect("room");
            assert_eq!(open(), 5 - logs);
        });
    }

    #[test]
    fn however_many_may_be_open_closed_segments_are_content_with_some() {
        let (files, file) = table(usize::MAX);
        (0..Limits::OPEN_FILES_MAX + 5).for_each(|_| files.put(files.key(), file.clone()));
        assert_eq!(files.table().files.len(), Limits::OPEN_FILES_MAX);
    }
}
