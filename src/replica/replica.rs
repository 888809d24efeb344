//! The machine: a replica of one partition, events in, actions out.
//!
//! An event runs its own handler and then settles: a leader asks for what its ISR lacks and moves the high watermark, a
//! follower asks its leader. Time never goes back within it.

use std::collections::VecDeque;

use model::{BrokerEpoch, Instant, LeaderEpoch, NodeId, Offset};

use crate::follow::FollowerState;
use crate::lead::LeaderState;
#[cfg(feature = "mutants")]
use crate::mutant::Mutant as Fault;
use crate::mutant::{Mutant, Mutation};
use crate::{Action, Config, LogView, PartitionState, QuestionId};

/// A replica of a partition on this node.
#[derive(Clone, Debug)]
pub struct Replica {
    pub(crate) me: NodeId,
    broker_epoch: Option<BrokerEpoch>,
    pub(crate) config: Config,
    pub(crate) now: Instant,
    state: PartitionState,
    pub(crate) role: Role,
    pub(crate) high_watermark: Offset,
    pub(crate) actions: VecDeque<Action>,
    next_question: u64,
    pub(crate) mutation: Mutation,
}

#[derive(Clone, Debug)]
pub(crate) enum Role {
    Leader(LeaderState),
    /// Another node leads, or none.
    Follower(FollowerState),
}

impl Replica {
    /// A replica that knows its log but no metadata yet. `restored` is the high watermark of the checkpoint; where the log
    /// ends below it, the checkpoint is lowered on disk before anything is appended.
    pub fn new(config: Config, me: NodeId, restored: Offset, log: &impl LogView) -> Self {
        Self {
            me,
            broker_epoch: None,
            config,
            now: Instant(0),
            state: PartitionState::unknown(),
            role: Role::Follower(FollowerState::new(NodeId::NONE, LeaderEpoch::NONE)),
            high_watermark: restored.min(log.log_end()).max(log.log_start()),
            actions: VecDeque::new(),
            next_question: 0,
            mutation: Mutation::default(),
        }
    }

    /// The same replica with a known fault.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mut self, mutant: Fault) -> Self {
        self.mutation = Mutation::of(mutant);
        self
    }

    /// This process is registered: it may lead by metadata that knows that.
    pub fn handle_registered(&mut self, broker_epoch: BrokerEpoch) {
        self.broker_epoch = Some(broker_epoch);
    }

    /// The next thing to do, if any.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The metadata says this of the partition now. Older metadata counts for nothing.
    pub fn apply_metadata(&mut self, now: Instant, log: &impl LogView, state: PartitionState) {
        self.now = self.now.max(now);
        if state.leader_epoch < self.state.leader_epoch {
            return;
        }
        let is_new = state.leader_epoch > self.state.leader_epoch;
        self.state = state;
        let changes = match &mut self.role {
            _ if is_new => self.begin_epoch(log),
            Role::Leader(leader) => leader.apply(self.now, &self.state),
            Role::Follower(_) => false,
        };
        if !changes {
            self.settle_isr(log);
        }
    }

    /// Whether the log is to be changed first.
    fn begin_epoch(&mut self, log: &impl LogView) -> bool {
        if self.state.leader == self.me && self.may_lead() {
            self.become_leader(log)
        } else {
            self.become_follower(log)
        }
    }

    // Metadata of before this process registered may name it as leader of an epoch that an earlier process led. What that
    // one gave out and did not flush, followers may have: the same offsets must not be given again in the same epoch.
    // With each registration the controller ends the epochs that the broker led.
    fn may_lead(&self) -> bool {
        let me = self.state.replicas.iter().find(|broker| broker.id == self.me);
        let is_known = self.broker_epoch.is_some() && me.is_some_and(|me| me.epoch == self.broker_epoch);
        is_known || self.mutation.is(Mutant::LeadAgainAfterRestart)
    }

    fn become_leader(&mut self, log: &impl LogView) -> bool {
        let (epoch, start) = (self.state.leader_epoch, log.log_end());
        let led = match &self.role {
            Role::Leader(leader) => Some(leader),
            Role::Follower(_) => None,
        };
        let led_since = led.map_or(epoch, |leader| leader.led_since);
        // One that was elected uncleanly may know more to be committed than it holds safely itself.
        self.high_watermark = self.high_watermark.min(log.counted_end()).max(log.log_start());
        let mut leader = LeaderState::new(self.me, &self.state, (self.now, start), led_since, self.mutation);
        if let Some(led) = led.filter(|_| self.mutation.is(Mutant::KeepFollowersOverEpochs)) {
            leader.followers.clone_from(&led.followers);
        }
        self.role = Role::Leader(leader);
        let notes = !self.mutation.is(Mutant::NoEpochEntry);
        if notes {
            self.actions.push_back(Action::BeginEpoch { epoch, start });
        }
        self.actions.push_back(Action::Flush);
        notes
    }

    fn become_follower(&mut self, log: &impl LogView) -> bool {
        if matches!(self.role, Role::Leader(_)) {
            self.actions.push_back(Action::LostLeadership);
        }
        let leads = self.state.leader == self.me;
        let leader = if leads { NodeId::NONE } else { self.state.leader };
        self.role = Role::Follower(FollowerState::new(leader, self.state.leader_epoch));
        let has_no_epochs = log.latest_epoch().is_none() && log.log_end() > log.log_start();
        let cuts = has_no_epochs || self.mutation.is(Mutant::TruncateToHighWatermark);
        if cuts {
            // Nothing tells where such a log diverges; what is committed does not.
            self.actions.push_back(Action::Truncate(self.high_watermark));
        }
        cuts
    }

    /// The log was appended to, cut, or flushed further.
    pub fn handle_log_changed(&mut self, now: Instant, log: &impl LogView) {
        self.now = self.now.max(now);
        self.high_watermark = self.high_watermark.min(log.log_end());
        if !self.finish_append(log) {
            self.settle(log);
        }
    }

    /// Time has passed.
    pub fn handle_tick(&mut self, now: Instant, log: &impl LogView) {
        self.now = self.now.max(now);
        self.shrink_isr(log);
        self.settle(log);
    }

    /// When [`handle_tick`](Self::handle_tick) is to be called next; ask again after each event.
    pub fn deadline(&self, log: &impl LogView) -> Option<Instant> {
        match &self.role {
            Role::Follower(follower) => follower.deadline(),
            Role::Leader(leader) => {
                let lag = leader.lag_deadline(self.now, log.log_end(), self.config.replica_lag_time_max);
                lag.into_iter().chain(leader.isr.deadline(self.now)).min()
            }
        }
    }

    pub(crate) fn settle(&mut self, log: &impl LogView) {
        match &self.role {
            Role::Leader(_) => {
                self.ask_controller();
                self.advance_high_watermark(log);
            }
            Role::Follower(_) => self.ask_leader(log),
        }
    }

    /// Settles after a change of the ISR.
    pub(crate) fn settle_isr(&mut self, log: &impl LogView) {
        if matches!(self.role, Role::Leader(_)) && self.mutation.is(Mutant::NoRecomputeOnShrink) {
            return self.ask_controller();
        }
        self.settle(log);
    }

    fn advance_high_watermark(&mut self, log: &impl LogView) {
        if let Role::Leader(leader) = &self.role
            && let Some(offset) = leader.high_watermark(self.now, log, self.config.replica_lag_time_max)
        {
            self.raise_high_watermark(offset);
        }
    }

    pub(crate) fn raise_high_watermark(&mut self, to: Offset) {
        if to > self.high_watermark {
            self.high_watermark = to;
            self.actions.push_back(Action::HighWatermark(to));
        }
    }

    pub(crate) fn next_question(&mut self) -> QuestionId {
        self.next_question += 1;
        QuestionId(self.next_question)
    }

    /// Everything below it is committed, as far as this node knows.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The leader epoch that this node leads in, if it does.
    pub fn leads(&self) -> Option<LeaderEpoch> {
        match &self.role {
            Role::Leader(leader) => Some(leader.epoch),
            Role::Follower(_) => None,
        }
    }

    /// Whether the high watermark may be shown: not before all that older epochs left is committed (KIP-207).
    pub fn is_exposed(&self) -> bool {
        match &self.role {
            Role::Leader(leader) => self.high_watermark >= leader.epoch_start,
            Role::Follower(_) => false,
        }
    }

    /// The partition as the metadata has it.
    pub fn metadata(&self) -> &PartitionState {
        &self.state
    }
}
