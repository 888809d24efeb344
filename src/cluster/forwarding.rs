//! Requests for the controller that came to a node whose controller is not the active one.
//!
//! Such a request is passed on as its client encoded it, and the active controller's answer is the client's. While nobody
//! leads it waits; where the leader is gone or is not the one any more, the next one is asked, as long as there is time. So
//! a request may be carried out twice, and Kafka's name what shall be, not what shall be added, for that reason.
//!
//! What was decided is true here before its answer leaves: a client that created a topic by this node finds it on this
//! node. So after each answer the leader is asked how far its log is committed, and the answer waits until that is
//! published here. Kafka answers at once, and its clients ask again.
//!
//! Invariants: what is passed on and waits is bounded in bytes and time; nothing that came to a controller listener is
//! passed on, so that no request goes in a circle.
//!
//! Kafka: `ForwardingManager`, `NodeToControllerChannelManager`; KIP-590. Kafka's brokers wrap what they pass on in an
//! Envelope with the client's principal; there is none yet.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use env::{Clock, Env};
use model::{ErrorCode, Instant, Limits, NodeId, Offset};
use protocol::ToWire;
use protocol::messages::describe_quorum_request::{PartitionData, TopicData};
use protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse};
use tokio::sync::{Semaphore, watch};
use tracing::debug;
use transport::{CallError, Peer, PeerVersions, RelayedAnswer, RelayedRequest};

use crate::controller_peer::ControllerPeer;
use crate::driver::View;
use crate::{Cluster, ClusterError, metadata_partition};

/// Requests that wait for the controller's answer, and as many again for their turn.
const IN_FLIGHT_MAX: usize = 64;
/// A leader that did not take a request is asked again after so long, unless another one is known before.
const PAUSE: Duration = Duration::from_millis(50);
/// What a leader that is not the one any more may take to say so.
const LAST_WORD: Duration = Duration::from_millis(250);
/// What this node may take to know what the controller decided.
const CATCH_UP_WITHIN: Duration = Duration::from_secs(5);
/// What a leader is given to answer, however long its client waits: more than it takes itself, for a question that is out
/// of time ends the connection, and with it the requests of all others.
const ANSWERS_WITHIN: Duration = Duration::from_secs(30);
/// A request on which connections break again and again is better given back.
const BREAKS_MAX: usize = 5;

/// The way to the active controller for the requests of clients.
pub struct Forwarding {
    clock: Arc<dyn Clock>,
    cluster: Arc<Cluster>,
    controller: Arc<Mutex<Option<ControllerPeer>>>,
    /// Bytes that may wait.
    room: Semaphore,
}

impl Forwarding {
    /// For the node of this cluster.
    pub fn new(env: &Env, cluster: Arc<Cluster>) -> Self {
        let controller = ControllerPeer::new(env, cluster.clone(), "forwarding", IN_FLIGHT_MAX);
        let controller = Arc::new(Mutex::new(Some(controller)));
        env.exec.spawn("forwarding", Box::pin(close(cluster.view.clone(), controller.clone())));
        Self { clock: env.clock.clone(), cluster, controller, room: Semaphore::new(Limits::FORWARDED_BYTES) }
    }

    /// The active controller's answer; none where that is this node's, which is then asked without a detour.
    ///
    /// # Errors
    /// No controller answered in time, or it does not serve the request's version.
    pub async fn forward(
        &self,
        request: &RelayedRequest,
        until: Instant,
    ) -> Result<Option<RelayedAnswer>, ClusterError> {
        if self.is_here() {
            return Ok(None);
        }
        let answered = async {
            let bytes = request.body.len().min(Limits::FORWARDED_BYTES) as u32;
            let _room = self.room.acquire_many(bytes).await.map_err(|_| ClusterError::Closing)?;
            self.ask(request, until).await
        };
        env::timeout(&*self.clock, until, answered).await.unwrap_or(Err(ClusterError::TimedOut))
    }

    /// What another node's active controller serves, where it was asked for something already.
    pub fn controller_versions(&self) -> Option<Arc<PeerVersions>> {
        if self.is_here() {
            return None;
        }
        self.peer()?.watch().borrow().versions.clone()
    }

    async fn ask(
        &self,
        request: &RelayedRequest,
        until: Instant,
    ) -> Result<Option<RelayedAnswer>, ClusterError> {
        let (mut view, mut breaks) = (self.cluster.view.clone(), 0);
        while breaks < BREAKS_MAX {
            let leader = view.borrow_and_update().leader;
            if leader == Some(self.cluster.node_id()) {
                return Ok(None);
            }
            match self.ask_leader(request, until, (leader, &mut view)).await {
                Ok(Some(answer)) => return Ok(Some(answer)),
                Ok(None) => {}
                Err(CallError::Unsupported(_)) => return Err(ClusterError::Unsupported),
                Err(error) => {
                    debug!(api_key = request.header.api_key, %error, "a request was not forwarded");
                    breaks += usize::from(error.may_have_arrived());
                }
            }
            self.pause(&mut view).await?;
        }
        Err(ClusterError::TimedOut)
    }

    /// Whether the active controller is this node's: it is to be asked without a detour.
    pub fn is_here(&self) -> bool {
        self.cluster.leader() == Some(self.cluster.node_id())
    }

    fn peer(&self) -> Option<Peer> {
        self.controller.lock().unwrap_or_else(PoisonError::into_inner).as_mut()?.peer()
    }

    /// The answer of this leader, as long as it is the one; none where it is not known where it is, or says that it is not.
    async fn ask_leader(
        &self,
        request: &RelayedRequest,
        until: Instant,
        (leader, view): (Option<NodeId>, &mut watch::Receiver<View>),
    ) -> Result<Option<RelayedAnswer>, CallError> {
        let Some(peer) = self.peer() else { return Ok(None) };
        let deposed = async {
            // Where nobody shows who leads any more the node is ending.
            let _ = view.wait_for(|now| now.leader != leader).await;
            self.clock.sleep(LAST_WORD).await;
        };
        let answer = tokio::select! {
            biased;
            answered = peer.relay(self.answers_until(), request.clone()) => answered?,
            () = deposed => return Err(CallError::Closed),
        };
        if is_from_another(&answer) {
            return Ok(None);
        }
        self.catch_up(&peer, until).await;
        Ok(Some(answer))
    }

    #[cfg(test)]
    pub(crate) fn connections_closed(&self) -> u64 {
        self.peer().map_or(0, |peer| peer.watch().borrow().closed)
    }

    async fn pause(&self, view: &mut watch::Receiver<View>) -> Result<(), ClusterError> {
        tokio::select! {
            biased;
            changed = view.changed() => changed.map_err(|_| ClusterError::Closing),
            () = self.clock.sleep(PAUSE) => Ok(()),
        }
    }

    /// Waits until what the controller has committed by now is published here.
    async fn catch_up(&self, peer: &Peer, until: Instant) {
        let until = until.min(self.clock.now().plus(CATCH_UP_WITHIN));
        let caught_up = async {
            let Ok(answer) = peer.call(self.answers_until(), |_| committed_request()).await else { return };
            let Some(end) = committed_end(&answer.response) else { return };
            // The node may be ending.
            let _ = self.cluster.watch().wait_for(|at| *at >= end).await;
        };
        if env::timeout(&*self.clock, until, caught_up).await.is_none() {
            debug!("this node is behind what its controller decided");
        }
    }

    fn answers_until(&self) -> Instant {
        self.clock.now().plus(ANSWERS_WITHIN)
    }
}

/// Closes the connection when the node closes and nobody shows any more who leads.
async fn close(mut view: watch::Receiver<View>, controller: Arc<Mutex<Option<ControllerPeer>>>) {
    while view.changed().await.is_ok() {}
    *controller.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

/// Whether the answer is that of a node whose controller is not the active one.
fn is_from_another(answer: &RelayedAnswer) -> bool {
    let codes = [ErrorCode::NotController, ErrorCode::NotLeaderOrFollower];
    codes.iter().any(|code| answer.error_codes.contains(&code.code()))
}

fn committed_request() -> DescribeQuorumRequest {
    let metadata = metadata_partition();
    let partition = PartitionData::default().with_partition_index(metadata.partition);
    let topic =
        TopicData::default().with_topic_name(metadata.topic.to_wire()).with_partitions(vec![partition]);
    DescribeQuorumRequest::default().with_topics(vec![topic])
}

/// Up to where the leader's log is committed, exclusive.
fn committed_end(response: &DescribeQuorumResponse) -> Option<Offset> {
    let partition = response.topics.first()?.partitions.first()?;
    (response.error_code == 0 && partition.error_code == 0).then_some(Offset(partition.high_watermark))
}
