//! This broker in its cluster: it registers with each start, says that it lives, and takes its leave.
//!
//! A task asks the active controller, wherever that is: first for a registration, then for what it wants with each
//! heartbeat. It speaks at once, and does not wait for the next heartbeat, when another controller leads or the connection
//! to it closed (it would be fenced a quarter of a second later), when a log folder failed, and when another broker that
//! stops waits for everybody to know.
//!
//! It begins fenced. Once its registration is known here, everything that was committed before is: then logs are opened,
//! and none is taken for a stray. With the logs open it is unfenced, and only then leads: before that the metadata may
//! still say what the last run was.
//!
//! Kafka: `BrokerLifecycleManager`, `BrokerRegistrationTracker`; KIP-631, 841, 858.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use controller::{ConnectionId, Heartbeat, HeartbeatReply, Registration};
use env::Env;
use metadata::{Broker, Image};
use model::{BrokerEpoch, DirectoryId, ErrorCode, Offset};
use storage::LogFolder;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use crate::alterations::Alterations;
use crate::assignments::Assignments;
use crate::controller_peer::{ControllerPeer, Unanswered};
use crate::{Cluster, ClusterError};

/// The pause after a question that was not answered, or refused.
const TRY_AGAIN: Duration = Duration::from_millis(50);
/// How often a broker asks that waits for what it wants.
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// Why the broker was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// The node is ending.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The controller refused.
    #[error("{0:?}; the log of the active controller says why")]
    Refused(ErrorCode),
    /// It was tried for `initial.broker.registration.timeout.ms`.
    #[error("not within initial.broker.registration.timeout.ms: {0}")]
    TooLate(String),
}

/// This broker in its cluster.
pub struct Lifecycle {
    cluster: Arc<Cluster>,
    wants: watch::Sender<Wants>,
    standing: watch::Receiver<Standing>,
}

/// What the broker asks for with its heartbeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wants {
    /// To stay away from clients: it is not ready.
    Fence,
    /// To serve.
    Serve,
    /// To stop.
    Stop,
}

/// How far the broker is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Unregistered,
    Registered(BrokerEpoch),
    Refused(Refusal),
    /// Nothing keeps this run any more.
    MayStop(BrokerEpoch),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Final(ErrorCode),
    TooLate(String),
}

impl Standing {
    pub(crate) fn epoch(&self) -> Option<BrokerEpoch> {
        match self {
            Self::Registered(epoch) | Self::MayStop(epoch) => Some(*epoch),
            Self::Unregistered | Self::Refused(_) => None,
        }
    }
}

impl Lifecycle {
    /// Begins to register; `folders` are this node's.
    pub fn start(
        env: &Env,
        cluster: &Arc<Cluster>,
        registration: Registration,
        folders: Vec<Arc<LogFolder>>,
        closing: CancellationToken,
    ) -> Self {
        let ((wants, wanted), (show, standing)) =
            (watch::channel(Wants::Fence), watch::channel(Standing::Unregistered));
        let layers = cluster.broker_config().layers();
        let millis = |name| Duration::from_millis(layers.integer(name).max(1) as u64);
        let task = Task {
            env: env.clone(),
            cluster: cluster.clone(),
            controller: ControllerPeer::new(env, cluster.clone(), "heartbeats", 1),
            registration,
            folders,
            wanted,
            show,
            heartbeat_interval: millis("broker.heartbeat.interval.ms"),
            answer_within: millis("broker.session.timeout.ms") / 2,
            register_within: Some(millis("initial.broker.registration.timeout.ms")),
            seen_offline: BTreeSet::new(),
            told: Offset(-1),
        };
        env.exec.spawn("lifecycle", Box::pin(task.run(closing.clone())));
        let alterations = Alterations::new(env, cluster, standing.clone());
        env.exec.spawn("alter partition", Box::pin(alterations.run(closing.clone())));
        let assignments = Assignments::new(env, cluster, standing.clone());
        env.exec.spawn("assign replicas", Box::pin(assignments.run(closing)));
        Self { cluster: cluster.clone(), wants, standing }
    }

    /// Waits for the registration, opens this node's logs, and then serves as far as the metadata says. The broker's epoch.
    ///
    /// # Errors
    /// The controller refused, or the node is ending.
    pub async fn join(&mut self) -> Result<BrokerEpoch, RegistrationError> {
        let epoch = self.registered().await?;
        self.until_known(|broker| broker.epoch >= epoch).await?;
        self.cluster.open_logs().await;
        self.wants.send_replace(Wants::Serve);
        self.until_known(|broker| !broker.fenced).await?;
        self.cluster.open_partitions().await?;
        info!(broker_epoch = %epoch, "the broker is registered");
        Ok(epoch)
    }

    /// Hands over what this broker leads, if there is somebody to take it, for at most so long.
    pub async fn shut_down(&mut self, env: &Env, within: Duration) {
        let is_on = self.cluster.broker_config().layers().boolean("controlled.shutdown.enable");
        if !is_on || self.epoch().is_none() || !has_others(&self.cluster.image(), &self.cluster) {
            return;
        }
        self.wants.send_replace(Wants::Stop);
        let until = env.clock.now().plus(within);
        let may_stop = self.standing.wait_for(|standing| matches!(standing, Standing::MayStop(_)));
        if env::timeout(&*env.clock, until, may_stop).await.is_some() {
            info!("this broker has handed over what it led");
        } else {
            warn!("this broker stops without the controller's leave");
        }
    }

    /// The epoch of the registration that counts now; none where there is none.
    pub fn epoch(&self) -> Option<BrokerEpoch> {
        self.standing.borrow().epoch()
    }

    /// Ends when the controller has refused this broker for good.
    pub async fn refused(&mut self) -> RegistrationError {
        loop {
            match self.registered().await {
                Ok(_) if self.standing.changed().await.is_ok() => {}
                Err(error @ (RegistrationError::Refused(_) | RegistrationError::TooLate(_))) => return error,
                Ok(_) | Err(RegistrationError::Cluster(_)) => std::future::pending().await,
            }
        }
    }

    async fn registered(&mut self) -> Result<BrokerEpoch, RegistrationError> {
        let standing = self.standing.wait_for(|standing| *standing != Standing::Unregistered).await;
        match &*standing.map_err(|_| ClusterError::Closing)? {
            Standing::Registered(epoch) => Ok(*epoch),
            Standing::Refused(Refusal::Final(error)) => Err(RegistrationError::Refused(*error)),
            Standing::Refused(Refusal::TooLate(why)) => Err(RegistrationError::TooLate(why.clone())),
            Standing::Unregistered | Standing::MayStop(_) => Err(ClusterError::Closing.into()),
        }
    }

    /// Waits until what is known here of this broker is so.
    async fn until_known(&self, is_so: impl Fn(&Broker) -> bool) -> Result<(), ClusterError> {
        let (mut applied, me) = (self.cluster.watch(), self.cluster.node_id());
        while !self.cluster.image().brokers.get(me).is_some_and(|broker| is_so(broker)) {
            applied.changed().await.map_err(|_| ClusterError::Closing)?;
        }
        Ok(())
    }
}

/// Whether another broker could take over.
fn has_others(image: &Image, cluster: &Cluster) -> bool {
    image.brokers.iter().any(|broker| broker.is_active() && broker.id != cluster.node_id())
}

/// How a run of heartbeats ends.
enum Ended {
    /// The controller does not know of this registration.
    Unknown,
    MayStop,
}

struct Task {
    env: Env,
    cluster: Arc<Cluster>,
    controller: ControllerPeer,
    registration: Registration,
    folders: Vec<Arc<LogFolder>>,
    wanted: watch::Receiver<Wants>,
    show: watch::Sender<Standing>,
    heartbeat_interval: Duration,
    answer_within: Duration,
    /// How long the first registration is tried for.
    register_within: Option<Duration>,
    /// Its log folders that are known to have failed since.
    seen_offline: BTreeSet<DirectoryId>,
    /// How far the last heartbeat said that the metadata is known here.
    told: Offset,
}

impl Task {
    async fn run(mut self, closing: CancellationToken) {
        tokio::select! {
            biased;
            () = closing.cancelled() => {}
            standing = self.live() => drop(self.show.send_replace(standing)),
        }
    }

    /// Lives until the broker may stop, or was refused.
    async fn live(&mut self) -> Standing {
        loop {
            let epoch = match self.register().await {
                Ok(epoch) => epoch,
                Err(refusal) => return Standing::Refused(refusal),
            };
            debug!(broker_epoch = %epoch, "the controller has registered this broker");
            self.cluster.replication().registered(epoch);
            self.show.send_replace(Standing::Registered(epoch));
            match self.beat(epoch).await {
                Ended::MayStop => return Standing::MayStop(epoch),
                Ended::Unknown => {
                    warn!(broker_epoch = %epoch, "this broker is not registered any more: it registers again");
                    // What the run before this one left behind was told.
                    self.registration.previous_epoch = None;
                    let failed = std::mem::take(&mut self.seen_offline);
                    self.registration.directories.retain(|folder| !failed.contains(folder));
                }
            }
        }
    }

    /// Registers. The first time there is a limit to it, which begins when there is another controller to ask: this node's
    /// own may be waiting for space on its disk.
    async fn register(&mut self) -> Result<BrokerEpoch, Refusal> {
        let mut until = None;
        loop {
            let now = self.env.clock.now();
            let why = match self.controller.ask(now.plus(self.answer_within), self.registration.clone()).await
            {
                Ok(epoch) => {
                    self.register_within = None;
                    return Ok(epoch);
                }
                Err(Unanswered::Refused(error)) if is_final(error) => return Err(Refusal::Final(error)),
                Err(why) => why,
            };
            debug!(%why, "this broker is not registered yet");
            if let Some(within) = self.register_within
                && !matches!(why, Unanswered::NoController | Unanswered::TimedOut)
                && self.env.clock.now() >= *until.get_or_insert(now.plus(within))
            {
                return Err(Refusal::TooLate(why.to_string()));
            }
            self.pause(TRY_AGAIN).await;
        }
    }

    async fn pause(&mut self, wait: Duration) {
        let clock = self.env.clock.clone();
        tokio::select! {
            biased;
            () = clock.sleep(wait) => {}
            () = self.controller.moved() => {}
        }
    }

    async fn beat(&mut self, epoch: BrokerEpoch) -> Ended {
        loop {
            let wanted = *self.wanted.borrow_and_update();
            let heartbeat = self.heartbeat(epoch, wanted);
            let (known, deadline) =
                (heartbeat.metadata_offset, self.env.clock.now().plus(self.answer_within));
            match self.controller.ask(deadline, heartbeat).await {
                Ok(HeartbeatReply { should_shut_down: true, .. }) => return Ended::MayStop,
                Ok(reply) => {
                    self.told = known;
                    let is_there = wanted == Wants::Fence || wanted == Wants::Serve && !reply.is_fenced;
                    self.until_due(if is_there { self.heartbeat_interval } else { ASK_AGAIN }).await;
                }
                Err(Unanswered::Refused(ErrorCode::StaleBrokerEpoch | ErrorCode::BrokerIdNotRegistered)) => {
                    return if wanted == Wants::Stop { Ended::MayStop } else { Ended::Unknown };
                }
                Err(why) => {
                    debug!(%why, "a heartbeat was not answered");
                    self.pause(TRY_AGAIN).await;
                }
            }
        }
    }

    fn heartbeat(&self, epoch: BrokerEpoch, wanted: Wants) -> Heartbeat {
        Heartbeat {
            id: self.registration.id,
            epoch,
            metadata_offset: Offset(self.cluster.image().end().0 - 1),
            want_fence: wanted == Wants::Fence,
            want_shut_down: wanted == Wants::Stop,
            offline_directories: self.seen_offline.iter().copied().collect(),
            lost: if wanted == Wants::Serve { self.cluster.replication().lost() } else { Vec::new() },
            connection: ConnectionId::LOCAL,
        }
    }

    /// Waits until it is time for the next heartbeat, or there is a reason for an earlier one.
    async fn until_due(&mut self, wait: Duration) {
        let (clock, cluster) = (self.env.clock.clone(), self.cluster.clone());
        let (told, registered) = (self.told, &self.registration.directories);
        tokio::select! {
            biased;
            () = clock.sleep(wait) => {}
            Ok(()) = self.wanted.changed() => {}
            () = self.controller.moved() => {}
            failed = folder_failed(&self.folders, registered, &self.seen_offline) => self.seen_offline = failed,
            () = is_waited_for(&cluster, told) => {}
        }
    }
}

/// Trying again would not help.
fn is_final(error: ErrorCode) -> bool {
    matches!(
        error,
        ErrorCode::InconsistentClusterId | ErrorCode::UnsupportedVersion | ErrorCode::InvalidRegistration
    )
}

/// Ends when more of these log folders have failed than `seen`: with all that have.
async fn folder_failed(
    folders: &[Arc<LogFolder>],
    registered: &[DirectoryId],
    seen: &BTreeSet<DirectoryId>,
) -> BTreeSet<DirectoryId> {
    let folders: Vec<_> =
        folders.iter().filter(|folder| registered.contains(&folder.directory_id())).collect();
    std::future::poll_fn(|cx| {
        let failed = folders.iter().filter(|folder| folder.poll_offline(cx).is_ready());
        let failed: BTreeSet<_> = failed.map(|folder| folder.directory_id()).collect();
        if failed.len() > seen.len() { Poll::Ready(failed) } else { Poll::Pending }
    })
    .await
}

/// Ends when a broker that stops waits until everybody knows, and this node knows more than it told.
async fn is_waited_for(cluster: &Cluster, told: Offset) {
    let mut applied = cluster.watch();
    loop {
        let image = cluster.image();
        let stops = |broker: &Arc<Broker>| broker.in_controlled_shutdown && !broker.fenced;
        if image.end().0 - 1 > told.0 && image.brokers.iter().any(stops) {
            return;
        }
        if applied.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
