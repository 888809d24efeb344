//! The driver's way to the other nodes of the quorum: where they are reached, and what they answer.
//!
//! Each node has two connections. A Fetch is held back by its leader while there is nothing new, and a vote must not stand
//! behind it. A question that gets no answer is reported as that; the core decides whether it asks again.
//!
//! Where a node is reached is known from the voters record, or from the configuration where voters are static; a leader
//! also says it itself. What it says counts more, until it is not reached there.
//!
//! Kafka: `KafkaNetworkChannel`, `RequestManager`.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use env::{BoxFuture, Env};
use model::{Instant, Limits, NodeId};
use protocol::messages::{
    BeginQuorumEpochRequest, EndQuorumEpochRequest, FetchRequest, FetchSnapshotRequest, VoteRequest,
};
use quorum::{Endpoint, Request, RequestId, VoterSet};
use tokio::sync::mpsc;
use tracing::debug;
use transport::{CallError, Peer, PeerConfig, RECONNECT_BACKOFF, RECONNECT_BACKOFF_MAX};

use crate::QuorumConfig;
use crate::wire::{Address, Answer, Place, QuorumApi};

/// Answers that wait for the driver; the core asks each peer one question at a time.
const ANSWERS: usize = 64;
/// Questions to one node at once: one, and those that the core no longer waits for.
const IN_FLIGHT: usize = 8;
/// Leaders that are remembered: more than any cluster has voters, and no more than that whoever asks.
const LEADERS_MAX: usize = 64;

/// What became of a question.
pub(crate) struct Answered {
    pub(crate) id: RequestId,
    to: quorum::Peer,
    pub(crate) answer: Result<Answer, Unanswered>,
}

impl Answered {
    /// The node that was asked, if nobody listens where it is.
    pub(crate) fn unreachable(&self) -> Option<NodeId> {
        match (self.to, &self.answer) {
            (quorum::Peer::Node(node), Err(Unanswered::Call(CallError::Connect(_)))) => Some(node),
            _ => None,
        }
    }
}

/// Why a question has no answer.
pub(crate) enum Unanswered {
    Call(CallError),
    /// It was refused as a whole, or the answer is about something else.
    Refused,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Purpose {
    Fetch,
    Vote,
}

pub(crate) struct Peers {
    env: Env,
    place: Arc<Place>,
    request_timeout: Duration,
    /// Of `controller.quorum.bootstrap.servers`.
    bootstrap: Vec<String>,
    /// Of the voters.
    voters: BTreeMap<NodeId, Address>,
    /// As leaders said.
    leaders: BTreeMap<NodeId, Address>,
    connections: BTreeMap<(quorum::Peer, Purpose), (String, Peer)>,
    give: mpsc::Sender<Answered>,
    take: mpsc::Receiver<Answered>,
}

impl Peers {
    pub(crate) fn new(env: &Env, place: Place, request_timeout: Duration, config: &QuorumConfig) -> Self {
        let (give, take) = mpsc::channel(ANSWERS);
        let fixed = config
            .voters
            .iter()
            .map(|(node, (host, port))| (*node, Address { node: *node, host: host.clone(), port: *port }));
        Self {
            env: env.clone(),
            request_timeout,
            bootstrap: bootstrap(&place, config),
            place: Arc::new(place),
            voters: fixed.collect(),
            leaders: BTreeMap::new(),
            connections: BTreeMap::new(),
            give,
            take,
        }
    }

    /// How many addresses there are to ask for the leader.
    pub(crate) fn bootstrap_servers(&self) -> usize {
        self.bootstrap.len()
    }

    /// The voters that count have changed.
    pub(crate) fn learn_voters(&mut self, voters: &VoterSet) {
        let ours = self.place.endpoints.first().map(|endpoint| endpoint.name.as_str());
        for voter in voters.iter() {
            let same = voter.endpoints.iter().find(|endpoint| Some(endpoint.name.as_str()) == ours);
            if let Some(endpoint) = same.or(voter.endpoints.first()) {
                let Endpoint { host, port, .. } = endpoint.clone();
                self.voters.insert(voter.key.id, Address { node: voter.key.id, host, port });
            }
        }
    }

    /// A leader, or somebody who follows it, says where it is.
    pub(crate) fn learn_leader(&mut self, leader: Address) {
        if leader.node == self.place.me.id {
            return;
        }
        if self.leaders.len() >= LEADERS_MAX && !self.leaders.contains_key(&leader.node) {
            self.leaders.clear();
        }
        self.leaders.insert(leader.node, leader);
    }

    /// Where a node is reached, this one too.
    pub(crate) fn address(&self, node: NodeId) -> Option<Address> {
        if node == self.place.me.id {
            let Endpoint { host, port, .. } = self.place.endpoints.first()?.clone();
            return Some(Address { node, host, port });
        }
        self.leaders.get(&node).or_else(|| self.voters.get(&node)).cloned()
    }

    /// Asks a peer; what becomes of it comes out of [`answered`](Self::answered).
    ///
    /// # Errors
    /// Nobody knows where the peer is.
    pub(crate) fn send(
        &mut self,
        to: quorum::Peer,
        id: RequestId,
        request: Request,
    ) -> Result<(), RequestId> {
        let deadline = self.env.clock.now().plus(self.request_timeout);
        let purpose = match request {
            Request::Fetch(_) | Request::FetchSnapshot(_) => Purpose::Fetch,
            Request::Vote(_) | Request::BeginQuorumEpoch(_) | Request::EndQuorumEpoch(_) => Purpose::Vote,
        };
        let peer = self.connection(to, purpose).ok_or(id)?;
        let place = self.place.clone();
        let call = match request {
            Request::Vote(asked) => call::<VoteRequest>(peer, asked, place, deadline),
            Request::BeginQuorumEpoch(asked) => call::<BeginQuorumEpochRequest>(peer, asked, place, deadline),
            Request::EndQuorumEpoch(asked) => call::<EndQuorumEpochRequest>(peer, asked, place, deadline),
            Request::Fetch(asked) => call::<FetchRequest>(peer, asked, place, deadline),
            Request::FetchSnapshot(asked) => call::<FetchSnapshotRequest>(peer, asked, place, deadline),
        };
        let give = self.give.clone();
        let report = async move {
            let answer = call.await;
            // The driver is gone only when the node ends.
            let _ = give.send(Answered { id, to, answer }).await;
        };
        self.env.exec.spawn("quorum question", Box::pin(report));
        Ok(())
    }

    /// What became of a question.
    pub(crate) async fn answered(&mut self) -> Answered {
        let answered = match self.take.recv().await {
            Some(answered) => answered,
            None => std::future::pending().await,
        };
        match &answered.answer {
            Ok(answer) => answer.leader.clone().into_iter().for_each(|leader| self.learn_leader(leader)),
            Err(error) => self.unanswered(answered.to, error),
        }
        answered
    }

    fn unanswered(&mut self, to: quorum::Peer, error: &Unanswered) {
        match error {
            Unanswered::Call(CallError::BackingOff) => {}
            Unanswered::Call(error) => debug!(?to, %error, "a question to a peer has no answer"),
            Unanswered::Refused => debug!(?to, "a peer refused a question as a whole"),
        }
        if let (quorum::Peer::Node(node), Unanswered::Call(CallError::Connect(_))) = (to, error) {
            self.leaders.remove(&node);
        }
    }

    fn connection(&mut self, to: quorum::Peer, purpose: Purpose) -> Option<Peer> {
        let address = match to {
            quorum::Peer::Node(node) => self.address(node)?.to_string(),
            quorum::Peer::Bootstrap(index) => self.bootstrap.get(index)?.clone(),
        };
        match self.connections.get(&(to, purpose)) {
            Some((same, peer)) if *same == address => Some(peer.clone()),
            _ => {
                let peer = Peer::new(&self.env, self.config(), &address, purpose.name());
                self.connections.insert((to, purpose), (address, peer.clone()));
                Some(peer)
            }
        }
    }

    fn config(&self) -> PeerConfig {
        PeerConfig {
            client_id: format!("raft-client-{}", self.place.me.id),
            // One batch may be larger than what was asked for.
            frame_bytes_max: 2 * Limits::DECOMPRESSED_BYTES_MAX,
            in_flight_max: IN_FLIGHT,
            setup_timeout: self.request_timeout,
            reconnect_backoff: RECONNECT_BACKOFF,
            reconnect_backoff_max: RECONNECT_BACKOFF_MAX,
        }
    }
}

impl Purpose {
    fn name(self) -> &'static str {
        match self {
            Self::Fetch => "quorum fetch",
            Self::Vote => "quorum vote",
        }
    }
}

/// Whom to ask for the leader: without bootstrap servers the voters of the configuration, for a node that is none of the
/// cluster's voters knows no others.
fn bootstrap(place: &Place, config: &QuorumConfig) -> Vec<String> {
    if !config.bootstrap_servers.is_empty() {
        return config.bootstrap_servers.clone();
    }
    let others = config.voters.iter().filter(|(node, _)| **node != place.me.id);
    let address = |(node, (host, port)): (&NodeId, &(String, u16))| {
        Address { node: *node, host: host.clone(), port: *port }.to_string()
    };
    others.map(address).collect()
}

fn call<R: QuorumApi>(
    peer: Peer,
    question: R::Question,
    place: Arc<Place>,
    deadline: Instant,
) -> BoxFuture<'static, Result<Answer, Unanswered>>
where
    R::Response: Send,
{
    Box::pin(async move {
        let asked = peer.call::<R>(deadline, move |version| R::ask(&question, &place, version)).await;
        R::hear(asked.map_err(Unanswered::Call)?.response).ok_or(Unanswered::Refused)
    })
}

#[cfg(test)]
mod tests {
    use model::{ClusterId, Uuid};
    use quorum::ReplicaKey;

    use super::*;

    fn address(node: i32, host: &str) -> Address {
        Address { node: NodeId(node), host: host.to_owned(), port: 9093 }
    }

    #[test]
    fn what_a_leader_says_of_itself_counts_more_than_the_configuration_and_is_bounded() {
        let world = sim::World::new(1);
        let env = world.node("n").boot();
        let me = ReplicaKey::new(NodeId(1), Uuid([1; 16]));
        let place = Place { me, cluster_id: ClusterId::from("c"), endpoints: Vec::new() };
        let voters = [(NodeId(2), ("old".to_owned(), 9093))].into();
        let config = QuorumConfig { voters, ..QuorumConfig::default() };
        let mut peers = Peers::new(&env, place, Duration::from_secs(2), &config);
        assert_eq!(peers.address(NodeId(2)), Some(address(2, "old")));
        peers.learn_leader(address(2, "new"));
        assert_eq!(peers.address(NodeId(2)), Some(address(2, "new")));
        for node in 3..1000 {
            peers.learn_leader(address(node, "anywhere"));
        }
        assert!(peers.leaders.len() <= LEADERS_MAX);
    }
}
