//! What the answers of its leader do to a follower.
//!
//! Invariants: an answer that does not say that the logs agree moves nothing but the log's end, down; the high watermark
//! never passes the log end.
//!
//! Kafka: `AbstractFetcherThread.processFetchRequest`, `ReplicaFetcherThread.processPartitionData`.

use std::time::Duration;

use model::{ErrorCode, Instant, Offset};

use crate::follow::{self, FetchAnswer, Phase};
use crate::mutant::Mutant;
use crate::replica::Role;
use crate::{Action, Config, EpochEnd, FetchState, LogView, QuestionId, Replica};

/// Where a leader's log starts and ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaderOffsets {
    /// The first offset.
    pub log_start: Offset,
    /// The log end, exclusive: not the high watermark.
    pub log_end: Offset,
}

impl Replica {
    /// The leader answered the Fetch of this id. What belongs to another question counts for nothing.
    pub fn handle_fetch_answer(
        &mut self,
        now: Instant,
        log: &impl LogView,
        id: QuestionId,
        answer: &FetchAnswer<'_>,
    ) {
        self.now = self.now.max(now);
        if !self.takes_answer(Phase::Fetching(id)) {
            return;
        }
        let changes = match (answer.error, answer.diverging) {
            (ErrorCode::None, Some(diverging)) => self.handle_diverging(log, diverging, answer),
            (ErrorCode::None, None) => self.handle_records(log, answer),
            (ErrorCode::OffsetOutOfRange, _) => self.list_offsets(),
            (error, _) => self.back_off_after(error),
        };
        if !changes {
            self.settle(log);
        }
    }

    /// The Fetch or ListOffsets of this id will have no answer.
    pub fn handle_fetch_failure(&mut self, now: Instant, id: QuestionId) {
        self.now = self.now.max(now);
        if self.takes_answer(Phase::Fetching(id)) || self.takes_answer(Phase::Listing(id)) {
            self.back_off();
        }
    }

    /// The batches that were to be appended were not, or not all of them, and the log goes on: they are damaged, or the disk
    /// is full.
    pub fn handle_append_failure(&mut self, now: Instant) {
        self.now = self.now.max(now);
        self.back_off();
    }

    /// The leader told where its log starts and ends; none where it refused.
    pub fn handle_leader_offsets(
        &mut self,
        now: Instant,
        log: &impl LogView,
        id: QuestionId,
        offsets: Option<LeaderOffsets>,
    ) {
        self.now = self.now.max(now);
        if !self.takes_answer(Phase::Listing(id)) {
            return;
        }
        let changes = match offsets {
            // Everything here was deleted there.
            Some(leader) if leader.log_start > log.log_end() => self.restart_at(leader.log_start),
            // It was elected although it had less (KIP-106).
            Some(leader) if leader.log_end < log.log_end() => self.cut(log, leader.log_end),
            _ => self.back_off(),
        };
        if !changes {
            self.settle(log);
        }
    }

    /// Whether this phase is open; it then ends.
    fn takes_answer(&mut self, asked: Phase) -> bool {
        let takes_stale = self.mutation.is(Mutant::StaleFetchAnswer);
        let Role::Follower(follower) = &mut self.role else { return false };
        let takes = follower.phase == asked || (takes_stale && follower.has_leader());
        if takes {
            follower.phase = Phase::Ready;
        }
        takes
    }

    /// Ends with false where the log does not change.
    fn back_off(&mut self) -> bool {
        self.pause(self.config.fetch_backoff)
    }

    /// A leader that is behind with the metadata catches up within a moment.
    fn back_off_after(&mut self, error: ErrorCode) -> bool {
        let is_behind = matches!(
            error,
            ErrorCode::NotLeaderOrFollower
                | ErrorCode::UnknownLeaderEpoch
                | ErrorCode::UnknownTopicId
                | ErrorCode::UnknownTopicOrPartition
        );
        let Config { fetch_backoff, news_backoff, .. } = self.config;
        self.pause(if is_behind { fetch_backoff.min(news_backoff) } else { fetch_backoff })
    }

    fn pause(&mut self, pause: Duration) -> bool {
        self.enter(Phase::BackingOff(self.now.plus(pause)));
        false
    }

    fn enter(&mut self, phase: Phase) {
        if let Role::Follower(follower) = &mut self.role {
            follower.phase = phase;
        }
    }

    fn handle_diverging(
        &mut self,
        log: &impl LogView,
        diverging: EpochEnd,
        answer: &FetchAnswer<'_>,
    ) -> bool {
        if self.mutation.is(Mutant::RaiseBeforeTruncating) {
            self.raise_high_watermark(answer.high_watermark.min(log.log_end()));
        }
        match follow::truncation(log, diverging) {
            Some(to) => self.cut(log, to),
            None => self.back_off(),
        }
    }

    /// Cuts the log, also below the high watermark: so it is after an unclean election.
    fn cut(&mut self, log: &impl LogView, to: Offset) -> bool {
        if to < log.log_start() {
            return self.restart_at(to);
        }
        self.high_watermark = self.high_watermark.min(to);
        self.actions.push_back(Action::Truncate(to));
        true
    }

    fn restart_at(&mut self, start: Offset) -> bool {
        self.high_watermark = start;
        self.actions.push_back(Action::RestartAt(start));
        true
    }

    fn list_offsets(&mut self) -> bool {
        let id = self.next_question();
        if let Role::Follower(follower) = &mut self.role {
            follower.phase = Phase::Listing(id);
            let (leader, leader_epoch) = (follower.leader, follower.epoch);
            self.actions.push_back(Action::ListOffsets { id, leader, leader_epoch });
        }
        false
    }

    fn handle_records(&mut self, log: &impl LogView, answer: &FetchAnswer<'_>) -> bool {
        let Some(first) = answer.batches.first() else {
            return self.take_offsets(log, answer.high_watermark, answer.log_start);
        };
        let count = self.fitting(log, answer);
        if count == 0 {
            return self.back_off();
        }
        if follow::begins_anew(log, answer.log_start, first) {
            self.actions.push_back(Action::RestartAt(first.base));
        }
        self.actions.push_back(Action::Append { count });
        let (high_watermark, log_start) = (answer.high_watermark, answer.log_start);
        let end = answer.batches[count - 1].end;
        self.enter(Phase::Appending { end, high_watermark, log_start });
        true
    }

    fn fitting(&self, log: &impl LogView, answer: &FetchAnswer<'_>) -> usize {
        match &self.role {
            Role::Follower(_) if self.mutation.is(Mutant::AppendNewerEpochs) => answer.batches.len(),
            Role::Follower(follower) => follow::fitting(log, follower.epoch, answer),
            Role::Leader(_) => 0,
        }
    }

    /// Where what was asked to be appended is in the log now; whether that changes the log further.
    pub(crate) fn finish_append(&mut self, log: &impl LogView) -> bool {
        match &mut self.role {
            Role::Follower(follower) => match follower.phase {
                Phase::Appending { end, high_watermark, log_start } if log.log_end() == end => {
                    follower.phase = Phase::Ready;
                    self.take_offsets(log, high_watermark, log_start)
                }
                _ => false,
            },
            Role::Leader(_) => false,
        }
    }

    /// Takes over the leader's high watermark and log start; whether that changes the log. What the leader has deleted goes
    /// first: after an unclean election it may be something else here, and nothing told where it parts.
    fn take_offsets(&mut self, log: &impl LogView, high_watermark: Offset, log_start: Offset) -> bool {
        let high_watermark = high_watermark.min(log.log_end()).max(self.high_watermark);
        let start = log_start.min(high_watermark);
        let moves = start > log.log_start();
        if moves {
            self.actions.push_back(Action::AdvanceLogStart(start));
        }
        self.raise_high_watermark(high_watermark);
        moves
    }

    /// Asks for what comes behind the log, once all that it holds is safe.
    pub(crate) fn ask_leader(&mut self, log: &impl LogView) {
        let Role::Follower(follower) = &self.role else { return };
        if !follower.is_ready(self.now) {
            return;
        }
        if log.counted_end() < log.log_end() && !self.mutation.is(Mutant::FetchBeforeFlush) {
            return self.actions.push_back(Action::Flush);
        }
        let (leader, leader_epoch) = (follower.leader, follower.epoch);
        let id = self.next_question();
        self.enter(Phase::Fetching(id));
        self.actions.push_back(Action::Fetch(FetchState {
            id,
            leader,
            leader_epoch,
            offset: log.log_end(),
            last_fetched_epoch: log.latest_epoch().filter(|_| !self.mutation.is(Mutant::NoTruncation)),
            log_start: log.log_start(),
        }));
    }
}
