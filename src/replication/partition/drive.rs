//! Driving the replica's machine: it is told what happened, and what it wants is done, in order, under the lock.
//!
//! Metadata and some answers of a leader make it cut its log, which waits for the disk; whoever brings them runs where that
//! may be. All else only writes.

use std::sync::Arc;

use model::{BrokerEpoch, ErrorCode};
use replica::{Action, AlteredPartition, PartitionState, QuestionId};
use storage::{LogConfig, StorageError};
use tracing::{error, warn};

use super::{Condition, Fetched, Partition, State};
use crate::asked::Listing;
use crate::log_shape::LogShape;

/// What an action did to the log.
pub(super) enum Log {
    Changed,
    /// It is as it was.
    Kept,
}

impl Partition {
    /// Takes over what the metadata says, and changed configuration. May wait for the disk.
    pub(crate) fn apply(self: &Arc<Self>, config: LogConfig, metadata: PartitionState) {
        let mut state = self.lock();
        if state.check_condition().is_err() || state.lost.is_some() {
            return;
        }
        state.log.set_config(config);
        if state.hindered.is_some() {
            state.late = Some(metadata);
        } else {
            self.learn(&mut state, metadata);
        }
    }

    fn learn(self: &Arc<Self>, state: &mut State, metadata: PartitionState) {
        if metadata.leader_epoch > state.replica.metadata().leader_epoch {
            state.leave_fetcher(self.id);
        }
        state.replica.apply_metadata(self.now(), &LogShape(&state.log), metadata);
        self.act(state, None);
    }

    /// Tries again what was hindered, and goes on with what came meanwhile. Waits for the disk.
    pub(crate) fn try_again(self: &Arc<Self>) {
        let mut state = self.lock();
        let Some(action) = state.hindered.take() else { return };
        self.carry_out(&mut state, action, None);
        self.act(&mut state, None);
        if state.hindered.is_none()
            && let Some(metadata) = state.late.take()
        {
            self.learn(&mut state, metadata);
        }
    }

    /// This run of the broker is registered.
    pub(crate) fn registered(&self, broker_epoch: BrokerEpoch) {
        self.lock().replica.handle_registered(broker_epoch);
    }

    /// The controller knows that recovery found less than was committed: the partition takes part from now on, and says so on
    /// disk first. Waits for it.
    pub(crate) fn admit(&self, lower_checkpoints: impl FnOnce(model::Offset) -> Result<(), StorageError>) {
        let mut state = self.lock();
        if state.lost.is_none() {
            return;
        }
        match lower_checkpoints(state.log.log_end()) {
            Ok(()) => state.lost = None,
            Err(error) => {
                error!(partition = %self.name, %error, "the checkpoints cannot be lowered: the partition stays offline");
                state.stop(self, Condition::Offline);
            }
        }
    }

    /// The controller answered an AlterPartition.
    pub(crate) fn isr_altered(
        self: &Arc<Self>,
        question: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    ) {
        let mut state = self.lock();
        let State { log, replica, .. } = &mut *state;
        replica.handle_alter_partition_answer(self.now(), &LogShape(log), question, answer);
        self.act(&mut state, None);
    }

    /// An AlterPartition will have no answer.
    pub(crate) fn isr_unanswered(self: &Arc<Self>, question: QuestionId) {
        let mut state = self.lock();
        state.replica.handle_alter_partition_failure(self.now(), question);
        self.act(&mut state, None);
    }

    /// The time that it planned has come.
    pub(crate) fn tick(self: &Arc<Self>) {
        let mut state = self.lock();
        state.tick_at = None;
        if state.hindered.is_none() {
            let State { log, replica, .. } = &mut *state;
            replica.handle_tick(self.now(), &LogShape(log));
            self.act(&mut state, None);
        }
    }

    /// The log was appended to, cut at its start, or flushed further.
    pub(super) fn log_changed(self: &Arc<Self>, state: &mut State) {
        if state.hindered.is_none() {
            state.replica.handle_log_changed(self.now(), &LogShape(&state.log));
            self.act(state, None);
        }
    }

    /// Does what the replica wants. `fetched` is the answer that was just handed in.
    pub(super) fn act(self: &Arc<Self>, state: &mut State, fetched: Option<&Fetched>) {
        while let Some(action) = state.poll_action() {
            self.carry_out(state, action, fetched);
        }
        self.plan_tick(state);
    }

    /// Where the log cannot be cut for now, all waits until it can: what comes next builds on it.
    fn carry_out(self: &Arc<Self>, state: &mut State, action: Action, fetched: Option<&Fetched>) {
        match self.change(state, &action, fetched) {
            Ok(Log::Kept) => {}
            Ok(Log::Changed) => state.replica.handle_log_changed(self.now(), &LogShape(&state.log)),
            Err(error) if state.log.check().is_ok() => {
                warn!(partition = %self.name, %error, "the log cannot be changed; it is tried again");
                state.hindered = Some(action);
            }
            Err(error) => {
                error!(partition = %self.name, %error, "the log failed: the partition is offline");
                state.stop(self, Condition::Offline);
            }
        }
    }

    fn change(
        self: &Arc<Self>,
        state: &mut State,
        action: &Action,
        fetched: Option<&Fetched>,
    ) -> Result<Log, StorageError> {
        match *action {
            Action::BeginEpoch { epoch, start } => {
                state.log.begin_epoch(epoch, start)?;
                // Followers are told of the new epoch.
                state.followers.all();
            }
            Action::Truncate(to) => state.log.truncate_to(to, self.wall())?,
            Action::RestartAt(start) => state.log.truncate_fully_and_start_at(start, self.wall())?,
            Action::AdvanceLogStart(to) => state.log.advance_log_start(to)?,
            Action::Append { count } => return Ok(self.append_fetched(state, count, fetched)),
            ref other => {
                self.pass_on(state, other.clone());
                return Ok(Log::Kept);
            }
        }
        Ok(Log::Changed)
    }

    /// What others do.
    fn pass_on(self: &Arc<Self>, state: &mut State, action: Action) {
        match action {
            Action::Flush => self.ask(state),
            Action::HighWatermark(to) => state.waiters.reached(to),
            Action::LostLeadership => {
                state.waiters.all();
                state.followers.all();
            }
            Action::AlterPartition(ask) => self.outlets.isr_changes.ask(self.id, ask),
            Action::Fetch(question) => {
                let fetcher = self.fetcher(state, question.leader);
                fetcher.ask(self, question);
            }
            Action::ListOffsets { id, leader, leader_epoch } => {
                let fetcher = self.fetcher(state, leader);
                fetcher.ask_offsets(Listing { partition: self.clone(), id, leader_epoch });
            }
            Action::BeginEpoch { .. }
            | Action::Truncate(_)
            | Action::RestartAt(_)
            | Action::AdvanceLogStart(_)
            | Action::Append { .. } => unreachable!("what changes the log is done by its owner"),
        }
    }

    fn plan_tick(self: &Arc<Self>, state: &mut State) {
        if state.condition != Condition::Working || state.hindered.is_some() {
            return;
        }
        let deadline = state.replica.deadline(&LogShape(&state.log));
        // What is due now waits for something else, as for a flush.
        let Some(at) = deadline.filter(|at| *at > self.now()) else { return };
        if state.tick_at.is_none_or(|planned| at < planned) {
            self.outlets.ticks.plan(at, state.tick_at.replace(at), self);
        }
    }
}

impl State {
    fn poll_action(&mut self) -> Option<Action> {
        let goes_on = self.condition == Condition::Working && self.hindered.is_none();
        if goes_on { self.replica.poll_action() } else { None }
    }
}
