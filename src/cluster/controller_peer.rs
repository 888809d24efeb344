//! Asking the active controller, for one purpose: in this process where this node leads, else by a connection, which is
//! made anew when another node leads.
//!
//! Who asks the controller for different things has one of these for each, so that what is slow holds up nothing else.
//!
//! Kafka: `NodeToControllerChannelManager`, `RaftControllerNodeProvider`.

use std::sync::Arc;
use std::time::Duration;

use env::Env;
use model::{ErrorCode, Instant, Limits};
use tokio::sync::watch;
use transport::{CallError, Peer, PeerConfig, PeerState, RECONNECT_BACKOFF, RECONNECT_BACKOFF_MAX};

use crate::driver::View;
use crate::wire::ControllerApi;
use crate::{Cluster, ClusterError};

/// `socket.connection.setup.timeout.ms`, and what a controller may take to answer ApiVersions.
const SETUP_TIMEOUT: Duration = Duration::from_secs(5);

/// The node that leads the metadata quorum, whoever it is.
pub(crate) struct ControllerPeer {
    env: Env,
    cluster: Arc<Cluster>,
    view: watch::Receiver<View>,
    purpose: &'static str,
    in_flight_max: usize,
    leader: Option<Leader>,
}

/// The leader that was asked last.
struct Leader {
    address: String,
    peer: Peer,
    state: watch::Receiver<PeerState>,
    /// How many of its connections are known to have closed.
    closed: u64,
}

/// Why the controller has no answer.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unanswered {
    #[error("it is not known which controller is active")]
    NoController,
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// The one in this process.
    #[error("no answer in time")]
    TimedOut,
    #[error("the controller refused: {0:?}")]
    Refused(ErrorCode),
}

impl ControllerPeer {
    /// `purpose` is for logs; so many questions may be under way at once.
    pub(crate) fn new(env: &Env, cluster: Arc<Cluster>, purpose: &'static str, in_flight_max: usize) -> Self {
        let view = cluster.view.clone();
        Self { env: env.clone(), cluster, view, purpose, in_flight_max, leader: None }
    }

    /// Whether this node leads, as far as it knows.
    pub(crate) fn is_here(&self) -> bool {
        self.view.borrow().leader == Some(self.cluster.node_id())
    }

    /// The connection to the node that leads now; none where it is not known, or not known where it is.
    pub(crate) fn peer(&mut self) -> Option<Peer> {
        let address = self.view.borrow().leader_address.as_ref()?.to_string();
        if self.leader.as_ref().is_none_or(|known| known.address != address) {
            let peer = Peer::new(&self.env, self.config(), &address, self.purpose);
            let state = peer.watch();
            self.leader = Some(Leader { address, peer, state, closed: 0 });
        }
        self.leader.as_ref().map(|leader| leader.peer.clone())
    }

    /// Asks the controller, wherever it is.
    pub(crate) async fn ask<C: ControllerApi>(
        &mut self,
        deadline: Instant,
        command: C,
    ) -> Result<C::Reply, Unanswered> {
        let answer = if self.is_here() {
            let decided = self.cluster.decide_at(move |controller, now| command.decide(controller, now));
            env::timeout(&*self.env.clock, deadline, decided).await.ok_or(Unanswered::TimedOut)??
        } else {
            let peer = self.peer().ok_or(Unanswered::NoController)?;
            C::hear(peer.call::<C::Request>(deadline, move |version| command.ask(version)).await?.response)
        };
        answer.map_err(Unanswered::Refused)
    }

    /// Ends when another node leads, or a connection to this one has closed: who was known there is so no more.
    pub(crate) async fn moved(&mut self) {
        let closed = async {
            match &mut self.leader {
                Some(leader) => leader.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            changed = self.view.changed() => if changed.is_err() { std::future::pending().await },
            () = closed => {}
        }
    }

    fn config(&self) -> PeerConfig {
        PeerConfig {
            client_id: self.cluster.node_id().to_string(),
            frame_bytes_max: Limits::SMALL_FILE_BYTES_MAX,
            in_flight_max: self.in_flight_max,
            setup_timeout: SETUP_TIMEOUT,
            reconnect_backoff: RECONNECT_BACKOFF,
            reconnect_backoff_max: RECONNECT_BACKOFF_MAX,
        }
    }
}

impl Leader {
    async fn closed(&mut self) {
        let known = self.closed;
        let closed = self.state.wait_for(|state| state.closed > known).await.map(|state| state.closed);
        match closed {
            Ok(closed) => self.closed = closed,
            Err(_) => std::future::pending().await,
        }
    }
}
