//! Listeners, and the connections that they accept.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use env::{Env, Link, Listener};
use model::Map;
use telemetry::{Counter, Gauge, Registry, metrics};
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::{error, info};

use crate::Handler;
use crate::admission::{Admission, Place};
use crate::connection::{Context, serve};

/// After an error of a listener it is tried again.
const ACCEPT_AGAIN: Duration = Duration::from_secs(1);

/// A named listener (KIP-103). All are PLAINTEXT for now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name, upper case.
    pub name: String,
    /// `host:port`, an IPv6 address in brackets; no host is every address of this machine, port 0 takes any.
    pub address: String,
}

/// What a server is made of.
#[derive(Clone, Debug)]
pub struct Config {
    /// `listeners`.
    pub listeners: Vec<Endpoint>,
    /// `max.connections`: at this many no more are accepted.
    pub connections_max: usize,
    /// `max.connections.per.ip`: more are closed at once.
    pub connections_per_ip_max: usize,
    /// `max.connections.per.ip.overrides`.
    pub connections_per_ip_overrides: Map<IpAddr, usize>,
    /// `connections.max.idle.ms`.
    pub idle_max: Duration,
    /// `socket.request.max.bytes`.
    pub request_bytes_max: usize,
    /// What has started may take so long to finish after a stop.
    pub stop_wait: Duration,
}

/// Listeners that are bound and accept nothing yet.
pub struct Bound {
    env: Env,
    config: Config,
    listeners: Vec<(Arc<str>, Box<dyn Listener>)>,
}

/// A server that serves.
pub struct Server {
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// What the tasks that accept have in common.
struct Shared<H> {
    env: Env,
    config: Config,
    handler: Arc<H>,
    admission: Arc<Admission>,
    registry: Arc<Registry>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

/// One listener's connections, counted.
#[derive(Clone)]
struct Counts {
    open: Gauge,
    created: Counter,
    closed: Counter,
}

/// A connection that is counted as open until this is dropped.
struct Open(Counts);

impl Bound {
    /// Binds all listeners: clients that come now wait.
    ///
    /// # Errors
    /// The first that cannot be bound, with its name and address.
    pub async fn bind(env: Env, config: Config) -> io::Result<Self> {
        let mut listeners = Vec::new();
        for endpoint in &config.listeners {
            let Endpoint { name, address } = endpoint;
            let bound = env.net.listen(address, config.request_bytes_max).await.map_err(|cause| {
                let text =
                    format!("listener {name}://{address} cannot be bound: {cause}; {}", remedy(&cause));
                io::Error::new(cause.kind(), text)
            })?;
            listeners.push((Arc::from(name.as_str()), bound));
        }
        Ok(Self { env, config, listeners })
    }

    /// Where the listener of that name listens: the port is the real one.
    pub fn local(&self, listener: &str) -> Option<SocketAddr> {
        self.listeners.iter().find(|(name, _)| **name == *listener).map(|(_, bound)| bound.local())
    }

    /// Accepts connections from now on.
    pub fn serve<H: Handler>(self, handler: Arc<H>, registry: Arc<Registry>) -> Server {
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let Self { env, config, listeners } = self;
        let admission = Admission::new(
            config.connections_max,
            config.connections_per_ip_max,
            config.connections_per_ip_overrides.clone(),
        );
        let server = Server { stop: stop.clone(), tasks: tasks.clone() };
        let shared = Arc::new(Shared { env, config, handler, admission, registry, stop, tasks });
        for (name, listener) in listeners {
            let accept = Arc::clone(&shared).accept_all(name, listener);
            shared.env.exec.spawn("accept", Box::pin(shared.tasks.track_future(accept)));
        }
        server
    }
}

fn remedy(cause: &io::Error) -> &'static str {
    match cause.kind() {
        io::ErrorKind::AddrInUse => {
            "another process listens there. Stop it, or name another port: --set listeners=PLAINTEXT://127.0.0.1:PORT"
        }
        io::ErrorKind::PermissionDenied => {
            "ports below 1024 need a privilege (CAP_NET_BIND_SERVICE). Name a higher one in listeners"
        }
        io::ErrorKind::AddrNotAvailable => {
            "this machine does not have that address. Name one of its own in listeners, or none for all"
        }
        _ => "check the host's name in listeners",
    }
}

impl Server {
    /// Stops accepting and reading, lets what has started finish, and ends when all connections have ended.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl<H: Handler> Shared<H> {
    async fn accept_all(self: Arc<Self>, name: Arc<str>, mut listener: Box<dyn Listener>) {
        info!(listener = %name, address = %listener.local(), "listening");
        let counts = self.counts(&name);
        let stop = self.stop.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                () = self.accept_one(&name, &mut *listener, &counts) => {}
            }
        }
    }

    /// At the limit of all connections the one that came waits, and all behind it.
    async fn accept_one(self: &Arc<Self>, name: &Arc<str>, listener: &mut dyn Listener, counts: &Counts) {
        match listener.accept().await {
            Ok(link) => self.admit(name, link, self.admission.wait().await, counts),
            Err(cause) => {
                error!(listener = %name, %cause, "accepting failed");
                self.env.clock.sleep(ACCEPT_AGAIN).await;
            }
        }
    }

    /// Serves the connection in a task of its own, or closes it.
    fn admit(self: &Arc<Self>, name: &Arc<str>, link: Link, permit: OwnedSemaphorePermit, counts: &Counts) {
        let open = Open::new(counts.clone());
        let Some(place) = self.admission.admit(permit, link.peer.ip()) else {
            info!(peer = %link.peer, "connection closed: its address has as many as max.connections.per.ip allows");
            return;
        };
        let task = Arc::clone(self).serve_one(Arc::clone(name), link, (place, open));
        self.env.exec.spawn_apart("connection", Box::pin(self.tasks.track_future(task)));
    }

    async fn serve_one(self: Arc<Self>, listener: Arc<str>, link: Link, _held: (Place, Open)) {
        let context = Context {
            handler: Arc::clone(&self.handler),
            clock: Arc::clone(&self.env.clock),
            listener,
            idle_max: self.config.idle_max,
            stop_wait: self.config.stop_wait,
            // Its own, so that connections do not meet at one lock with every request.
            stop: self.stop.child_token(),
        };
        serve(&context, link).await;
    }

    fn counts(&self, listener: &str) -> Counts {
        Counts {
            open: self.registry.get(&metrics::CONNECTIONS, [listener]),
            created: self.registry.get(&metrics::CONNECTIONS_CREATED, [listener]),
            closed: self.registry.get(&metrics::CONNECTIONS_CLOSED, [listener]),
        }
    }
}

impl Open {
    fn new(counts: Counts) -> Self {
        counts.created.add(1);
        counts.open.add(1);
        Self(counts)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.add(-1);
        self.0.closed.add(1);
    }
}
