//! Asking another node: one connection for one purpose, made when it is needed and made anew when it broke.
//!
//! What a node asks its peers for must not wait for something else, so each purpose has a [`Peer`] of its own. Calls are
//! pipelined. A call ends with its answer, at its deadline, or with the connection; it is never sent a second time,
//! for only the caller knows whether the first may have been carried out. While a connection is being made calls wait;
//! after one failed they fail at once until the pause is over.
//!
//! Kafka: `NetworkClient`, `InterBrokerSendThread`, `NodeToControllerChannelManager`.

use std::sync::Arc;
use std::time::Duration;

use env::{Clock, Env, Link};
use model::Instant;
use protocol::Request;
use tokio::sync::{mpsc, oneshot, watch};
use tracing::debug;

use crate::backoff::Backoff;
use crate::call::{Answer, Call, CallError, Question};
use crate::peer_connection::{PeerConnection, fail};
use crate::peer_versions::{PeerVersions, handshake};
use crate::relay::{Relay, RelayedAnswer, RelayedRequest};

/// What nodes take for `reconnect.backoff.ms`: well below the time that a controller gives a broker whose connection closed.
/// Kafka: `KafkaRaftManager.buildNetworkClient`.
pub const RECONNECT_BACKOFF: Duration = Duration::from_millis(50);
/// What they take for `reconnect.backoff.max.ms`.
pub const RECONNECT_BACKOFF_MAX: Duration = Duration::from_millis(500);

/// How peers are spoken to.
#[derive(Clone, Debug)]
pub struct PeerConfig {
    /// What this node calls itself.
    pub client_id: String,
    /// The largest answer.
    pub frame_bytes_max: usize,
    /// So many calls wait for answers at once, and as many again for their turn.
    pub in_flight_max: usize,
    /// `socket.connection.setup.timeout.ms`: for the connection and the first answer.
    pub setup_timeout: Duration,
    /// `reconnect.backoff.ms`: the pause after the first failure.
    pub reconnect_backoff: Duration,
    /// `reconnect.backoff.max.ms`: the longest pause.
    pub reconnect_backoff_max: Duration,
}

/// Another node, reached at one address for one purpose. Its connection closes with the last clone.
#[derive(Clone)]
pub struct Peer {
    clock: Arc<dyn Clock>,
    questions: mpsc::Sender<Box<dyn Question>>,
    state: watch::Receiver<PeerState>,
}

/// What is known of a peer without asking it.
#[derive(Clone, Debug, Default)]
pub struct PeerState {
    /// How many connections that worked have closed: where it grows, the peer may be gone.
    pub closed: u64,
    /// What the peer serves, while there is a connection.
    pub versions: Option<Arc<PeerVersions>>,
}

impl Peer {
    /// A peer that is not connected yet. `purpose` is for logs.
    pub fn new(env: &Env, config: PeerConfig, address: &str, purpose: &'static str) -> Self {
        let (questions, asked) = mpsc::channel(config.in_flight_max);
        let (tell_state, state) = watch::channel(PeerState::default());
        let backoff = Backoff::new(config.reconnect_backoff, config.reconnect_backoff_max);
        let task = Task {
            env: env.clone(),
            config,
            address: address.to_owned(),
            purpose,
            asked,
            state: tell_state,
            backoff,
        };
        env.exec.spawn(purpose, Box::pin(task.run()));
        Self { clock: env.clock.clone(), questions, state }
    }

    /// Asks the peer; `request` makes the request for the version that both sides speak.
    ///
    /// # Errors
    /// Why there is no answer. Nothing is tried again.
    pub async fn call<R>(
        &self,
        deadline: Instant,
        request: impl FnOnce(i16) -> R + Send + 'static,
    ) -> Result<Answer<R>, CallError>
    where
        R: Request + Send + 'static,
        R::Response: Send,
    {
        let (give, take) = oneshot::channel();
        self.ask(Box::new(Call::new(request, deadline, give)), take, deadline).await
    }

    /// Passes a request on, at the version that it has.
    ///
    /// # Errors
    /// Why there is no answer. Nothing is tried again.
    pub async fn relay(
        &self,
        deadline: Instant,
        request: RelayedRequest,
    ) -> Result<RelayedAnswer, CallError> {
        let (give, take) = oneshot::channel();
        self.ask(Box::new(Relay::new(request, deadline, give)), take, deadline).await
    }

    async fn ask<T>(
        &self,
        question: Box<dyn Question>,
        take: oneshot::Receiver<Result<T, CallError>>,
        deadline: Instant,
    ) -> Result<T, CallError> {
        let answer = async {
            self.questions.send(question).await.map_err(|_| CallError::Closed)?;
            take.await.map_err(|_| CallError::Closed)?
        };
        env::timeout(&*self.clock, deadline, answer).await.unwrap_or(Err(CallError::TimedOut))
    }

    /// Tells when a connection is made, and when it has closed.
    pub fn watch(&self) -> watch::Receiver<PeerState> {
        self.state.clone()
    }
}

struct Task {
    env: Env,
    config: PeerConfig,
    address: String,
    purpose: &'static str,
    asked: mpsc::Receiver<Box<dyn Question>>,
    state: watch::Sender<PeerState>,
    backoff: Backoff,
}

impl Task {
    async fn run(mut self) {
        while let Some(question) = self.asked.recv().await {
            if question.is_abandoned() {
                continue;
            }
            if !self.backoff.is_over(self.env.clock.now()) {
                fail(question, &*self.env.clock, CallError::BackingOff);
                continue;
            }
            match self.connect().await {
                Ok((link, versions)) => self.converse(link, versions, question).await,
                Err(error) => {
                    debug!(peer = self.address, purpose = self.purpose, %error, "not connected");
                    fail(question, &*self.env.clock, error);
                }
            }
            self.backoff.failed(self.env.clock.now(), &*self.env.rng);
        }
    }

    async fn converse(&mut self, link: Link, versions: PeerVersions, first: Box<dyn Question>) {
        self.backoff.reset();
        debug!(peer = self.address, purpose = self.purpose, "connected");
        let versions = Arc::new(versions);
        self.state.send_modify(|state| state.versions = Some(versions.clone()));
        let connection = PeerConnection::new(&*self.env.clock, &self.config, versions);
        connection.run(link, first, &mut self.asked).await;
        debug!(peer = self.address, purpose = self.purpose, "the connection closed");
        self.state.send_modify(|state| *state = PeerState { closed: state.closed + 1, versions: None });
    }

    async fn connect(&self) -> Result<(Link, PeerVersions), CallError> {
        let connect = async {
            let connected = self.env.net.connect(&self.address, self.config.frame_bytes_max).await;
            let mut link = connected.map_err(|error| CallError::Connect(Arc::new(error)))?;
            let versions = handshake(&mut link, &self.config.client_id).await?;
            Ok((link, versions))
        };
        let deadline = self.env.clock.now().plus(self.config.setup_timeout);
        let too_late = || CallError::Connect(Arc::new(std::io::ErrorKind::TimedOut.into()));
        env::timeout(&*self.env.clock, deadline, connect).await.unwrap_or_else(|| Err(too_late()))
    }
}
