//! The face of the metadata: what it is now, and how to change it.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use controller::{Controller, Decision};
use env::{Clock, Env};
use metadata::Image;
use metadata::config::BrokerConfig;
use model::{ClusterId, Instant, NodeId, Offset};
use quorum::{Config as Timing, Endpoint, ReplicaKey};
use replication::Replication;
use shards::Shards;
use storage::LogFolder;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::controller_registration::ControllerRegistration;
use crate::driver::{Command, Decide, Decided, Driver, Mailboxes, View};
use crate::publisher::{Publisher, Publishing};
use crate::wire::Place;
use crate::{Boot, ClusterError, FatalError};

/// Decisions that were asked for and are not answered yet; who comes then waits for a place.
const DECISIONS: usize = 256;

/// Questions to the driver; who comes then waits for a place.
const COMMANDS: usize = 256;

/// What a node is in the cluster.
#[derive(Clone, Debug)]
pub struct Config {
    /// This node.
    pub node_id: NodeId,
    /// Its cluster.
    pub cluster_id: ClusterId,
    /// What it was started with.
    pub broker: BrokerConfig,
    /// `metadata.log.max.record.bytes.between.snapshots`.
    pub snapshot_bytes: u64,
    /// Its place in the quorum.
    pub quorum: QuorumConfig,
}

/// A node's place in the quorum.
#[derive(Clone, Debug, Default)]
pub struct QuorumConfig {
    /// Where this node's controller listeners are reached.
    pub listeners: Vec<Endpoint>,
    /// `controller.quorum.voters`: where each is reached, by host and port.
    pub voters: BTreeMap<NodeId, (String, u16)>,
    /// `controller.quorum.bootstrap.servers`.
    pub bootstrap_servers: Vec<String>,
    /// `controller.quorum.*.ms`.
    pub timing: Timing,
}

impl QuorumConfig {
    fn has_others(&self) -> bool {
        self.voters.len() > 1 || !self.bootstrap_servers.is_empty()
    }
}

impl Config {
    pub(crate) fn place(&self, me: ReplicaKey) -> Place {
        Place { me, cluster_id: self.cluster_id.clone(), endpoints: self.quorum.listeners.clone() }
    }
}

/// A handle on the metadata of the cluster. Cheap to share.
pub struct Cluster {
    config: Config,
    shared: Arc<Shared>,
    replication: Arc<Replication>,
    log_folder: Arc<LogFolder>,
    decisions: Arc<Semaphore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) place: Place,
    pub(crate) view: watch::Receiver<View>,
    pub(crate) mailbox: mpsc::Sender<Command>,
    deciding: mpsc::Sender<Decide>,
    open: mpsc::Sender<oneshot::Sender<()>>,
}

/// What the publisher publishes.
pub(crate) struct Shared {
    pub(crate) image: ArcSwap<Image>,
    pub(crate) applied: watch::Sender<Offset>,
}

impl Cluster {
    /// Starts the driver and the publisher as tasks. When the metadata log fails, `fatal` says why: the process must end.
    pub fn start(
        env: &Env,
        config: Config,
        boot: Boot,
        replication: Arc<Replication>,
        shards: Arc<Shards>,
        closing: CancellationToken,
        fatal: oneshot::Sender<FatalError>,
    ) -> Arc<Self> {
        let shared = Arc::new(Shared {
            image: ArcSwap::from_pointee(boot.image.clone()),
            applied: watch::Sender::new(boot.image.end()),
        });
        let has_others = config.quorum.has_others() || boot.quorum.voters.current().len() > 1;
        let log_folder = boot.log_folder.clone();
        let (mailbox, commands) = mpsc::channel(COMMANDS);
        let (deciding, decisions) = mpsc::channel(DECISIONS);
        let publisher = Arc::new(Publisher::default());
        let (show, view) = watch::channel(View { kraft_version: boot.kraft_version, ..View::default() });
        let place = config.place(boot.me);
        let driver = Driver::new(env.clone(), &config, boot, publisher.clone(), show);
        let publishing = Publishing {
            publisher,
            shared: shared.clone(),
            replication: replication.clone(),
            shards,
            partitions_are_open: false,
        };
        let (open, asked_to_open) = mpsc::channel(1);
        env.exec.spawn("publisher", Box::pin(publishing.run(asked_to_open, closing.clone())));
        let mailboxes = Mailboxes { commands, decisions, closing: closing.clone() };
        env.exec.spawn("cluster", Box::pin(driver.run(mailboxes, fatal)));
        let (clock, decisions) = (env.clock.clone(), Arc::new(Semaphore::new(DECISIONS)));
        let cluster = Arc::new(Self {
            config,
            shared,
            replication,
            log_folder,
            decisions,
            clock,
            place,
            view,
            mailbox,
            deciding,
            open,
        });
        if has_others && !cluster.place.endpoints.is_empty() {
            let registration = ControllerRegistration::new(env, cluster.clone());
            env.exec.spawn("controller registration", Box::pin(registration.run(closing)));
        }
        cluster
    }

    /// The cluster's id.
    pub fn cluster_id(&self) -> &ClusterId {
        &self.config.cluster_id
    }

    /// The level of `kraft.version`, which stands in the control records and not in the image.
    pub fn kraft_version(&self) -> i16 {
        self.view.borrow().kraft_version
    }

    /// What this node was started with.
    pub fn broker_config(&self) -> &BrokerConfig {
        &self.config.broker
    }

    /// This node.
    pub fn node_id(&self) -> NodeId {
        self.config.node_id
    }

    /// The metadata as it is committed and applied here.
    pub fn image(&self) -> Arc<Image> {
        self.shared.image.load_full()
    }

    /// Tells each time the image moved, by its end offset.
    pub fn watch(&self) -> watch::Receiver<Offset> {
        self.shared.applied.subscribe()
    }

    /// Decides on what is appended so far; answers when the decision is committed and applied here. Where the asker has gone
    /// away before it was decided, nothing is.
    ///
    /// # Errors
    /// Nothing was decided, or it is not known to be committed.
    pub async fn decide<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&Controller) -> Decision<R> + Send + 'static,
    ) -> Result<R, ClusterError> {
        self.decide_at(move |controller, _| decide(controller)).await
    }

    /// As [`Self::decide`], for what makes the metadata and the logs only grow: the reserve of a full disk is not for it.
    /// Where the metadata log's folder has space there is one for partitions too.
    ///
    /// # Errors
    /// As there, and something was to be made while the metadata log's disk is full.
    pub async fn decide_where_space_is<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&Controller) -> Decision<R> + Send + 'static,
    ) -> Result<R, ClusterError> {
        let (folder, clock) = (self.log_folder.clone(), self.clock.clone());
        self.decide(move |controller| {
            let decision = decide(controller);
            if !decision.records.is_empty() && !folder.has_space(clock.wall()) {
                return Decision { records: Vec::new(), reply: Err(ClusterError::DiskFull) };
            }
            Decision { records: decision.records, reply: Ok(decision.reply) }
        })
        .await?
    }

    /// The same as [`Self::decide`] for what goes by the time, or is noted by the controller without a record.
    pub(crate) async fn decide_at<R: Send + 'static>(
        &self,
        decide: impl FnOnce(&mut Controller, Instant) -> Decision<R> + Send + 'static,
    ) -> Result<R, ClusterError> {
        let place = self.decisions.clone().acquire_owned().await.map_err(|_| ClusterError::Closing)?;
        let (give, take) = oneshot::channel();
        let decide: Decide = Box::new(move |controller, now| {
            if give.is_closed() {
                return Decided { records: Vec::new(), answer: Box::new(|| drop(place)) };
            }
            let decision = decide(controller, now);
            let reply = decision.reply;
            let answer = move || {
                // Who asked may have gone away.
                let _ = give.send(reply);
                drop(place);
            };
            Decided { records: decision.records, answer: Box::new(answer) }
        });
        self.deciding.send(decide).await.map_err(|_| ClusterError::Closing)?;
        take.await.map_err(|_| ClusterError::NotController)
    }

    /// Opens the logs of this node's partitions, as far as the metadata is known here.
    pub(crate) async fn open_logs(&self) {
        self.replication.open_logs(&self.image()).await;
    }

    pub(crate) fn replication(&self) -> &Arc<Replication> {
        &self.replication
    }

    /// Takes the lead of this node's partitions; from then on they follow the metadata. Called once, when the broker is
    /// unfenced.
    pub(crate) async fn open_partitions(&self) -> Result<(), ClusterError> {
        let (give, take) = oneshot::channel();
        self.open.send(give).await.map_err(|_| ClusterError::Closing)?;
        take.await.map_err(|_| ClusterError::Closing)
    }

    /// How the quorum stands.
    ///
    /// # Errors
    /// The node is ending.
    pub async fn describe_quorum(&self) -> Result<crate::QuorumDescription, ClusterError> {
        let (give, take) = oneshot::channel();
        self.mailbox.send(Command::Describe(give)).await.map_err(|_| ClusterError::Closing)?;
        take.await.map_err(|_| ClusterError::Closing)
    }
}
