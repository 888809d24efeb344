//! A partition that this node leads in one leader epoch: who follows how far, and who is in sync.
//!
//! Invariants: a follower counts only by a Fetch of this leader epoch, which found its log a prefix of this one; the ISR
//! that the controller may have is within the maximal ISR.
//!
//! Kafka: `kafka.cluster.Partition` (`makeLeader`, `updateFollowerFetchState`, `maybeExpandIsr`, `maybeShrinkIsr`).

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use model::{BrokerEpoch, Instant, LeaderEpoch, NodeId, Offset};

use crate::action::IsrMember;
use crate::isr::Isr;
use crate::mutant::{Mutant, Mutation};
use crate::progress::{Fetched, Progress};
use crate::{LogView, PartitionState};

#[derive(Clone, Debug)]
pub(crate) struct LeaderState {
    me: NodeId,
    my_epoch: Option<BrokerEpoch>,
    pub(crate) epoch: LeaderEpoch,
    /// The offset of the epoch's first record.
    pub(crate) epoch_start: Offset,
    /// The first of the leader epochs that this node has led since without a break.
    pub(crate) led_since: LeaderEpoch,
    pub(crate) isr: Isr,
    pub(crate) min_isr: usize,
    pub(crate) followers: BTreeMap<NodeId, Progress>,
    pub(crate) mutation: Mutation,
}

impl LeaderState {
    /// A leader of a new epoch. Followers that are in sync count as having been so until now.
    pub(crate) fn new(
        me: NodeId,
        state: &PartitionState,
        (now, epoch_start): (Instant, Offset),
        led_since: LeaderEpoch,
        mutation: Mutation,
    ) -> Self {
        let mut leader = Self {
            me,
            my_epoch: None,
            epoch: state.leader_epoch,
            epoch_start,
            led_since,
            isr: Isr::new(&state.isr, state.partition_epoch),
            min_isr: 1,
            followers: BTreeMap::new(),
            mutation,
        };
        leader.apply_brokers(now, state);
        leader
    }

    /// New metadata of the same leader epoch. It never changes the log.
    pub(crate) fn apply(&mut self, now: Instant, state: &PartitionState) -> bool {
        self.isr.apply(&state.isr, state.partition_epoch);
        self.apply_brokers(now, state);
        false
    }

    fn apply_brokers(&mut self, now: Instant, state: &PartitionState) {
        self.min_isr = state.effective_min_isr();
        self.followers.retain(|id, _| state.replicas.iter().any(|broker| broker.id == *id));
        for broker in &state.replicas {
            if broker.id == self.me {
                self.my_epoch = broker.epoch;
                continue;
            }
            let in_sync_at = self.isr.committed().contains(&broker.id).then_some(now);
            let fresh = || Progress::new(*broker, in_sync_at);
            self.followers.entry(broker.id).or_insert_with(fresh).broker = *broker;
        }
    }

    pub(crate) fn handle_fetch(&mut self, now: Instant, from: NodeId, fetched: Fetched, leader_end: Offset) {
        if let Some(follower) = self.followers.get_mut(&from) {
            follower.handle_fetch(now, fetched, leader_end);
        }
    }

    /// Whether this replica may join the ISR: it has everything that is or was ever committed, and nothing of what is
    /// deleted here, for no epoch tells any more whether that is the same there.
    pub(crate) fn may_join(&self, id: NodeId, high_watermark: Offset, log_start: Offset) -> bool {
        let below_start = self.mutation.is(Mutant::ExpandBelowEpochStart);
        let least = if below_start { high_watermark } else { high_watermark.max(self.epoch_start) };
        let has_all = |follower: &Progress| follower.end().is_some_and(|end| end >= least);
        let has_deleted = |follower: &Progress| follower.log_start().is_none_or(|start| start < log_start);
        let may_join =
            |follower: &Progress| self.is_eligible(follower) && has_all(follower) && !has_deleted(follower);
        !self.isr.committed().contains(&id) && self.followers.get(&id).is_some_and(may_join)
    }

    pub(crate) fn is_eligible(&self, follower: &Progress) -> bool {
        let ignores_epochs = self.mutation.is(Mutant::StaleBrokerEpoch) && follower.broker.is_active;
        ignores_epochs || follower.is_eligible()
    }

    /// Members of the ISR that have not been caught up for too long.
    pub(crate) fn lagging(&self, now: Instant, leader_end: Offset, lag_max: Duration) -> Vec<NodeId> {
        let lags = |id: &NodeId| {
            self.followers.get(id).is_none_or(|follower| !follower.is_caught_up(now, leader_end, lag_max))
        };
        self.isr.committed().iter().copied().filter(|id| *id != self.me && lags(id)).collect()
    }

    /// The next moment at which a follower will have lagged for too long, if it does not fetch.
    pub(crate) fn lag_deadline(
        &self,
        now: Instant,
        leader_end: Offset,
        lag_max: Duration,
    ) -> Option<Instant> {
        let behind = self.followers.values().filter(|follower| follower.end() != Some(leader_end));
        behind.filter_map(|follower| follower.lags_at(lag_max)).filter(|at| *at > now).min()
    }

    /// The high watermark that the log ends allow; none under min ISR.
    ///
    /// The lowest end over the maximal ISR, and over those who are about to join it: else it would run away from them.
    pub(crate) fn high_watermark(
        &self,
        now: Instant,
        log: &impl LogView,
        lag_max: Duration,
    ) -> Option<Offset> {
        if self.isr.committed().len() < self.min_isr && !self.mutation.is(Mutant::HighWatermarkUnderMinIsr) {
            return None;
        }
        let own = match self.mutation {
            mutation if mutation.is(Mutant::LeaderCountsUnflushed) => log.log_end(),
            _ => log.counted_end(),
        };
        let counted = self.followers.iter().filter(|(id, follower)| {
            let in_sync =
                self.isr.maximal().contains(id) && !self.mutation.is(Mutant::HighWatermarkBeyondIsr);
            in_sync || self.is_awaited(now, follower, log.log_end(), lag_max)
        });
        let ends = counted.map(|(_, follower)| follower.end().unwrap_or(Offset(0)));
        Some(ends.fold(own, Offset::min))
    }

    fn is_awaited(&self, now: Instant, follower: &Progress, leader_end: Offset, lag_max: Duration) -> bool {
        let may_join = self.is_eligible(follower) || self.mutation.is(Mutant::WaitForIneligible);
        may_join
            && !self.mutation.is(Mutant::HighWatermarkBeyondIsr)
            && !self.mutation.is(Mutant::ExpandWithoutMaximal)
            && follower.is_caught_up(now, leader_end, lag_max)
    }

    /// The lowest log start of all replicas on living brokers (DeleteRecords waits for it).
    pub(crate) fn low_watermark(&self, log: &impl LogView) -> Offset {
        let alive = self.followers.values().filter(|follower| follower.broker.is_active);
        let starts = alive.map(|follower| follower.log_start().unwrap_or(Offset(0)));
        starts.fold(log.log_start(), Offset::min)
    }

    /// These replicas, each with the registration that it was last heard with.
    pub(crate) fn members(&self, ids: &BTreeSet<NodeId>) -> Vec<IsrMember> {
        let broker_epoch = |id: &NodeId| match self.followers.get(id) {
            _ if *id == self.me => self.my_epoch,
            Some(_) if self.mutation.is(Mutant::StaleBrokerEpoch) => None,
            Some(follower) => follower.broker_epoch(),
            None => None,
        };
        ids.iter().map(|id| IsrMember { id: *id, broker_epoch: broker_epoch(id) }).collect()
    }

    /// The ISR that is asked for.
    pub(crate) fn target(&self) -> Vec<IsrMember> {
        let target = self.isr.target().unwrap_or_default();
        if self.mutation.is(Mutant::FreshEpochsOnRetry) {
            return self.members(&target.iter().map(|member| member.id).collect());
        }
        target.to_vec()
    }
}
