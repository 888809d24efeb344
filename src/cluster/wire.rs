//! What nodes ask each other as Kafka's messages, and back. Of the quorum: Vote, BeginQuorumEpoch, EndQuorumEpoch, and
//! Fetch and FetchSnapshot of the metadata log. Of the active controller: BrokerRegistration, BrokerHeartbeat,
//! AlterPartition and AssignReplicasToDirs.
//!
//! They stand in this room because a message says more than the core does: the cluster's id, the topic, where nodes are
//! reached, the bytes of records and snapshots are the driver's, and both directions of an API are best read in one
//! file. `api` hands a decoded request in and gets the response, so that it need not know the core.
//!
//! Invariants: a message that is about anything but the metadata log is refused or nobody's; numbers of a peer are
//! handed on as they came, for the core checks them.
//!
//! Kafka: `RaftUtil`, `KafkaRaftClient.handleVoteRequest` and its kin, `ControllerApis`; KIP-595, 630, 631, 853, 996, 1166.

pub(crate) mod alter_partition;
mod assign_replicas_to_dirs;
mod begin_quorum_epoch;
mod broker_heartbeat;
mod broker_registration;
#[cfg(test)]
mod controller_tests;
mod end_quorum_epoch;
mod fetch;
mod fetch_snapshot;
pub(crate) mod introduction;
#[cfg(test)]
mod tests;
mod vote;

use std::fmt;

use bytes::Bytes;
use controller::{ConnectionId, Controller, Decision};
use model::{ClusterId, ErrorCode, Instant, LeaderEpoch, NodeId, Uuid};
use protocol::{FromWire, Request, StrBytes, ToWire, messages};
use quorum::{CurrentLeader, Endpoint, ReplicaKey, Response};

/// What this node adds to what the core says.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) me: ReplicaKey,
    pub(crate) cluster_id: ClusterId,
    /// Where this node's controller listeners are.
    pub(crate) endpoints: Vec<Endpoint>,
}

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) node: NodeId,
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, port, .. } = self;
        if host.contains(':') { write!(f, "[{host}]:{port}") } else { write!(f, "{host}:{port}") }
    }
}

/// A peer's question.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    pub(crate) request: quorum::Request,
    /// How large its answer may be.
    pub(crate) bytes_max: usize,
    /// Where the asking leader is reached, if it says so.
    pub(crate) leader: Option<Address>,
}

/// An answer, this node's or a peer's: what the core says or is told, and the rest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) response: Response,
    /// Whole batches, or a piece of a snapshot.
    pub(crate) bytes: Bytes,
    /// Where the leader is reached, if that is known.
    pub(crate) leader: Option<Address>,
}

/// One of the five APIs: Kafka's messages to and from the core's.
pub(crate) trait QuorumApi: Request + Send + 'static {
    /// What the core asks.
    type Question: Clone + Send + 'static;

    /// The request for a peer that speaks `version`.
    fn ask(question: &Self::Question, place: &Place, version: i16) -> Self;

    /// What a peer's request asks of the core.
    ///
    /// # Errors
    /// The code that the whole response gets.
    fn read(&self, place: &Place, version: i16) -> Result<Asked, ErrorCode>;

    /// The response that is refused as a whole.
    fn refuse(error: ErrorCode) -> Self::Response;

    /// The response for a peer that speaks `version`; none where the answer is one of another API.
    fn answer(answer: Answer, version: i16) -> Option<Self::Response>;

    /// What a peer answers; none where it is refused as a whole, or is not about the metadata log.
    fn hear(response: Self::Response) -> Option<Answer>;
}

/// One of the APIs that brokers ask the active controller by: a command of the controller, as Kafka's messages.
pub(crate) trait ControllerApi: Send + Sized + 'static {
    type Request: Request<Response: Send> + Send + 'static;
    /// What the controller says, as far as the response tells it.
    type Reply: Send + 'static;

    /// Carries it out.
    fn decide(self, controller: &mut Controller, now: Instant) -> Decision<Result<Self::Reply, ErrorCode>>;

    /// The request for a controller that speaks `version`.
    fn ask(self, version: i16) -> Self::Request;

    /// What a broker's request asks for.
    ///
    /// # Errors
    /// The code that the whole response gets.
    fn read(request: &Self::Request, connection: ConnectionId) -> Result<Self, ErrorCode>;

    /// The response, which says the same in all versions.
    fn answer(result: Result<Self::Reply, ErrorCode>) -> <Self::Request as Request>::Response;

    /// What a controller answers.
    ///
    /// # Errors
    /// The code of the whole response.
    fn hear(response: <Self::Request as Request>::Response) -> Result<Self::Reply, ErrorCode>;
}

const TOPIC: &str = "__cluster_metadata";

fn topic_name() -> messages::TopicName {
    messages::TopicName(StrBytes::from_static_str(TOPIC))
}

/// A request of another cluster is refused; one that says nothing of it is not.
fn check_cluster(theirs: Option<&StrBytes>, place: &Place) -> Result<(), ErrorCode> {
    match theirs {
        Some(theirs) if theirs.as_str() != place.cluster_id.as_str() => Err(ErrorCode::InconsistentClusterId),
        _ => Ok(()),
    }
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

fn key<D>(id: messages::BrokerId, directory: &D) -> ReplicaKey
where
    Uuid: FromWire<D>,
{
    ReplicaKey::new(NodeId(id.0), Uuid::from_wire(directory))
}

/// The voter that a request is for: this one, where its version or its sender does not say so.
fn voter<D>(id: messages::BrokerId, directory: &D, place: &Place) -> ReplicaKey
where
    Uuid: FromWire<D>,
{
    if id.0 < 0 { place.me } else { key(id, directory) }
}

fn current(leader: messages::BrokerId, epoch: i32) -> CurrentLeader {
    CurrentLeader { epoch: LeaderEpoch(epoch), leader: (leader.0 >= 0).then_some(NodeId(leader.0)) }
}

fn leader_id(current: &CurrentLeader) -> messages::BrokerId {
    current.leader.unwrap_or(NodeId::NONE).to_wire()
}

/// The one partition of the metadata log, where the message is about that and nothing else.
macro_rules! only_partition {
    ($topics:expr, $name:ident, $index:ident) => {
        match $topics.as_slice() {
            [topic] if topic.$name.as_str() == $crate::wire::TOPIC => match topic.partitions.as_slice() {
                [partition] if partition.$index == 0 => Some(partition),
                _ => None,
            },
            _ => None,
        }
    };
}

/// The leader's address as a response of this API has it.
macro_rules! node_endpoints {
    ($response:ident, $leader:expr) => {
        $leader
            .into_iter()
            .map(|leader: $crate::wire::Address| {
                protocol::messages::$response::NodeEndpoint::default()
                    .with_node_id(protocol::ToWire::to_wire(&leader.node))
                    .with_host($crate::wire::text(&leader.host))
                    .with_port(leader.port.into())
            })
            .collect()
    };
}

/// The address of the leader that a response names.
macro_rules! leader_address {
    ($endpoints:expr, $leader:expr) => {
        $endpoints.iter().find(|endpoint| Some(model::NodeId(endpoint.node_id.0)) == $leader).and_then(
            |endpoint| {
                Some($crate::wire::Address {
                    node: $leader?,
                    host: endpoint.host.to_string(),
                    port: u16::try_from(i32::from(endpoint.port)).ok()?,
                })
            },
        )
    };
}

/// This node's own listeners as a request of this API tells them.
macro_rules! leader_endpoints {
    ($request:ident, $place:expr, $version:expr) => {
        $place
            .endpoints
            .iter()
            .filter(|_| $version >= 1)
            .map(|endpoint| {
                protocol::messages::$request::LeaderEndpoint::default()
                    .with_name($crate::wire::text(&endpoint.name))
                    .with_host($crate::wire::text(&endpoint.host))
                    .with_port(endpoint.port)
            })
            .collect()
    };
}

/// Where a request of this API says that its leader is: at the listener of the name that this node's has, or the first.
macro_rules! asking_leader {
    ($endpoints:expr, $place:expr, $leader:expr) => {{
        let ours = $place.endpoints.first().map(|endpoint| endpoint.name.as_str());
        let same = $endpoints.iter().find(|endpoint| Some(endpoint.name.as_str()) == ours);
        same.or($endpoints.first()).map(|endpoint| $crate::wire::Address {
            node: $leader,
            host: endpoint.host.to_string(),
            port: endpoint.port,
        })
    }};
}

use {asking_leader, leader_address, leader_endpoints, node_endpoints, only_partition};
