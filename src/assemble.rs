//! The composition root: builds the rooms bottom up, connects them, and ends them top down.
//!
//! The listeners are bound first, so that a client that comes early waits instead of failing. Those for controllers serve
//! as soon as there is something to say, for without them nobody is elected; those for clients serve last, and end first.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use api::{Forming, Node, Side};
use cluster::{
    Beginning, BootError, Cluster, FatalError, FormationError, Lifecycle, Newcomer, RegistrationError,
};
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
use tracing::{debug, warn};
use transport::{TcpConfig, TcpNet};

use crate::announce;
use crate::config::{Config, ConfigError, Roles};
use crate::log_folders;

/// How long tasks may take to end after everything was told to.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a broker that stops waits until others lead what it led: Docker kills after ten seconds in all.
const CONTROLLED_SHUTDOWN: Duration = Duration::from_secs(3);

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
    let env = host_env(exec, config.memory.tcp());
    let Some(running) = start(&env, &config, &shutdown).await? else { return Ok(()) };
    if let Err(error) = host::allow_huge_pages(true) {
        debug!(%error, "memory comes in small pages");
    }
    running.until_stopped(&env, &shutdown).await
}

/// Runs a node in a world: this machine's, or a simulated one.
///
/// # Errors
/// Why it does not start, or cannot go on.
pub async fn run_in(env: Env, config: Config, shutdown: CancellationToken) -> Result<(), StartError> {
    match start(&env, &config, &shutdown).await? {
        Some(running) => running.until_stopped(&env, &shutdown).await,
        None => Ok(()),
    }
}

/// A node that serves. None where it was told to stop meanwhile.
async fn start(
    env: &Env,
    config: &Config,
    shutdown: &CancellationToken,
) -> Result<Option<Running>, StartError> {
    let Some(begun) = begin(env, config, shutdown).await? else { return Ok(None) };
    let (clients, controllers) =
        (bind(env, config, Side::Broker).await?, bind(env, config, Side::Controller).await?);
    let house = tokio::select! {
        biased;
        // It may be waiting for space on its disk.
        () = shutdown.cancelled() => return Ok(None),
        built = House::build(env, config, &clients, controllers, begun) => built?,
    };
    let server = clients.serve(house.node.clone(), house.registry.clone());
    announce::running(config.node_id(), house.cluster.cluster_id());
    Ok(Some(Running { house, server }))
}

struct Running {
    house: House,
    server: Server,
}

impl Running {
    async fn until_stopped(self, env: &Env, shutdown: &CancellationToken) -> Result<(), StartError> {
        let Self { mut house, server } = self;
        let ended = house.until_stopped(env, shutdown).await;
        let closed = house.close(env, &server, ended.is_ok()).await;
        ended.and(closed)
    }
}

/// Binds the listeners of one side.
async fn bind(env: &Env, config: &Config, side: Side) -> Result<Bound, StartError> {
    match Bound::bind(env.clone(), config.server(side)).await {
        Ok(bound) => Ok(bound),
        Err(error) => {
            log_folders::refuse_used(env, config)?;
            Err(error.into())
        }
    }
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

/// Lets a node with an empty metadata log find out what it is a part of, or form that with others. None where it was told to
/// stop meanwhile.
async fn begin(
    env: &Env,
    config: &Config,
    shutdown: &CancellationToken,
) -> Result<Option<Begun>, StartError> {
    let dir = &config.log_dirs()[config.metadata_folder()?];
    let knows_others = config.begins_with_others() || !config.quorum.bootstrap_servers.is_empty();
    if !knows_others || !cluster::is_empty(env.disk.as_ref(), dir)? {
        return Ok(Some(Begun::default()));
    }
    if !config.begins_with_others() {
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
    let bound = Bound::bind(env.clone(), config.server(Side::Controller)).await?;
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
    /// For controllers and brokers that ask them.
    controllers: Server,
    /// This broker's; a controller alone has none.
    lifecycle: Option<Lifecycle>,
}

impl House {
    async fn build(
        env: &Env,
        config: &Config,
        clients: &Bound,
        controllers: Bound,
        begun: Begun,
    ) -> Result<Self, StartError> {
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
        let node =
            Arc::new(Node::new(env.clone(), config.api(), cluster.clone(), replication.clone(), shards));
        let registry = Arc::new(Registry::default());
        let controllers = controllers.serve(node.clone(), registry.clone());
        let mut lifecycle = (config.quorum.roles != Roles::Controller).then(|| {
            let local = |listener: &str| clients.local(listener);
            let registration = config.registration(env, cluster.cluster_id(), &folders, local);
            Lifecycle::start(env, &cluster, registration, folders.clone(), closing.clone())
        });
        if let Some(lifecycle) = &mut lifecycle {
            tokio::select! {
                biased;
                joined = lifecycle.join() => drop(joined?),
                Ok(failed) = &mut fatal => return Err(failed.into()),
            }
        }
        Ok(Self { cluster, replication, node, registry, closing, fatal, controllers, lifecycle })
    }

    async fn until_stopped(&mut self, env: &Env, shutdown: &CancellationToken) -> Result<(), StartError> {
        tokio::select! {
            biased;
            () = shutdown.cancelled() => Ok(()),
            () = env.exec.panicked() => Err(StartError::Panicked),
            Ok(failed) = &mut self.fatal => Err(failed.into()),
            refused = refused(self.lifecycle.as_mut()) => Err(refused.into()),
        }
    }

    /// The log folders are marked clean only if all that writes to them, the metadata log first, ended in order.
    async fn close(mut self, env: &Env, server: &Server, in_order: bool) -> Result<(), StartError> {
        if let Some(lifecycle) = self.lifecycle.as_mut().filter(|_| in_order) {
            lifecycle.shut_down(env, CONTROLLED_SHUTDOWN).await;
        }
        server.close().await;
        self.closing.cancel();
        let failed = if in_order { self.quorum_ended(env).await } else { None };
        self.controllers.close().await;
        let left = env.exec.close(PATIENCE).await;
        if left > 0 {
            warn!(tasks = left, "some tasks did not end in order");
        }
        if let Some(failed) = failed {
            return Err(failed.into());
        }
        if in_order && left == 0 {
            // A controller alone has no broker epoch.
            let epoch = self.lifecycle.as_ref().and_then(Lifecycle::epoch).unwrap_or(BrokerEpoch(-1));
            self.replication.close(epoch).await;
        }
        Ok(())
    }

    /// Waits until this node has no part in the quorum any more; until then others must reach it, so that one of them can
    /// take over. What it ended with, if it failed.
    async fn quorum_ended(&mut self, env: &Env) -> Option<FatalError> {
        let until = env.clock.now().plus(PATIENCE);
        env::timeout(&*env.clock, until, &mut self.fatal).await?.ok()
    }
}

async fn refused(lifecycle: Option<&mut Lifecycle>) -> RegistrationError {
    match lifecycle {
        Some(lifecycle) => lifecycle.refused().await,
        None => std::future::pending().await,
    }
}
