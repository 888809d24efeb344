//! Fetches as a leader serves them: answered, parked until there is news, or refused.
//!
//! Invariants: only an answer that brings records, or might have, carries a high watermark; a Fetch that
//! diverges says nothing of what its sender holds; every Fetch is answered once, and each replica has at most
//! one that is parked.
//!
//! Kafka: `KafkaRaftClient.handleFetchRequest`.

use model::{ErrorCode, Instant, LeaderEpoch, Offset};

use crate::lead::OBSERVERS_MAX;
use crate::log_view::Position;
use crate::mutant::Mutant;
use crate::{Action, FetchRequest, FetchResponse, Quorum, ReplicaKey, Response, Token};

/// A Fetch whose answer waits for news.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parked {
    pub(crate) token: Token,
    request: FetchRequest,
    pub(crate) until: Instant,
}

impl Quorum {
    pub(crate) fn handle_fetch(&mut self, token: Token, request: FetchRequest) {
        if let Err(error) = self.check_fetch(request.replica, request.epoch) {
            return self.refuse_fetch(token, error);
        }
        let last_epoch = request.last_fetched_epoch;
        if request.fetch_offset.0 < 0 || last_epoch.0 < 0 || last_epoch > request.epoch {
            return self.refuse_fetch(token, ErrorCode::InvalidRequest);
        }
        self.replica_fetched(request.replica);
        match self.log.position(request.fetch_offset, request.last_fetched_epoch) {
            Position::BeforeStart => {
                let snapshot = self.snapshots.latest();
                self.answer_fetch(token, |response| response.snapshot = snapshot);
            }
            Position::Diverging(end) => {
                if self.mutation.is(Mutant::DivergingFetchCounts) {
                    self.replica_holds(&request);
                }
                self.answer_fetch(token, |response| response.diverging = Some(end));
            }
            Position::Valid => {
                self.replica_holds(&request);
                self.answer_or_park(token, request);
            }
        }
    }

    /// What every request to a leader must have right.
    pub(crate) fn check_fetch(&self, replica: ReplicaKey, epoch: LeaderEpoch) -> Result<(), ErrorCode> {
        if replica.id == self.me.id {
            return Err(ErrorCode::InvalidRequest);
        }
        if epoch < self.hard.epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if epoch > self.hard.epoch {
            return Err(ErrorCode::UnknownLeaderEpoch);
        }
        if self.lead().is_none() {
            return Err(ErrorCode::NotLeaderOrFollower);
        }
        Ok(())
    }

    fn refuse_fetch(&mut self, token: Token, error: ErrorCode) {
        let mut response = FetchResponse::refusal(error, self.current());
        if self.mutation.is(Mutant::FencedAnswerMovesHighWatermark) {
            response.high_watermark = Some(self.high_watermark);
        }
        self.respond(token, Response::Fetch(response));
    }

    // Diverging, or sent to a snapshot: without error, but also without a high watermark.
    fn answer_fetch(&mut self, token: Token, fill: impl FnOnce(&mut FetchResponse)) {
        let mut response = FetchResponse::refusal(ErrorCode::None, self.current());
        response.log_start = self.log.start();
        fill(&mut response);
        if self.mutation.is(Mutant::FencedAnswerMovesHighWatermark) {
            response.high_watermark = self.exposed_high_watermark();
        }
        self.respond(token, Response::Fetch(response));
    }

    /// A leader that has committed nothing in its epoch cannot know how far the log is committed.
    fn exposed_high_watermark(&self) -> Option<Offset> {
        self.lead().filter(|lead| lead.active).map(|_| self.high_watermark)
    }

    /// For check-quorum: the replica is there and knows this epoch.
    pub(crate) fn replica_fetched(&mut self, replica: ReplicaKey) {
        let now = self.now;
        let is_voter = self.voters.current().contains(&replica);
        let Some(lead) = self.lead_mut().filter(|_| replica.id.0 >= 0) else { return };
        if is_voter || lead.replicas.contains_key(&replica) || lead.replicas.len() < OBSERVERS_MAX {
            lead.replicas.entry(replica).or_default().last_fetch = Some(now);
        }
    }

    // Within one epoch the leader's log only grows, so what a replica once had on disk of it, it keeps.
    fn replica_holds(&mut self, request: &FetchRequest) {
        let (now, end) = (self.now, self.log.end());
        let progress = self.lead_mut().and_then(|lead| lead.replicas.get_mut(&request.replica));
        let Some(progress) = progress else { return };
        if request.fetch_offset >= end {
            progress.last_caught_up = Some(now);
        } else if request.fetch_offset >= progress.end_at_fetch {
            progress.last_caught_up = progress.last_fetch;
        }
        progress.end_at_fetch = end;
        progress.log_end = progress.log_end.max(Some(request.fetch_offset));
        self.advance_high_watermark();
        self.continue_change(request.replica);
    }

    fn answer_or_park(&mut self, token: Token, request: FetchRequest) {
        // What this very Fetch has committed may have been the leader's own removal.
        if self.lead().is_none() {
            return self.refuse_fetch(token, ErrorCode::NotLeaderOrFollower);
        }
        let earlier = self.lead_mut().and_then(|lead| {
            let same = |parked: &Parked| parked.request.replica == request.replica;
            lead.parked.iter().position(same).map(|at| lead.parked.remove(at))
        });
        if let Some(earlier) = earlier {
            self.answer_records(earlier.token, &earlier.request);
        }
        if request.wait.is_zero() || self.has_news(&request) {
            return self.answer_records(token, &request);
        }
        let until = self.now.plus(request.wait.min(self.config.fetch_wait));
        match self.lead_mut() {
            Some(lead) if lead.parked.len() < OBSERVERS_MAX => {
                lead.parked.push(Parked { token, request, until });
            }
            _ => self.answer_records(token, &request),
        }
    }

    fn has_news(&self, request: &FetchRequest) -> bool {
        let watermark = self.exposed_high_watermark();
        request.fetch_offset < self.log.end() || watermark.is_some_and(|known| known > request.high_watermark)
    }

    fn answer_records(&mut self, token: Token, request: &FetchRequest) {
        let mut response = FetchResponse::refusal(ErrorCode::None, self.current());
        response.log_start = self.log.start();
        response.high_watermark = self.exposed_high_watermark();
        let (start, end) = (request.fetch_offset, self.log.end());
        // The start may have moved past it while the Fetch was parked; the next one is sent to the snapshot.
        if start < end && start >= self.log.start() {
            self.actions.push(Action::RespondRecords { token, response, start, end });
        } else {
            self.respond(token, Response::Fetch(response));
        }
    }

    pub(crate) fn answer_parked(&mut self) {
        let now = self.now;
        let parked = self.lead_mut().map(|lead| std::mem::take(&mut lead.parked)).unwrap_or_default();
        let (ready, rest): (Vec<_>, Vec<_>) =
            parked.into_iter().partition(|parked| parked.until <= now || self.has_news(&parked.request));
        if let Some(lead) = self.lead_mut() {
            lead.parked = rest;
        }
        for parked in ready {
            self.answer_records(parked.token, &parked.request);
        }
    }
}
