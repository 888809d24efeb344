//! A leader's answers to Fetch and to questions about its epochs.
//!
//! The driver checks, reads, and only when the read went well reports what a follower's Fetch says: a failed read says
//! nothing about the follower (KAFKA-8400).

use model::{Instant, LeaderEpoch, NodeId, Offset};

use crate::fetch::{self, FetchRequest, FollowerFetch, Position};
use crate::lead::LeaderState;
use crate::mutant::Mutant;
use crate::progress::Fetched;
use crate::replica::Role;
use crate::{FetchError, LogView, Replica};

impl Replica {
    /// Where a consumer's Fetch stands against this leader's log.
    ///
    /// # Errors
    /// It is not to be answered with records.
    pub fn check_fetch(&self, log: &impl LogView, request: &FetchRequest) -> Result<Position, FetchError> {
        self.leader_of(request.leader_epoch)?;
        fetch::position(log, request)
    }

    /// Where a follower's Fetch stands against this leader's log.
    ///
    /// # Errors
    /// It is not to be answered with records, and says nothing about the follower.
    pub fn check_follower_fetch(
        &self,
        log: &impl LogView,
        from: &FollowerFetch,
    ) -> Result<Position, FetchError> {
        let leader = self.leader_of(from.request.leader_epoch)?;
        match leader.followers.get(&from.replica) {
            // The epoch is right, so its sender knows newer metadata of the same epoch.
            None if from.request.leader_epoch.is_some() => Err(FetchError::UnknownLeaderEpoch),
            None => Err(FetchError::NotLeader),
            Some(follower)
                if follower.is_outlived(from.broker_epoch) && !self.mutation.is(Mutant::StaleBrokerEpoch) =>
            {
                Err(FetchError::NotLeader)
            }
            Some(_) => fetch::position(log, &from.request),
        }
    }

    /// A follower's Fetch was checked, found [`Position::Valid`], and read for.
    pub fn handle_follower_fetch(&mut self, now: Instant, log: &impl LogView, from: &FollowerFetch) {
        self.now = self.now.max(now);
        let position = self.check_follower_fetch(log, from);
        let counts = position == Ok(Position::Valid)
            || (position.is_ok() && self.mutation.is(Mutant::DivergingFetchCounts));
        if !counts {
            return;
        }
        let now = self.now;
        if let Role::Leader(leader) = &mut self.role {
            let (offset, log_start) = (from.request.offset, from.log_start);
            let fetched = Fetched { offset, log_start, broker_epoch: from.broker_epoch };
            leader.handle_fetch(now, from.replica, fetched, log.log_end());
        }
        self.expand_isr(log, from.replica);
        self.settle(log);
    }

    /// Whether the leader epoch that a request knows is this leader's (ListOffsets, OffsetForLeaderEpoch).
    ///
    /// # Errors
    /// It is not, or this node does not lead.
    pub fn check_epoch(&self, known: Option<LeaderEpoch>) -> Result<(), FetchError> {
        self.leader_of(known).map(|_| ())
    }

    fn leader_of(&self, known: Option<LeaderEpoch>) -> Result<&LeaderState, FetchError> {
        match &self.role {
            Role::Leader(leader) => fetch::check_epoch(known, leader.epoch).map(|()| leader),
            Role::Follower(follower) => {
                fetch::check_epoch(known, follower.epoch)?;
                Err(FetchError::NotLeader)
            }
        }
    }

    /// The lowest log start of all replicas on living brokers; none where this node does not lead. DeleteRecords waits
    /// for it.
    pub fn low_watermark(&self, log: &impl LogView) -> Option<Offset> {
        match &self.role {
            Role::Leader(leader) => Some(leader.low_watermark(log)),
            Role::Follower(_) => None,
        }
    }

    /// The replicas that the controller may count as in sync, where this node leads.
    pub fn maximal_isr(&self) -> Option<impl Iterator<Item = NodeId>> {
        match &self.role {
            Role::Leader(leader) => Some(leader.isr.maximal().iter().copied()),
            Role::Follower(_) => None,
        }
    }

    /// The replicas that the controller has committed as in sync, where this node leads.
    pub fn isr(&self) -> Option<impl Iterator<Item = NodeId>> {
        match &self.role {
            Role::Leader(leader) => Some(leader.isr.committed().iter().copied()),
            Role::Follower(_) => None,
        }
    }
}
