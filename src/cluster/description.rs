//! How the quorum stands: for DescribeQuorum.
//!
//! Kafka: `DescribeQuorumResponse`, `LeaderState.describeQuorum`; KIP-595, KIP-853.

use std::time::Duration;

use model::{DirectoryId, Instant, LeaderEpoch, NodeId, Offset};
use quorum::{Endpoint, Quorum};

/// The quorum as its leader sees it.
#[derive(Clone, Debug)]
pub struct QuorumDescription {
    /// Who leads; none where it is not known.
    pub leader: Option<NodeId>,
    /// The leader's epoch.
    pub epoch: LeaderEpoch,
    /// Everything below it is committed.
    pub high_watermark: Offset,
    /// Whether this node leads: only then are the replicas known.
    pub is_leader: bool,
    /// The voters.
    pub voters: Vec<QuorumReplica>,
    /// Other replicas that fetch.
    pub observers: Vec<QuorumReplica>,
    /// Where each voter's controller listeners are.
    pub endpoints: Vec<(NodeId, Vec<Endpoint>)>,
}

/// A replica of the metadata log.
#[derive(Clone, Debug)]
pub struct QuorumReplica {
    /// Its node.
    pub id: NodeId,
    /// Its log folder.
    pub directory: DirectoryId,
    /// Up to where it has the log, exclusive; none where that is not known.
    pub log_end: Option<Offset>,
    /// How long ago it last fetched.
    pub since_fetch: Option<Duration>,
    /// How long ago it last had everything.
    pub since_caught_up: Option<Duration>,
}

impl QuorumDescription {
    pub(crate) fn of(quorum: &Quorum, now: Instant) -> Self {
        let known = quorum.describe(now);
        let replica = |state: &quorum::ReplicaState| QuorumReplica {
            id: state.key.id,
            directory: state.key.directory,
            log_end: state.log_end,
            since_fetch: state.last_fetch.map(|at| now.since(at)),
            since_caught_up: state.last_caught_up.map(|at| now.since(at)),
        };
        let replicas = |states: &[quorum::ReplicaState]| states.iter().map(replica).collect();
        let endpoint = |voter: &quorum::Voter| (voter.key.id, voter.endpoints.clone());
        Self {
            leader: quorum.leader(),
            epoch: quorum.epoch(),
            high_watermark: quorum.high_watermark(),
            is_leader: known.is_some(),
            voters: known.as_ref().map_or_else(Vec::new, |known| replicas(&known.voters)),
            observers: known.as_ref().map_or_else(Vec::new, |known| replicas(&known.observers)),
            endpoints: quorum.voters().current().iter().map(endpoint).collect(),
        }
    }
}
