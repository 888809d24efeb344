//! The files of closed segments that are open, at most so many: who was not used for longest is closed first.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use env::File;
use model::Map;

/// Names a file among the open ones, for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct FileKey(u64);

/// The open files of one log folder.
pub(crate) struct OpenFiles(Mutex<Table>);

struct Table {
    files_max: usize,
    next_key: u64,
    /// Grows with every use.
    uses: u64,
    files: Map<FileKey, (Arc<dyn File>, u64)>,
    by_use: BTreeMap<u64, FileKey>,
}

impl OpenFiles {
    pub(crate) fn new(files_max: usize) -> Self {
        let (files, by_use) = (Map::default(), BTreeMap::new());
        Self(Mutex::new(Table { files_max, next_key: 0, uses: 0, files, by_use }))
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
        while table.files.len() > table.files_max {
            let Some((_, oldest)) = table.by_use.pop_first() else { break };
            table.files.remove(&oldest);
        }
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
    fn take(&mut self, key: FileKey) -> Option<Arc<dyn File>> {
        let (file, used) = self.files.remove(&key)?;
        self.by_use.remove(&used);
        Some(file)
    }
}
