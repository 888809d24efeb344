//! Following a leader: Fetch after Fetch, appending, cutting where the leader's log says so; and looking for
//! a leader.
//!
//! Invariants: a Fetch leaves only when everything appended is flushed, for its offset acknowledges; nothing
//! below the high watermark is cut; only a good answer moves the high watermark.
//!
//! Kafka: `KafkaRaftClient.handleFetchResponse`, `FollowerState`, `UnattachedState`.

use std::time::Duration;

use model::{ErrorCode, Instant, NodeId, Offset};

use crate::log_view::OFFSET_MAX;
use crate::mutant::Mutant;
use crate::role::Role;
use crate::snapshot::Download;
use crate::{
    Action, Batch, BeginQuorumEpochRequest, EndQuorumEpochRequest, EpochEnd, EpochResponse, FetchRequest,
    FetchResponse, Peer, Quorum, Request, Response, Token,
};

/// How long a leader that cannot be reached is waited for: all its followers are to notice before one campaigns.
const UNREACHABLE_WAIT: Duration = Duration::from_millis(20);
/// Followers should not all campaign at the same moment.
const UNREACHABLE_SPREAD: Duration = Duration::from_millis(60);

#[derive(Clone, Debug)]
pub(crate) struct Follower {
    pub(crate) leader: NodeId,
    /// Without a good answer until then, the leader is given up.
    pub(crate) fetch_until: Instant,
    /// The leader has answered well in this epoch, and is there since.
    heard: bool,
    /// The leader said that it leads no more.
    abandoned: bool,
    /// As the leader says, who may be further than this node.
    committed: Offset,
    pub(crate) download: Option<Download>,
}

impl Follower {
    pub(crate) fn new(leader: NodeId, fetch_until: Instant) -> Self {
        Self { leader, fetch_until, heard: false, abandoned: false, committed: Offset(0), download: None }
    }

    /// Whether it has a leader that works, so that nobody else is needed (KIP-996).
    pub(crate) fn is_attended(&self) -> bool {
        self.heard && !self.abandoned
    }
}

impl Quorum {
    pub(crate) fn next_fetch_deadline(&mut self) -> Instant {
        // Followers should not all campaign at the same moment.
        let spread = self.jitter.up_to(self.config.fetch_timeout / 4);
        self.now.plus(self.config.fetch_timeout + spread)
    }

    pub(crate) fn drive_follower(&mut self) {
        let Role::Follower(role) = &self.role else { return };
        if role.fetch_until <= self.now {
            return self.give_up_leader();
        }
        let (leader, download) = (Peer::Node(role.leader), role.download);
        if !self.peers.is_ready(leader, self.now) {
            return;
        }
        match download {
            Some(download) => self.fetch_snapshot(leader, download),
            None => self.fetch(leader),
        }
    }

    fn give_up_leader(&mut self) {
        if self.may_campaign() {
            self.become_prospective();
        } else {
            self.become_unattached(self.hard.epoch);
        }
    }

    fn fetch(&mut self, from: Peer) {
        if self.log.flushed() < self.log.end() && !self.mutation.is(Mutant::FetchBeforeFlush) {
            return;
        }
        let request = FetchRequest {
            replica: self.me,
            epoch: self.hard.epoch,
            fetch_offset: self.log.end(),
            last_fetched_epoch: self.log.last_epoch(),
            high_watermark: self.high_watermark,
            wait: self.config.fetch_wait,
        };
        self.send(from, Request::Fetch(request));
    }

    /// Nobody leads, as far as is known: ask one after the other with a Fetch, whose answer names the leader.
    pub(crate) fn drive_unattached(&mut self) {
        let Role::Unattached(role) = &self.role else { return };
        if role.campaign_at <= self.now && self.may_campaign() {
            return self.become_prospective();
        }
        let next_peer = role.next_peer;
        let peers = self.peers_to_ask();
        if self.peers.is_waiting() || peers.is_empty() {
            return;
        }
        let peer = peers[next_peer % peers.len()];
        if self.peers.is_ready(peer, self.now) {
            self.fetch(peer);
            if let Role::Unattached(role) = &mut self.role {
                role.next_peer = next_peer + 1;
            }
        }
    }

    fn peers_to_ask(&self) -> Vec<Peer> {
        let voters = self.other_voters().into_iter().map(Peer::Node);
        voters.chain((0..self.bootstrap_servers).map(Peer::Bootstrap)).collect()
    }

    pub(crate) fn handle_fetch_response(&mut self, peer: Peer, response: FetchResponse) {
        match &self.role {
            Role::Unattached(_) => self.back_off(peer),
            Role::Follower(_) => self.follow_response(peer, response),
            Role::Prospective(_) | Role::Candidate(_) | Role::Leader(_) | Role::Resigned(_) => (),
        }
    }

    fn follow_response(&mut self, leader: Peer, response: FetchResponse) {
        if self.mutation.is(Mutant::FencedAnswerMovesHighWatermark) {
            self.learn_high_watermark(response.high_watermark);
        }
        if !response.error.is_none() {
            return self.follow_refusal(leader, response.current.leader.is_none());
        }
        self.heard_from_leader();
        if let Some(diverging) = response.diverging {
            self.truncate_to(self.log.truncation_for(diverging));
        } else if let Some(id) = response.snapshot {
            self.begin_download(leader, id);
        } else if self.append_fetched(&response.batches) {
            self.learn_high_watermark(response.high_watermark);
        } else {
            self.back_off(leader);
        }
    }

    pub(crate) fn heard_from_leader(&mut self) {
        let fetch_until = self.next_fetch_deadline();
        if let Role::Follower(role) = &mut self.role {
            (role.heard, role.fetch_until) = (true, fetch_until);
        }
    }

    pub(crate) fn doubt_leader(&mut self, node: NodeId) {
        let give_up_at = self.now.plus(UNREACHABLE_WAIT + self.jitter.up_to(UNREACHABLE_SPREAD));
        if let Role::Follower(role) = &mut self.role
            && role.leader == node
            && role.heard
        {
            (role.heard, role.fetch_until) = (false, role.fetch_until.min(give_up_at));
        }
    }

    pub(crate) fn follow_refusal(&mut self, leader: Peer, leads_no_more: bool) {
        if let Role::Follower(role) = &mut self.role {
            role.abandoned |= leads_no_more;
            role.download = None;
        }
        self.back_off(leader);
    }

    fn truncate_to(&mut self, to: Offset) {
        assert!(to >= self.high_watermark, "a cut to {to} below the high watermark {}", self.high_watermark);
        if to < self.log.end() {
            self.log.truncate(to);
            let before = self.voters.current_offset();
            self.voters.truncate(to);
            self.actions.push(Action::Truncate(to));
            if before != self.voters.current_offset() {
                self.actions.push(Action::VotersChanged(self.voters.current().clone()));
            }
        }
    }

    // True where the batches go on from this log's end, all of them.
    fn append_fetched(&mut self, batches: &[Batch]) -> bool {
        let mut last = EpochEnd { epoch: self.log.last_epoch(), end: self.log.end() };
        for batch in batches {
            let fits = batch.base_offset == last.end && batch.end > last.end && batch.end < OFFSET_MAX;
            let in_order = batch.voters.is_sorted_by(|(one, _), (next, _)| one < next);
            let inside = batch.voters.iter().all(|(at, _)| (batch.base_offset..batch.end).contains(at));
            if !fits || !in_order || !inside || batch.epoch < last.epoch || batch.epoch > self.hard.epoch {
                return false;
            }
            last = EpochEnd { epoch: batch.epoch, end: batch.end };
        }
        if batches.is_empty() {
            return true;
        }
        self.actions.push(Action::AppendFetched { count: batches.len() });
        for batch in batches {
            self.log.append(batch.epoch, batch.end);
            for (offset, voters) in &batch.voters {
                self.append_voters(*offset, voters.clone());
            }
        }
        true
    }

    fn learn_high_watermark(&mut self, high_watermark: Option<Offset>) {
        if let (Role::Follower(role), Some(high_watermark)) = (&mut self.role, high_watermark) {
            role.committed = role.committed.max(high_watermark);
            self.follow_high_watermark();
        }
    }

    /// What is committed and here on disk is to be seen here: no power cut takes it back.
    pub(crate) fn follow_high_watermark(&mut self) {
        if let Role::Follower(role) = &self.role {
            self.move_high_watermark(role.committed.min(self.log.flushed()));
        }
    }

    pub(crate) fn handle_begin_epoch(&mut self, token: Token, request: &BeginQuorumEpochRequest) {
        let checked = self.check_leader(request.epoch, request.leader);
        if checked.is_ok() {
            self.begin_epoch(request);
        }
        let is_meant = request.voter.is_same(&self.me);
        let error =
            checked.err().unwrap_or(if is_meant { ErrorCode::None } else { ErrorCode::InvalidVoterKey });
        let response = EpochResponse { error, current: self.current() };
        self.respond(token, Response::BeginQuorumEpoch(response));
    }

    fn begin_epoch(&mut self, request: &BeginQuorumEpochRequest) {
        let follows = matches!(&self.role, Role::Follower(role) if role.leader == request.leader);
        if request.epoch > self.hard.epoch || !follows {
            self.become_follower(request.epoch, request.leader);
        }
    }

    // A request in a leader's name: of an epoch that is not over, and of the leader that this epoch has.
    fn check_leader(&self, epoch: model::LeaderEpoch, leader: NodeId) -> Result<(), ErrorCode> {
        if leader.0 < 0 || leader == self.me.id {
            return Err(ErrorCode::InvalidRequest);
        }
        if epoch < self.hard.epoch {
            return Err(ErrorCode::FencedLeaderEpoch);
        }
        if epoch == self.hard.epoch && self.hard.leader.is_some_and(|known| known != leader) {
            return Err(ErrorCode::InvalidRequest);
        }
        Ok(())
    }

    pub(crate) fn handle_end_epoch(&mut self, token: Token, request: &EndQuorumEpochRequest) {
        let checked = self.check_leader(request.epoch, request.leader);
        if checked.is_ok() {
            self.end_epoch(request);
        }
        let error = checked.err().unwrap_or(ErrorCode::None);
        let response = EpochResponse { error, current: self.current() };
        self.respond(token, Response::EndQuorumEpoch(response));
    }

    fn end_epoch(&mut self, request: &EndQuorumEpochRequest) {
        if request.epoch > self.hard.epoch {
            self.become_follower(request.epoch, request.leader);
        }
        let campaign_at = self.now.plus(self.wait_of_successor(request));
        match &mut self.role {
            Role::Follower(role) => {
                role.abandoned = true;
                role.fetch_until = role.fetch_until.min(campaign_at);
            }
            Role::Unattached(role) => role.campaign_at = role.campaign_at.min(campaign_at),
            Role::Prospective(_) | Role::Candidate(_) | Role::Leader(_) | Role::Resigned(_) => (),
        }
    }

    // The first in the list campaigns at once, each later one only if those before it did not win.
    fn wait_of_successor(&mut self, request: &EndQuorumEpochRequest) -> Duration {
        let position = request.preferred.iter().position(|key| key.is_same(&self.me));
        match position {
            Some(0) => Duration::ZERO,
            _ => self.jitter.once_to_twice(self.config.election_backoff_max / 2),
        }
    }
}
