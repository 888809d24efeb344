//! What a node must not forget: the contents of `quorum-state`.
//!
//! Invariants: the epoch never goes back; in one epoch the vote is given once, and the leader, once known,
//! stays.
//!
//! Kafka: `QuorumStateData` v1, `ElectionState`.

use model::{LeaderEpoch, NodeId};

use crate::ReplicaKey;

/// The durable part of a node's election state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct HardState {
    /// The latest epoch that this node has seen. 0 at the very start.
    pub epoch: LeaderEpoch,
    /// Whom it voted for in that epoch.
    pub voted: Option<ReplicaKey>,
    /// Who leads that epoch, where it is known.
    pub leader: Option<NodeId>,
}

impl HardState {
    /// A later epoch, of which nothing is known yet.
    pub(crate) fn of_epoch(epoch: LeaderEpoch) -> Self {
        Self { epoch, voted: None, leader: None }
    }

    /// Asserts that `next` may follow this state.
    pub(crate) fn check_successor(&self, next: &Self) {
        assert!(next.epoch >= self.epoch, "the epoch went back from {} to {}", self.epoch, next.epoch);
        if next.epoch == self.epoch {
            assert!(
                self.voted.is_none() || self.voted == next.voted,
                "the vote of epoch {} changed from {:?} to {:?}",
                self.epoch,
                self.voted,
                next.voted
            );
            assert!(
                self.leader.is_none() || self.leader == next.leader,
                "the leader of epoch {} changed from {:?} to {:?}",
                self.epoch,
                self.leader,
                next.leader
            );
        }
    }
}
