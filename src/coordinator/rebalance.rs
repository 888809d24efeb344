//! From one generation to the next: the join phase, the sync phase, and what ends them.
//!
//! A group that was empty first waits for more members (`group.initial.rebalance.delay.ms`, again and again while new
//! ones come, up to the rebalance timeout). Any other waits until all members have joined again, or the longest
//! rebalance timeout is over: then who has not joined is out, static members excepted. The sync phase ends with the
//! leader's assignment; who has not asked for it within the rebalance timeout is out, and there is another rebalance.
//!
//! Kafka: `GroupMetadataManager`, classic part; KIP-134, KIP-345.

use std::cmp::min;

use bytes::Bytes;
use model::{ErrorCode, MemberId};

use crate::command::{GroupState, SyncReply};
use crate::group::InitialRebalance;
use crate::timers::Timer;
use crate::turn::Turn;

impl Turn<'_> {
    /// Something changed: begins a rebalance, or ends the join phase if that was what it waited for.
    pub(crate) fn rebalance_or_complete_join(&mut self) {
        if self.group.is(GroupState::PreparingRebalance) {
            self.complete_join_if_all_joined();
        } else {
            self.prepare_rebalance();
        }
    }

    /// Begins a rebalance. Assignments that are waited for are no longer worth anything.
    pub(crate) fn prepare_rebalance(&mut self) {
        if self.group.is(GroupState::CompletingRebalance) {
            self.reset_assignments(ErrorCode::RebalanceInProgress);
        }
        self.group.pending_sync.clear();
        self.timers.cancel(&self.sync_timer());
        let initial = self.group.is(GroupState::Empty);
        self.group.transition(GroupState::PreparingRebalance, self.at.wall);
        if initial {
            self.begin_initial_rebalance();
        } else if self.group.has_all_joined() {
            self.complete_join();
        } else {
            self.wait_for_joins();
        }
    }

    fn begin_initial_rebalance(&mut self) {
        let delay = self.config.initial_rebalance_delay;
        let remaining = self.group.members.rebalance_timeout().saturating_sub(delay);
        self.group.initial = Some(InitialRebalance { delay, remaining, member_added: false });
        self.timers.set(self.join_timer(), self.at.now.plus(delay));
    }

    fn wait_for_joins(&mut self) {
        self.group.initial = None;
        let end = self.at.now.plus(self.group.members.rebalance_timeout());
        self.timers.set(self.join_timer(), end);
    }

    /// The initial rebalance goes on until its time is over, whoever has joined.
    pub(crate) fn complete_join_if_all_joined(&mut self) {
        let is_initial = self.group.previous == GroupState::Empty;
        if self.group.is(GroupState::PreparingRebalance) && !is_initial && self.group.has_all_joined() {
            self.complete_join();
        }
    }

    /// The time for joining is over.
    pub(crate) fn handle_join_timeout(&mut self) {
        if !self.group.is(GroupState::PreparingRebalance) {
            return;
        }
        match self.group.initial {
            Some(initial) if initial.member_added && !initial.remaining.is_zero() => {
                self.extend_initial_rebalance(initial);
            }
            Some(_) | None => self.complete_join(),
        }
    }

    fn extend_initial_rebalance(&mut self, was: InitialRebalance) {
        let delay = min(self.config.initial_rebalance_delay, was.remaining);
        let remaining = was.remaining.saturating_sub(was.delay);
        self.group.initial = Some(InitialRebalance { delay, remaining, member_added: false });
        self.timers.set(self.join_timer(), self.at.now.plus(delay));
    }

    /// Ends the join phase: who has not joined is out, the others are the next generation.
    pub(crate) fn complete_join(&mut self) {
        self.timers.cancel(&self.join_timer());
        self.remove_missing_dynamic_members();
        if !self.group.elect_joined_leader() && !self.group.members.is_empty() {
            // Only static members are left, none of them here. Their sessions will tell.
            self.wait_for_joins();
            return;
        }
        self.group.initial = None;
        self.group.next_generation(self.at.wall);
        if self.group.is(GroupState::Empty) {
            self.write(|_| Bytes::new());
        } else {
            self.begin_sync();
        }
    }

    fn remove_missing_dynamic_members(&mut self) {
        let missing = self.group.members.iter().filter(|m| m.awaiting_join.is_none());
        let dynamic = missing.filter(|m| m.group_instance_id.is_none());
        let out: Vec<MemberId> = dynamic.map(|m| m.id.clone()).collect();
        for member_id in &out {
            self.remove(member_id);
        }
    }

    fn begin_sync(&mut self) {
        for member_id in self.group.members.ids() {
            let reply = self.joined(&member_id);
            let token = self.group.members.take_join(&member_id);
            self.release_join(token, reply);
            self.restart_session(&member_id);
            self.group.members.set_known(&member_id);
            self.group.pending_sync.insert(member_id);
        }
        let end = self.at.now.plus(self.group.members.rebalance_timeout());
        self.timers.set(self.sync_timer(), end);
    }

    /// The time for SyncGroup is over: who did not send one is out.
    pub(crate) fn handle_sync_timeout(&mut self) {
        let in_sync = matches!(self.group.state, GroupState::CompletingRebalance | GroupState::Stable);
        if !in_sync || self.group.pending_sync.is_empty() {
            return;
        }
        for member_id in std::mem::take(&mut self.group.pending_sync) {
            self.remove(&member_id);
        }
        self.prepare_rebalance();
    }

    /// Forgets the assignments of a generation that will not become stable, and says so to who waits.
    pub(crate) fn reset_assignments(&mut self, error: ErrorCode) {
        for member_id in self.group.members.ids() {
            self.group.members.set_assignment(&member_id, Bytes::new());
            self.answer_sync(&member_id, SyncReply::refused(error));
        }
    }

    /// Answers a waiting SyncGroup; the member's silence counts from now.
    pub(crate) fn answer_sync(&mut self, member_id: &MemberId, reply: SyncReply) {
        let token = self.group.members.take_sync(member_id);
        if token.is_some() {
            self.release_sync(token, reply);
            self.restart_session(member_id);
        }
    }

    /// A member's session is over.
    pub(crate) fn handle_member_timeout(&mut self, member_id: &MemberId) {
        if self.group.pending_join.contains(member_id) {
            self.remove(member_id);
            self.complete_join_if_ready();
            return;
        }
        let expired = self.group.members.get(member_id).is_some_and(|m| !m.is_waiting());
        if expired {
            self.remove(member_id);
            match self.group.state {
                GroupState::Stable | GroupState::CompletingRebalance => self.rebalance_or_complete_join(),
                GroupState::PreparingRebalance => self.complete_join_if_ready(),
                GroupState::Empty | GroupState::Dead => {}
            }
        }
    }

    /// Ends the join phase, the initial one too, where nobody is expected any more.
    fn complete_join_if_ready(&mut self) {
        if self.group.is(GroupState::PreparingRebalance) && self.group.has_all_joined() {
            self.complete_join();
        }
    }

    fn join_timer(&self) -> Timer {
        Timer::Join(self.group.id.clone())
    }

    pub(crate) fn sync_timer(&self) -> Timer {
        Timer::Sync(self.group.id.clone())
    }
}
