//! A log folder: one entry of `log.dirs`.
//!
//! ```text
//! .lock                               held while a process uses the folder
//! meta.properties                     whose it is
//! .kafka_cleanshutdown                there only between a stop in order and the next start
//! recovery-point-offset-checkpoint    below it everything is on disk
//! log-start-offset-checkpoint         where logs begin that do not begin with a segment
//! replication-offset-checkpoint       high watermarks
//! .reserve                            space for when the disk is full
//! topic-0/ topic-1/ …                 the partitions
//! ```
//!
//! Invariant: the clean-shutdown file is gone, durably, before any log is touched, and comes back after all were closed.
//! A crash while logs are opened counts as one.
//!
//! Kafka: `LogManager`; KIP-112, KIP-858.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use env::{Disk, write_atomic};
use model::{BrokerEpoch, DirectoryId, Limits, Offset, Timestamp, TopicId, TopicPartition};

use crate::folder_state::{FolderState, Purpose};
use crate::log::recover::Opening;
use crate::names::PartitionFolder;
use crate::{
    FolderError, Log, LogConfig, MetaProperties, StorageError, TailBudget, clean_shutdown, meta_properties,
    names, partition_metadata,
};

/// An open log folder.
pub struct LogFolder {
    state: Arc<FolderState>,
    meta: MetaProperties,
    was_clean: bool,
    last_broker_epoch: Option<BrokerEpoch>,
    /// What lay in it when it was first listed, and was not opened since.
    found: OnceLock<Mutex<BTreeMap<TopicPartition, Option<TopicId>>>>,
    _lock: Box<dyn Send + Sync>,
}

/// A partition that lies in a log folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundLog {
    /// By its folder's name.
    pub topic_partition: TopicPartition,
    /// By its `partition.metadata`, where that says it.
    pub topic_id: Option<TopicId>,
}

/// What the checkpoints say of one log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogCheckpoint {
    /// Whose log.
    pub topic_partition: TopicPartition,
    /// Its flushed end.
    pub recovery_point: Offset,
    /// Its log start.
    pub log_start: Offset,
    /// Its high watermark.
    pub high_watermark: Offset,
}

impl LogFolder {
    /// What `meta.properties` of a folder says; none where there is no such file. Takes no lock.
    ///
    /// # Errors
    /// The file cannot be read or understood.
    pub fn read_meta(disk: &dyn Disk, folder: &Path) -> Result<Option<MetaProperties>, FolderError> {
        let path = folder.join(meta_properties::FILE);
        match disk.read(&path, Limits::SMALL_FILE_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(failed(folder, &path, &error)),
            Ok(bytes) => match MetaProperties::parse(&bytes) {
                Ok(meta) => Ok(Some(meta)),
                Err(what) => Err(FolderError::Damaged { path, what }),
            },
        }
    }

    /// Makes the folder and those above it, if they are not there, durably. Takes no lock.
    ///
    /// # Errors
    /// The disk failed.
    pub fn make(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
        make_folder(disk, folder)
    }

    /// The partitions that have a folder in it, by name. Takes no lock.
    ///
    /// # Errors
    /// The folder cannot be listed.
    pub fn names(disk: &dyn Disk, folder: &Path) -> Result<Vec<TopicPartition>, FolderError> {
        let entries = disk.list(folder).map_err(|error| failed(folder, folder, &error))?;
        let name = |entry: &env::Entry| match PartitionFolder::parse(&entry.name) {
            Some(PartitionFolder::Partition(name)) if entry.is_dir => Some(name),
            _ => None,
        };
        Ok(entries.iter().filter_map(name).collect())
    }

    /// Whether another process has the folder in use.
    pub fn is_used(disk: &dyn Disk, folder: &Path) -> bool {
        let lock = disk.lock(&folder.join(names::LOCK));
        lock.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }

    /// Takes the folder into use, and makes it if it is not there. `identity` says whose it must be, and the directory id that
    /// a new folder gets.
    ///
    /// # Errors
    /// Another process has it, it is another node's or cluster's, or the disk failed.
    pub fn open(
        disk: Arc<dyn Disk>,
        folder: &Path,
        identity: &MetaProperties,
        tail: TailBudget,
    ) -> Result<Self, FolderError> {
        let io = |path: &Path, error: io::Error| failed(folder, path, &error);
        make_folder(&*disk, folder).map_err(|error| io(folder, error))?;
        let lock_path = folder.join(names::LOCK);
        let lock = disk.lock(&lock_path).map_err(|error| match error.kind() {
            io::ErrorKind::WouldBlock => FolderError::Locked { folder: folder.to_owned() },
            _ => io(&lock_path, error),
        })?;
        let meta = settle_meta(&*disk, folder, identity)?;
        let clean = take_clean_shutdown(&*disk, folder).map_err(|error| io(folder, error))?;
        // The clean-shutdown file is gone for good; partitions' folders that a killed process made are not.
        disk.sync_dir(folder).map_err(|error| io(folder, error))?;
        let state = Arc::new(FolderState::new(disk, folder.to_owned(), tail));
        state.read_checkpoints().map_err(|error| io(folder, error))?;
        Ok(Self {
            was_clean: clean.is_some(),
            last_broker_epoch: clean.as_deref().and_then(clean_shutdown::parse),
            meta,
            state,
            found: OnceLock::new(),
            _lock: lock,
        })
    }

    /// A folder that could not be opened: offline for good, while the node goes on with its others.
    pub fn offline_from_start(
        disk: Arc<dyn Disk>,
        folder: &Path,
        identity: &MetaProperties,
        error: &FolderError,
    ) -> Self {
        let state = FolderState::new(disk, folder.to_owned(), TailBudget::new(0));
        let path = if let FolderError::Io { path, .. } = error { path } else { folder };
        state.fail(path, &io::Error::other(error.to_string()));
        let meta = MetaProperties { directory_id: None, ..identity.clone() };
        let state = Arc::new(state);
        let found = OnceLock::new();
        Self { state, meta, was_clean: false, last_broker_epoch: None, found, _lock: Box::new(()) }
    }

    /// Leaves as many files as it opens itself to each of `folders` log folders, this one among them.
    pub fn share_open_files(&self, folders: usize) {
        self.state.files.share(folders);
    }

    /// Whether a log that was just opened had better be flushed, for the files that it closes then.
    pub fn is_crowded(&self) -> bool {
        self.state.files.is_crowded()
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.state.path
    }

    /// The folder's own id; zero of one that could not be opened.
    pub fn directory_id(&self) -> DirectoryId {
        self.meta.directory_id.unwrap_or_default()
    }

    /// Whether all logs were closed in order when it was last used.
    pub fn was_clean(&self) -> bool {
        self.was_clean
    }

    /// The broker epoch of the last life, where it ended in order and said it.
    pub fn last_broker_epoch(&self) -> Option<BrokerEpoch> {
        self.last_broker_epoch
    }

    /// Ready when the folder is offline. One task can wait for that.
    pub fn poll_offline(&self, cx: &Context<'_>) -> Poll<()> {
        self.state.poll_offline(cx)
    }

    /// Why the folder is offline, if it is.
    pub fn offline(&self) -> Option<StorageError> {
        self.state.offline().cloned()
    }

    /// Whether it works and has more space than its reserve. Where it had not, it is looked at again once a second.
    pub fn has_space(&self, now: Timestamp) -> bool {
        self.state.admit(Purpose::Records, now).is_ok()
    }

    /// Whether a write found no space and clients are refused.
    pub fn is_full(&self) -> bool {
        self.state.reserve.is_full()
    }

    /// The size in bytes of its file system.
    pub fn total_bytes(&self) -> Result<u64, StorageError> {
        self.state.checked(&self.state.path, self.state.disk.total_bytes(&self.state.path))
    }

    /// Bytes that may still be written to its file system.
    pub fn free_bytes(&self) -> Result<u64, StorageError> {
        self.state.checked(&self.state.path, self.state.disk.free_bytes(&self.state.path))
    }

    /// The partitions that lie in it, by name. What is being deleted, stray or unknown is not among them.
    pub fn partitions(&self) -> Result<Vec<FoundLog>, StorageError> {
        self.state.check()?;
        let entries = self.state.checked(&self.state.path, self.state.disk.list(&self.state.path))?;
        let mut found = Vec::new();
        for entry in entries.iter().filter(|entry| entry.is_dir) {
            if let Some(PartitionFolder::Partition(topic_partition)) = PartitionFolder::parse(&entry.name) {
                let path = self.state.path.join(&entry.name).join(partition_metadata::FILE);
                let bytes = self.state.read_file(&path)?;
                let topic_id = bytes.and_then(|bytes| partition_metadata::parse(&bytes).ok());
                found.push(FoundLog { topic_partition, topic_id });
            }
        }
        let listed = found.iter().map(|found| (found.topic_partition.clone(), found.topic_id));
        self.found.get_or_init(|| Mutex::new(listed.collect()));
        Ok(found)
    }

    /// Whether a partition of this name lies in it.
    pub fn has_partition(&self, topic_partition: &TopicPartition) -> bool {
        self.found().is_some_and(|found| found.contains_key(topic_partition))
            || self.state.disk.exists(&self.path_of(topic_partition)).unwrap_or(false)
    }

    fn found(&self) -> Option<MutexGuard<'_, BTreeMap<TopicPartition, Option<TopicId>>>> {
        self.found.get().map(|found| found.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn path_of(&self, topic_partition: &TopicPartition) -> PathBuf {
        self.state.path.join(topic_partition.to_string())
    }

    /// The high watermark that was checkpointed; none of a log that was made since.
    pub fn high_watermark(&self, topic_partition: &TopicPartition) -> Option<Offset> {
        self.state.high_watermark(topic_partition)
    }

    /// Lowers what the checkpoints say of a log to its end, where they say more. Waits for the disk then.
    ///
    /// # Errors
    /// The disk failed.
    pub fn lower_checkpoints(
        &self,
        topic_partition: &TopicPartition,
        end: Offset,
    ) -> Result<(), StorageError> {
        self.state.lower_checkpoints(topic_partition, end)
    }

    /// What the checkpoints say of a log that is not open.
    pub fn checkpointed(&self, topic_partition: &TopicPartition) -> LogCheckpoint {
        LogCheckpoint {
            topic_partition: topic_partition.clone(),
            recovery_point: self.state.recovery_point(topic_partition),
            log_start: self.state.log_start(topic_partition),
            high_watermark: self.state.high_watermark(topic_partition).unwrap_or(Offset(0)),
        }
    }

    /// Opens a partition's log; makes it where there is none, for which the reserve is not. Once for each partition in this
    /// folder's life, unless it failed.
    ///
    /// # Errors
    /// The disk failed or is full, or the folder is of another topic of that name.
    pub fn open_log(
        &self,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        now: Timestamp,
    ) -> Result<Log, StorageError> {
        self.state.check()?;
        let found = self.found().and_then(|mut found| found.remove(topic_partition));
        let path = self.path_of(topic_partition);
        let is_new = found.is_none() && !self.state.checked(&path, self.state.disk.exists(&path))?;
        if is_new {
            self.state.admit(Purpose::Records, now)?;
            self.state.forget_checkpoints(topic_partition)?;
        }
        let opening = Opening {
            is_new,
            topic_id: found.flatten(),
            recovery_point: self.state.recovery_point(topic_partition),
            log_start: self.state.log_start(topic_partition),
            was_clean: self.was_clean,
            now,
        };
        Log::open(self.state.clone(), topic_partition, topic_id, config, opening)
    }

    /// Replaces the three checkpoints by what these logs say; they must be all logs of the folder, each as
    /// [`Log::checkpoint`] gave it. Renews the reserve where it can. Waits for the disk.
    ///
    /// # Errors
    /// The disk failed; or the folder is not there any more, and so offline from now on.
    pub fn checkpoint(&self, logs: &[LogCheckpoint]) -> Result<(), StorageError> {
        self.state.check()?;
        self.check_place()?;
        self.state.reserve.restore(&*self.state.disk);
        self.state.write_checkpoints(logs)
    }

    /// Whether the folder is still where it was: what is written to the open files of one that was removed is lost.
    fn check_place(&self) -> Result<(), StorageError> {
        let path = self.state.path.join(meta_properties::FILE);
        let cause = match self.state.read_file(&path)?.map(|bytes| MetaProperties::parse(&bytes)) {
            None => "the log folder was removed under the running node, or something else is mounted there",
            Some(Ok(found)) if found.directory_id != self.meta.directory_id => {
                "another log folder was put in the place of this one under the running node"
            }
            Some(_) => return Ok(()),
        };
        Err(self.state.fail(&path, &io::Error::new(io::ErrorKind::NotFound, cause)))
    }

    /// One step of upkeep: removes a partition whose deletion was cut off, and renews the reserve when space is free.
    /// Gives back whether there is more to do.
    pub fn maintain(&self) -> Result<bool, StorageError> {
        self.state.check()?;
        self.state.reserve.restore(&*self.state.disk);
        let entries = self.state.checked(&self.state.path, self.state.disk.list(&self.state.path))?;
        let is_deleted = |name: &str| PartitionFolder::parse(name) == Some(PartitionFolder::Deleted);
        let mut deleted = entries.iter().filter(|entry| entry.is_dir && is_deleted(&entry.name));
        if let Some(entry) = deleted.next() {
            let path = self.state.path.join(&entry.name);
            self.state.remove_folder(&path)?;
        }
        Ok(deleted.next().is_some())
    }

    /// Sets a partition's folder aside that the cluster does not know any more: it is kept for an operator to look at,
    /// and does not stand in the way of a new topic of that name. It must not be open.
    /// Gives back where it is then.
    pub fn set_aside(&self, stray: &FoundLog) -> Result<PathBuf, StorageError> {
        self.state.check()?;
        if let Some(mut found) = self.found() {
            found.remove(&stray.topic_partition);
        }
        let from = self.path_of(&stray.topic_partition);
        let to = self
            .state
            .path
            .join(names::stray_name(&stray.topic_partition, stray.topic_id.unwrap_or_default()));
        self.state.checked(&from, self.state.disk.rename(&from, &to))?;
        self.state.checked(&self.state.path, self.state.disk.sync_dir(&self.state.path))?;
        Ok(to)
    }

    /// Ends the use of the folder in order. All logs must have been closed; `logs` are what they came to.
    ///
    /// # Errors
    /// Something was not written: the next start recovers.
    pub fn close(&self, logs: &[LogCheckpoint], broker_epoch: BrokerEpoch) -> Result<(), StorageError> {
        self.checkpoint(logs)?;
        let path = self.state.path.join(clean_shutdown::FILE);
        let text = clean_shutdown::encode(broker_epoch);
        self.state.with_reserve(&path, || write_atomic(&*self.state.disk, &path, text.as_bytes()))
    }
}

fn failed(folder: &Path, path: &Path, error: &io::Error) -> FolderError {
    FolderError::Io { folder: folder.to_owned(), path: path.to_owned(), cause: error.to_string() }
}

/// Makes a folder and those above it. Their names are durable before there is a `meta.properties`.
fn make_folder(disk: &dyn Disk, folder: &Path) -> io::Result<()> {
    disk.create_dir_all(folder)?;
    if disk.exists(&folder.join(meta_properties::FILE))? {
        return Ok(());
    }
    let is_named = |path: &&Path| !path.as_os_str().is_empty();
    folder.ancestors().skip(1).filter(is_named).try_for_each(|parent| match disk.sync_dir(parent) {
        // Who may not open it has not made a name in it either.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        result => result,
    })
}

/// Compares the folder's identity with what it must be; writes it where there is none yet.
fn settle_meta(
    disk: &dyn Disk,
    folder: &Path,
    identity: &MetaProperties,
) -> Result<MetaProperties, FolderError> {
    let found = LogFolder::read_meta(disk, folder)?;
    if let Some(found) = &found {
        if found.cluster_id != identity.cluster_id {
            let (found, expected) = (found.cluster_id.clone(), identity.cluster_id.clone());
            return Err(FolderError::OtherCluster { folder: folder.to_owned(), found, expected });
        }
        if found.node_id != identity.node_id {
            let (found, expected) = (found.node_id, identity.node_id);
            return Err(FolderError::OtherNode { folder: folder.to_owned(), found, expected });
        }
        if found.directory_id.is_some() {
            return Ok(found.clone());
        }
    }
    let path = folder.join(meta_properties::FILE);
    write_atomic(disk, &path, identity.encode().as_bytes()).map_err(|error| failed(folder, &path, &error))?;
    Ok(identity.clone())
}

/// Reads and removes the clean-shutdown file.
fn take_clean_shutdown(disk: &dyn Disk, folder: &Path) -> io::Result<Option<Vec<u8>>> {
    let path = folder.join(clean_shutdown::FILE);
    if !disk.exists(&path)? {
        return Ok(None);
    }
    let bytes = disk.read(&path, Limits::SMALL_FILE_BYTES_MAX)?;
    disk.remove_file(&path)?;
    Ok(Some(bytes))
}
