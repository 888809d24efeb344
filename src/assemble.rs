//! The composition root: builds the rooms bottom up, connects them, and ends them top down.
//!
//! The listeners are bound first, so that a client that comes early waits instead of failing, and serve last.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{Forming, Node};
use cluster::{Beginning, BootError, Cluster, FatalError, FormationError, Newcomer, RegistrationError};
use env::Env;
use host::{HostClock, HostDisk, HostExec, HostRng};
use model::{BrokerEpoch, DirectoryId, Limits};
use replication::Replication;
use server::{Bound, Server};
use shards::Shards;
use storage::{FolderError, LogFolder};
use telemetry::Registry;
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::warn;
use transport::{TcpConfig, TcpNet};

use crate::announce;
use crate::config::{Config, ConfigError, Roles};
use crate::log_folders;

/// How long tasks may take to end after everything was told to.
const PATIENCE: Duration = Duration::from_secs(3);

/// Why a node does not start, or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A listener.
    #[error(transparent)]
    Listen(#[from] std::io::Error),
    /// A log folder.
    #[error(transparent)]
    Folder(#[from] FolderError),
    /// The metadata log's folder.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The metadata log.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// A controller that does not know whom it belongs to.
    #[error(
        "the metadata log in {} is empty, and controller.quorum.bootstrap.servers alone does not say which cluster it is \
         of. Name all voters in controller.quorum.voters, or format the folder with kafka-storage",
        .0.display()
    )]
    Unformatted(PathBuf),
    /// The forming of a cluster.
    #[error(
        "the cluster cannot be formed: {0}; check controller.quorum.voters and the cluster ids of all its nodes"
    )]
    Formation(#[from] FormationError),
    /// The registration.
    #[error("this broker could not be registered: {0}")]
    Registration(#[from] RegistrationError),
    /// The node ran and cannot go on.
    #[error("{0}")]
    Fatal(#[from] FatalError),
    /// A task of the node is gone, and nobody does its work.
    #[error("a task panicked; the node ends, and recovers its logs when it starts again")]
    Panicked,
}

/// Runs a node on this machine until it is told to stop, or cannot go on. Must be called in a tokio runtime.
///
/// # Errors
/// Why it does not start, or cannot go on.
pub async fn run(config: Config, shutdown: CancellationToken) -> Result<(), StartError> {
    if let Err(error) = host::raise_open_files() {
        warn!(%error, "the limit of open files could not be raised");
    }
    let exec = HostExec::new(Handle::current(), Limits::FLUSHES_AT_ONCE * config.log_dirs().len());
    run_in(host_env(exec, config.memory.tcp()), config, shutdown).await
}

/// Runs a node in a world: this machine's, or a simulated one.
///
/// # Errors
/// Why it does not start, or cannot go on.
pub async fn run_in(env: Env, config: Config, shutdown: CancellationToken) -> Result<(), StartError> {
    let Some(begun) = begin(&env, &config, &shutdown).await? else { return Ok(()) };
    let bound = match Bound::bind(env.clone(), config.server()).await {
        Ok(bound) => bound,
        Err(error) => {
            log_folders::refuse_used(&env, &config)?;
            return Err(error.into());
        }
    };
    let mut house = tokio::select! {
        biased;
        // It may be waiting for space on its disk.
        () = shutdown.cancelled() => return Ok(()),
        built = House::build(&env, &config, &bound, begun) => built?,
    };
    let server = bound.serve(house.node.clone(), house.registry.clone());
    announce::running(config.node_id(), house.cluster.cluster_id());
    let ended = house.until_stopped(&env, &shutdown).await;
    let closed = house.close(&env, &server, ended.is_ok()).await;
    ended.and(closed)
}

fn host_env(exec: HostExec, tcp: TcpConfig) -> Env {
    let clock = Arc::new(HostClock::new());
    let exec = Arc::new(exec);
    let net = TcpNet::new(clock.clone(), exec.clone(), tcp);
    Env { clock, exec, net: Arc::new(net), disk: Arc::new(HostDisk), rng: Arc::new(HostRng) }
}

/// How the metadata of this node begins.
#[derive(Default)]
pub(crate) struct Begun {
    /// What a newcomer among several voters found out with them; none where there is nothing to find out.
    pub(crate) beginning: Option<Beginning>,
    /// The id of the metadata log's folder, where it is known already.
    pub(crate) directory_id: Option<DirectoryId>,
}

/// Lets a node with an empty metadata log form a cluster with the other voters. None where it was told to stop meanwhile.
async fn begin(
    env: &Env,
    config: &Config,
    shutdown: &CancellationToken,
) -> Result<Option<Begun>, StartError> {
    let dir = &config.log_dirs()[config.metadata_folder()?];
    let knows_others = config.is_one_of_several() || !config.quorum.bootstrap_servers.is_empty();
    if !knows_others || !cluster::is_empty(env.disk.as_ref(), dir)? {
        return Ok(Some(Begun::default()));
    }
    if !config.is_one_of_several() {
        return Err(StartError::Unformatted(dir.clone()));
    }
    let meta = LogFolder::read_meta(env.disk.as_ref(), dir)?;
    let directory_id = match meta.as_ref().and_then(|meta| meta.directory_id) {
        Some(known) => known,
        None => cluster::directory_id(env, dir)?,
    };
    let configured = meta.map(|meta| meta.cluster_id).or_else(|| config.cluster_id.clone());
    let place = config.quorum_place();
    let newcomer =
        Newcomer::new((config.node_id(), directory_id), place.listeners, &place.voters, configured);
    let newcomer = Arc::new(newcomer);
    let bound = Bound::bind(env.clone(), config.server()).await?;
    let server = bound.serve(Arc::new(Forming::new(newcomer.clone())), Arc::default());
    let formed = tokio::select! {
        biased;
        () = shutdown.cancelled() => None,
        formed = newcomer.form(env) => Some(formed?),
    };
    server.close().await;
    Ok(formed.map(|beginning| Begun { beginning: Some(beginning), directory_id: Some(directory_id) }))
}

/// The rooms of a running node.
struct House {
    cluster: Arc<Cluster>,
    replication: Arc<Replication>,
    node: Arc<Node>,
    registry: Arc<Registry>,
    closing: CancellationToken,
    fatal: oneshot::Receiver<FatalError>,
    broker_epoch: BrokerEpoch,
}

impl House {
    async fn build(env: &Env, config: &Config, bound: &Bound, begun: Begun) -> Result<Self, StartError> {
        let (closing, (tell_fatal, mut fatal)) = (CancellationToken::new(), oneshot::channel());
        let (cluster_id, folders) = log_folders::open(env, config, &begun)?;
        let replication = Replication::start(env, config.replication(), folders.clone(), &closing);
        let shards = Shards::start(env, config.shards(), replication.clone(), &closing);
        let at = config.metadata_folder()?;
        let boot = cluster::boot(env, (&folders, at), config.node_id(), begun.beginning.as_ref())?;
        let cluster = Cluster::start(
            env,
            config.cluster(cluster_id),
            boot,
            replication.clone(),
            shards.clone(),
            closing.clone(),
            tell_fatal,
        );
        let registration =
            config.registration(env, cluster.cluster_id(), &folders, |listener| bound.local(listener));
        let broker_epoch = match config.quorum.roles {
            // A controller alone has no broker epoch.
            Roles::Controller => BrokerEpoch(-1),
            Roles::Combined => tokio::select! {
                biased;
                registered = cluster::register(&cluster, registration) => registered?,
                Ok(failed) = &mut fatal => return Err(failed.into()),
            },
        };
        let node =
            Arc::new(Node::new(env.clone(), config.api(), cluster.clone(), replication.clone(), shards));
        let registry = Arc::new(Registry::default());
        Ok(Self { cluster, replication, node, registry, closing, fatal, broker_epoch })
    }

    async fn until_stopped(&mut self, env: &Env, shutdown: &CancellationToken) -> Result<(), StartError> {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            () = env.exec.panicked() => Err(StartError::Panicked),
            Ok(failed) = &mut self.fatal => Err(failed.into()),
        }
    }

    /// The log folders are marked clean only if all that writes to them, the metadata log first, ended in order.
    async fn close(mut self, env: &Env, server: &Server, in_order: bool) -> Result<(), StartError> {
        server.close().await;
        self.closing.cancel();
        let left = env.exec.close(PATIENCE).await;
        if left > 0 {
            warn!(tasks = left, "some tasks did not end in order");
        }
        if let Ok(failed) = self.fatal.try_recv() {
            return Err(failed.into());
        }
        if in_order && left == 0 {
            self.replication.close(self.broker_epoch).await;
        }
        Ok(())
    }
}
