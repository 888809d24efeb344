//! What a leader knows of its quorum, for DescribeQuorum.

use model::{Instant, LeaderEpoch, NodeId, Offset};

use crate::{Quorum, ReplicaKey};

/// The quorum, as its leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// This node.
    pub leader: NodeId,
    /// Its epoch.
    pub epoch: LeaderEpoch,
    /// Everything before it is committed.
    pub high_watermark: Offset,
    /// The voters in the order of their ids.
    pub voters: Vec<ReplicaState>,
    /// Other replicas that fetch, in the order of their ids.
    pub observers: Vec<ReplicaState>,
}

/// A replica of the metadata log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaState {
    /// Who it is.
    pub key: ReplicaKey,
    /// Up to where, exclusive, it has the log; none before its first good Fetch in this epoch.
    pub log_end: Option<Offset>,
    /// When it last fetched, by this node's clock.
    pub last_fetch: Option<Instant>,
    /// When it last had all that the leader had.
    pub last_caught_up: Option<Instant>,
}

impl Quorum {
    /// The quorum at `now`; none where this node does not lead.
    pub fn describe(&self, now: Instant) -> Option<Description> {
        let lead = self.lead()?;
        let voters = self.voters.current();
        let state = |key: ReplicaKey| {
            let progress = lead.progress(&key);
            let (log_end, last_fetch, last_caught_up) = if key.is_same(&self.me) {
                (Some(self.log.end()), Some(now), Some(now))
            } else {
                (progress.log_end, progress.last_fetch, progress.last_caught_up)
            };
            ReplicaState { key, log_end, last_fetch, last_caught_up }
        };
        let observers = lead.replicas.keys().filter(|key| !voters.contains(key));
        Some(Description {
            leader: self.me.id,
            epoch: self.hard.epoch,
            high_watermark: self.high_watermark,
            voters: voters.iter().map(|voter| state(voter.key)).collect(),
            observers: observers.map(|key| state(*key)).collect(),
        })
    }
}
