//! The log folders of this node: where each partition lies, and what lies there.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use env::Exec;
use model::{Timestamp, TopicPartition};
use storage::LogFolder;
use tokio_util::sync::CancellationToken;

use crate::committer::Committer;
use crate::recovery_debt::RecoveryDebt;

/// One entry of `log.dirs`, with its committer.
pub(crate) struct Folder {
    pub(crate) logs: Arc<LogFolder>,
    pub(crate) committer: Arc<Committer>,
    partitions: AtomicUsize,
    /// Whether some log in it was not opened, or not closed: the next start has to recover.
    is_in_doubt: AtomicBool,
}

/// All entries of `log.dirs`.
pub(crate) struct Folders(Vec<Folder>);

/// One log folder as DescribeLogDirs tells it.
#[derive(Clone, Debug)]
pub struct FolderDescription {
    /// Its absolute path.
    pub path: PathBuf,
    /// Whether it failed.
    pub is_offline: bool,
    /// Size of its file system, in bytes; -1 where it is not known.
    pub total_bytes: i64,
    /// Free space of its file system, in bytes; -1 where it is not known.
    pub usable_bytes: i64,
    /// Its partitions and their sizes in bytes.
    pub partitions: Vec<(TopicPartition, u64)>,
}

impl Folder {
    /// Whether all its logs were opened, and none failed to close.
    pub(crate) fn is_in_order(&self) -> bool {
        !self.is_in_doubt.load(Ordering::Relaxed)
    }
}

impl Folders {
    pub(crate) fn new(
        folders: Vec<Arc<LogFolder>>,
        exec: &Arc<dyn Exec>,
        closing: &CancellationToken,
        debt: &Arc<RecoveryDebt>,
    ) -> Self {
        for folder in &folders {
            folder.share_open_files(folders.len());
        }
        Self(
            folders
                .into_iter()
                .map(|logs| Folder {
                    logs,
                    committer: Committer::start(exec, closing, debt),
                    partitions: AtomicUsize::new(0),
                    is_in_doubt: AtomicBool::new(false),
                })
                .collect(),
        )
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Folder)> {
        self.0.iter().enumerate()
    }

    pub(crate) fn get(&self, at: usize) -> &Folder {
        &self.0[at]
    }

    /// The folder where the partition lies, or else one that works: with space if there is one, and then with the fewest
    /// partitions. Counts the partition in. Looks at the disks.
    ///
    /// While a folder is offline only a partition that `is_new` gets a place: another may lie there, and would begin
    /// again from nothing.
    pub(crate) fn choose(&self, name: &TopicPartition, is_new: bool, now: Timestamp) -> Option<usize> {
        let works = || self.iter().filter(|(_, folder)| folder.logs.offline().is_none());
        let is_certain = is_new || works().count() == self.0.len();
        let at = works()
            .find(|(_, folder)| folder.logs.has_partition(name))
            .or_else(|| {
                let load = |folder: &Folder| folder.partitions.load(Ordering::Relaxed);
                works()
                    .min_by_key(|(_, folder)| (!folder.logs.has_space(now), load(folder)))
                    .filter(|_| is_certain)
            })
            .map(|(at, _)| at)?;
        self.0[at].partitions.fetch_add(1, Ordering::Relaxed);
        Some(at)
    }

    /// A log in this folder was not opened, or not closed.
    pub(crate) fn doubt(&self, at: usize) {
        self.0[at].is_in_doubt.store(true, Ordering::Relaxed);
    }

    pub(crate) fn gone(&self, at: usize) {
        self.0[at].partitions.fetch_sub(1, Ordering::Relaxed);
    }
}
