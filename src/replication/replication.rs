//! All partitions of this node, made so that they are what the metadata asks for.
//!
//! Kafka: `ReplicaManager.applyDelta`, `LogManager`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use env::Env;
use metadata::config::Overrides;
use metadata::{Delta, Image};
use model::{BrokerEpoch, DirectoryId, ErrorCode, NodeId, PartitionIndex, TopicIdPartition};
use replica::{AlteredPartition, QuestionId};
use storage::{FoundLog, LogFolder};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::assignment::{Assignment, Change, Settings};
use crate::failed::{Failed, FailedPartition};
use crate::fetchers::Fetchers;
use crate::folders::{FolderDescription, Folders};
use crate::isr_changes::IsrChanges;
use crate::lost::Lost;
use crate::outlets::Outlets;
use crate::partitions::Partitions;
use crate::recovery_debt::RecoveryDebt;
use crate::ticks::Ticks;
use crate::upkeep;
use crate::{IsrChange, Partition, PartitionError, ReplicasConfig};

/// The metadata log's topic, which is in no image.
const CLUSTER_METADATA: &str = "__cluster_metadata";

/// What is fixed at start.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub node_id: NodeId,
    /// Values of the files, the environment and the command line.
    pub fixed: Overrides,
    /// `num.recovery.threads.per.data.dir`: so many logs of a folder are opened at once.
    pub recovery_threads: usize,
    /// How often, and how.
    pub upkeep: upkeep::Config,
    /// How partitions are replicated.
    pub replicas: ReplicasConfig,
}

/// The partitions on this node.
pub struct Replication {
    pub(crate) env: Env,
    pub(crate) config: Config,
    pub(crate) folders: Folders,
    pub(crate) recovery_debt: Arc<RecoveryDebt>,
    pub(crate) outlets: Arc<Outlets>,
    pub(crate) partitions: Partitions,
    pub(crate) failed: Failed,
    pub(crate) lost: Lost,
    /// Held for reading while logs are opened, for writing while partitions are deleted or opened again.
    pub(crate) changing: RwLock<()>,
    /// Whether what lay in the folders at start was compared with the metadata.
    is_looked_through: AtomicBool,
    /// Whether all partitions were opened: a checkpoint before that would forget those that were not.
    pub(crate) is_open: AtomicBool,
}

impl Replication {
    /// Starts the committers, the ticks and the upkeep. There are no partitions before the first [`Self::apply`].
    pub fn start(
        env: &Env,
        config: Config,
        folders: Vec<Arc<LogFolder>>,
        closing: &CancellationToken,
    ) -> Arc<Self> {
        let recovery_debt = Arc::new(RecoveryDebt::default());
        let folders = Folders::new(folders, &env.exec, closing, &recovery_debt);
        let outlets = Arc::new(Outlets {
            clock: env.clock.clone(),
            fetchers: Fetchers::new(env, config.node_id, config.replicas.clone(), closing),
            isr_changes: IsrChanges::default(),
            ticks: Ticks::default(),
        });
        let replication = Arc::new(Self {
            env: env.clone(),
            config,
            folders,
            recovery_debt,
            outlets,
            partitions: Partitions::default(),
            failed: Failed::default(),
            lost: Lost::default(),
            changing: RwLock::default(),
            is_looked_through: AtomicBool::new(false),
            is_open: AtomicBool::new(false),
        });
        upkeep::start(&replication, closing);
        let (outlets, closing) = (replication.outlets.clone(), closing.clone());
        let ticks = async move {
            closing.run_until_cancelled(outlets.ticks.run(outlets.clock.as_ref(), &outlets.fetchers)).await;
        };
        env.exec.spawn("replica ticks", Box::pin(ticks));
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
        let change = Change::of(image, delta, self.config.node_id, &settings);
        self.change(image, change).await;
    }

    /// Opens the logs that `image` asks for, and sets aside what it does not know: at start, while the broker is still being
    /// registered. Nothing is led before [`Self::apply_all`].
    pub async fn open_logs(self: &Arc<Self>, image: &Image) {
        self.look_through(image).await;
        self.open_missing(&self.all(image).assigned).await;
        let have_lost = || self.partitions.all().into_iter().filter(|partition| partition.has_lost());
        self.lost.found(|| have_lost().map(|partition| partition.id).collect());
    }

    /// Makes all so as `image` asks for, whatever was before.
    pub async fn apply_all(self: &Arc<Self>, image: &Image) {
        self.open_logs(image).await;
        self.change(image, self.all(image)).await;
        self.is_open.store(true, Ordering::Release);
    }

    /// Once, before any log is opened.
    async fn look_through(self: &Arc<Self>, image: &Image) {
        if !self.is_looked_through.swap(true, Ordering::AcqRel) {
            let (replication, image) = (self.clone(), image.clone());
            self.blocking(move || replication.set_aside_strays(&image)).await;
        }
    }

    fn all(&self, image: &Image) -> Change {
        let settings = Settings { fixed: &self.config.fixed };
        let held = self.partitions.all();
        Change::all(image, self.config.node_id, &settings, held.iter().map(|partition| partition.id))
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
                    Ok(kept) => warn!(
                        %partition, folder = %kept.display(),
                        "the cluster does not know this partition any more: its folder is set aside and kept. Delete it; or, \
                         if the metadata log was lost, restore that and give the folder its old name again"
                    ),
                    Err(error) => error!(%partition, %error, "a stray partition cannot be set aside"),
                }
            }
        }
    }

    async fn change(self: &Arc<Self>, image: &Image, change: Change) {
        let Change { assigned, mut deleted } = change;
        deleted.retain(|id| self.partitions.by_id(*id).is_ok() || self.failed.was_new(*id).is_some());
        self.outlets.fetchers.learn_addresses(image);
        let admits = self.is_unfenced(image);
        if !deleted.is_empty() {
            let replication = self.clone();
            self.blocking(move || replication.delete(&deleted)).await;
        }
        if !assigned.is_empty() {
            self.open_missing(&assigned).await;
            let replication = self.clone();
            let assign = move || {
                if admits {
                    replication.admit_lost();
                }
                let _held = replication.outlets.fetchers.hold();
                assigned.iter().for_each(|assignment| replication.assign(assignment));
            };
            self.blocking(assign).await;
        }
    }

    fn is_unfenced(&self, image: &Image) -> bool {
        let epoch = self.outlets.fetchers.registered();
        let broker = image.brokers.get(self.config.node_id);
        broker.is_some_and(|broker| Some(broker.epoch) == epoch && !broker.fenced)
    }

    /// The heartbeat that unfenced this broker said which partitions have lost records.
    fn admit_lost(&self) {
        let lost = self.lost.take();
        for partition in lost.iter().filter_map(|id| self.partitions.by_id(*id).ok()) {
            let folder = self.folders.get(partition.folder);
            partition.admit(|log_end| folder.logs.lower_checkpoints(&partition.name, log_end));
        }
    }

    async fn blocking(&self, work: impl FnOnce() + Send + 'static) {
        if env::try_blocking(self.env.exec.as_ref(), work).await.is_none() {
            warn!("the node ended before a metadata change was applied to its partitions");
        }
    }

    fn delete(&self, ids: &[TopicIdPartition]) {
        let _changing = self.changing.write().unwrap_or_else(PoisonError::into_inner);
        for id in ids {
            self.failed.remove(*id);
            if let Some(partition) = self.partitions.remove(*id) {
                partition.delete();
                self.folders.gone(partition.folder);
            }
        }
    }

    /// Opens what could not be opened before, for a reason that may have gone. Waits for the disk.
    pub(crate) fn reopen(self: &Arc<Self>) {
        if !self.is_open.load(Ordering::Acquire) {
            // At start nothing is led yet, and the start itself tries again.
            return;
        }
        let _changing = self.changing.write().unwrap_or_else(PoisonError::into_inner);
        for FailedPartition { assignment, is_new, .. } in self.failed.take_healing() {
            self.open_or_note(&assignment, is_new);
            self.assign(&assignment);
        }
    }

    /// Those that could not be opened are left out: that was told.
    fn assign(&self, assignment: &Assignment) {
        if let Ok(partition) = self.partitions.by_id(assignment.id) {
            partition.apply(assignment.config.clone(), assignment.state.clone());
        }
    }

    /// This run of the broker is registered: before any partition is led, and again at each later registration.
    pub fn registered(&self, epoch: BrokerEpoch) {
        self.outlets.fetchers.register(epoch);
        self.partitions.all().iter().for_each(|partition| partition.registered(epoch));
    }

    /// Partitions whose recovered logs end below what was known to be committed: for the heartbeat that unfences. Known when
    /// the logs are open; they take no part until this broker is unfenced.
    pub fn lost(&self) -> Vec<TopicIdPartition> {
        self.lost.all()
    }

    /// Waits until partitions ask the controller for another ISR, then gives all that ask: one question a partition at most.
    pub async fn next_isr_changes(&self) -> Vec<IsrChange> {
        self.outlets.isr_changes.next().await
    }

    /// The controller answered a partition's question.
    pub fn isr_altered(
        &self,
        id: TopicIdPartition,
        question: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    ) {
        if let Ok(partition) = self.partitions.by_id(id) {
            partition.isr_altered(question, answer);
        }
    }

    /// A partition's question will have no answer. The controller must not carry it out after the next one.
    pub fn isr_unanswered(&self, id: TopicIdPartition, question: QuestionId) {
        if let Ok(partition) = self.partitions.by_id(id) {
            partition.isr_unanswered(question);
        }
    }

    /// Replicas of this node that lie in another log folder than `image` says, each with its folder.
    pub fn misplaced(&self, image: &Image) -> Vec<(DirectoryId, TopicIdPartition)> {
        let partitions = self.partitions.all();
        let place = |partition: &Arc<Partition>| {
            let here = self.folders.get(partition.folder).logs.directory_id();
            let known = image.topics.partition(partition.id)?;
            let me = self.config.node_id;
            (known.has_replica(me) && known.directory(me) != here).then_some((here, partition.id))
        };
        partitions.iter().filter_map(place).collect()
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
}

fn is_stray(image: &Image, found: &FoundLog) -> bool {
    let name = &found.topic_partition;
    let Some(topic) = image.topics.by_name(name.topic.as_str()) else {
        return name.topic.as_str() != CLUSTER_METADATA;
    };
    !topic.partitions.contains_key(&name.partition) || found.topic_id.is_some_and(|id| id != topic.id)
}
