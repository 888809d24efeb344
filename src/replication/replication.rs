//! All partitions of this node, made so that they are what the metadata asks for.
//!
//! Kafka: `ReplicaManager.applyDelta`, `LogManager`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use env::Env;
use metadata::config::Overrides;
use metadata::{Delta, Image};
use model::{LeaderEpoch, NodeId, Offset, PartitionIndex, TopicIdPartition};
use storage::{FoundLog, LogFolder};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::assignment::{Assignment, Change, Settings};
use crate::blocking::blocking;
use crate::failed::{Failed, OpenError};
use crate::folders::{FolderDescription, Folders};
use crate::partitions::Partitions;
use crate::upkeep;
use crate::{Partition, PartitionError};

/// The metadata log's topic, which is in no image.
const CLUSTER_METADATA: &str = "__cluster_metadata";

/// What is fixed at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub node_id: NodeId,
    /// Values of the files, the environment and the command line.
    pub fixed: Overrides,
    /// How often, and how.
    pub upkeep: upkeep::Config,
}

/// The partitions on this node.
pub struct Replication {
    pub(crate) env: Env,
    pub(crate) config: Config,
    pub(crate) folders: Folders,
    pub(crate) partitions: Partitions,
    pub(crate) failed: Failed,
    /// Held while partitions are opened and deleted.
    changing: Mutex<()>,
    /// Whether all partitions were opened: a checkpoint before that would forget those that were not.
    pub(crate) is_open: AtomicBool,
}

impl Replication {
    /// Starts the committers and the upkeep. There are no partitions before the first [`Self::apply`].
    pub fn start(
        env: &Env,
        config: Config,
        folders: Vec<Arc<LogFolder>>,
        closing: &CancellationToken,
    ) -> Arc<Self> {
        let folders = Folders::new(folders, &env.exec, closing);
        let replication = Arc::new(Self {
            env: env.clone(),
            config,
            folders,
            partitions: Partitions::default(),
            failed: Failed::default(),
            changing: Mutex::default(),
            is_open: AtomicBool::new(false),
        });
        upkeep::start(&replication, closing);
        replication
    }

    /// A partition of this node by its topic's name.
    ///
    /// # Errors
    /// This node does not hold it, or could not open its log.
    pub fn partition(&self, topic: &str, index: PartitionIndex) -> Result<Arc<Partition>, PartitionError> {
        self.partitions.by_name(topic, index).map_err(|error| self.failed.explain_name(topic, index, error))
    }

    /// A partition of this node by its topic's id.
    ///
    /// # Errors
    /// This node does not hold it, or could not open its log.
    pub fn partition_by_id(&self, id: TopicIdPartition) -> Result<Arc<Partition>, PartitionError> {
        self.partitions.by_id(id).map_err(|error| self.failed.explain_id(id, error))
    }

    /// All partitions of this node, sorted by topic and number.
    pub fn partitions(&self) -> Vec<Arc<Partition>> {
        self.partitions.all()
    }

    /// Makes the change that led to `image`.
    pub async fn apply(self: &Arc<Self>, image: &Image, delta: &Delta) {
        let settings = Settings { fixed: &self.config.fixed };
        self.change(Change::of(image, delta, self.config.node_id, &settings)).await;
    }

    /// Opens all that `image` asks for, and sets aside what it does not know: at start.
    pub async fn apply_all(self: &Arc<Self>, image: &Image) {
        self.set_aside_strays(image);
        let settings = Settings { fixed: &self.config.fixed };
        self.change(Change::all(image, self.config.node_id, &settings)).await;
        self.is_open.store(true, Ordering::Release);
    }

    /// A topic that was deleted, perhaps made anew, while this node was down.
    fn set_aside_strays(&self, image: &Image) {
        for (_, folder) in self.folders.iter() {
            let found = folder.logs.partitions().unwrap_or_else(|error| {
                error!(%error, "a log folder cannot be listed");
                Vec::new()
            });
            for stray in found.iter().filter(|found| is_stray(image, found)) {
                let partition = &stray.topic_partition;
                match folder.logs.set_aside(stray) {
                    Ok(()) => {
                        warn!(%partition, "the cluster does not know this partition any more: its folder is set aside");
                    }
                    Err(error) => error!(%partition, %error, "a stray partition cannot be set aside"),
                }
            }
        }
    }

    async fn change(self: &Arc<Self>, change: Change) {
        if change.is_empty() {
            return;
        }
        let replication = self.clone();
        let work = move || replication.make(change);
        if blocking(self.env.exec.as_ref(), work).await.is_none() {
            warn!("the node ended before a metadata change was applied to its partitions");
        }
    }

    fn make(self: &Arc<Self>, change: Change) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        for id in change.deleted {
            self.failed.remove(id);
            if let Some(partition) = self.partitions.remove(id) {
                partition.delete();
                self.folders.gone(partition.folder);
            }
        }
        for assignment in change.assigned {
            self.assign(assignment);
        }
    }

    /// Opens what could not be opened before, for a reason that may have gone. Waits for the disk.
    pub(crate) fn reopen(self: &Arc<Self>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        for assignment in self.failed.take_healing() {
            self.assign(assignment);
        }
    }

    fn assign(self: &Arc<Self>, assignment: Assignment) {
        let partition = match self.partitions.by_id(assignment.id) {
            Ok(partition) => {
                partition.configure(assignment.config.clone(), assignment.min_isr);
                partition
            }
            Err(_) => match self.open(&assignment) {
                Ok(partition) => partition,
                Err(error) => {
                    error!(partition = %assignment.name, %error, "a partition could not be opened");
                    self.failed.insert(assignment, error);
                    return;
                }
            },
        };
        if assignment.leader == self.config.node_id {
            partition.lead(assignment.leader, assignment.leader_epoch, &assignment.isr);
        } else {
            partition.follow();
        }
    }

    fn open(self: &Arc<Self>, assignment: &Assignment) -> Result<Arc<Partition>, OpenError> {
        let is_new = assignment.leader_epoch == LeaderEpoch(0);
        let at = self.folders.choose(&assignment.name, is_new).ok_or(OpenError::NoFolder)?;
        let folder = self.folders.get(at);
        let now = self.env.clock.wall();
        let log = folder
            .logs
            .open_log(&assignment.name, assignment.id.topic_id, assignment.config.clone(), now)
            .map_err(|error| {
                self.folders.doubt(at);
                self.folders.gone(at);
                OpenError::Storage { at, error }
            })?;
        let restored = folder.logs.high_watermark(&assignment.name).unwrap_or(Offset(0));
        let partition = Arc::new(Partition::new(
            (assignment.name.clone(), assignment.id, at),
            (self.env.clock.clone(), folder.committer.clone()),
            log,
            (assignment.min_isr, restored),
        ));
        self.partitions.insert(partition.clone());
        self.failed.remove(assignment.id);
        Ok(partition)
    }

    /// The log folders and what lies in them.
    pub fn folders(&self) -> Vec<FolderDescription> {
        let partitions = self.partitions.all();
        self.folders
            .iter()
            .map(|(at, folder)| {
                let here = partitions.iter().filter(|partition| partition.folder == at);
                FolderDescription {
                    path: folder.logs.path().to_owned(),
                    is_offline: folder.logs.offline().is_some(),
                    total_bytes: folder.logs.total_bytes().map_or(-1, |bytes| bytes as i64),
                    usable_bytes: folder.logs.free_bytes().map_or(-1, |bytes| bytes as i64),
                    partitions: here
                        .map(|partition| (partition.name.clone(), partition.size_bytes()))
                        .collect(),
                }
            })
            .collect()
    }

    /// The clean end, after everything else that uses partitions has ended: all is flushed, indexes and producer
    /// snapshots are written, and the folders are marked clean, unless one of their logs was not opened or not closed.
    pub fn close(&self, broker_epoch: model::BrokerEpoch) {
        let mut closed: Vec<Vec<_>> = self.folders.iter().map(|_| Vec::new()).collect();
        for partition in self.partitions.all() {
            match partition.close() {
                Ok(Some(checkpoint)) => closed[partition.folder].push(checkpoint),
                Ok(None) => {}
                Err(error) => {
                    self.folders.doubt(partition.folder);
                    error!(partition = %partition.name, %error, "a partition was not closed cleanly");
                }
            }
        }
        for ((_, folder), checkpoints) in self.folders.iter().zip(&closed) {
            if !folder.is_in_order() {
                warn!(folder = %folder.logs.path().display(), "the next start recovers this log folder");
                continue;
            }
            match folder.logs.close(checkpoints, broker_epoch) {
                Ok(()) => info!(folder = %folder.logs.path().display(), "log folder closed"),
                Err(error) => error!(%error, "a log folder was not closed cleanly"),
            }
        }
    }
}

fn is_stray(image: &Image, found: &FoundLog) -> bool {
    let name = &found.topic_partition;
    let Some(topic) = image.topics.by_name(name.topic.as_str()) else {
        return name.topic.as_str() != CLUSTER_METADATA;
    };
    !topic.partitions.contains_key(&name.partition) || found.topic_id.is_some_and(|id| id != topic.id)
}

impl Change {
    fn is_empty(&self) -> bool {
        self.assigned.is_empty() && self.deleted.is_empty()
    }
}
