//! How the quorum stands: for DescribeQuorum.
//!
//! Kafka: `DescribeQuorumResponse`, `LeaderState.describeQuorum`; KIP-595, KIP-853.

use model::{DirectoryId, Instant, LeaderEpoch, NodeId, Offset};
use quorum::{Quorum, ReplicaKey, RoleName};

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
    /// When it last fetched, on the leader's clock.
    pub last_fetch: Option<Instant>,
    /// When it last had everything.
    pub last_caught_up: Option<Instant>,
}

impl QuorumDescription {
    pub(crate) fn of(quorum: &Quorum, me: ReplicaKey) -> Self {
        let voters = quorum.voters().current().iter().map(|voter| {
            let is_me = voter.key.id == me.id;
            QuorumReplica {
                id: voter.key.id,
                directory: voter.key.directory,
                log_end: is_me.then(|| quorum.log().end()),
                last_fetch: None,
                last_caught_up: None,
            }
        });
        Self {
            leader: quorum.leader(),
            epoch: quorum.epoch(),
            high_watermark: quorum.high_watermark(),
            is_leader: quorum.role() == RoleName::Leader,
            voters: voters.collect(),
        }
    }
}
