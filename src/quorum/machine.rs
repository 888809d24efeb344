//! The machine: events in, actions out.
//!
//! Each event runs in three steps: the event's own handler; what is due by now (`drive`); and the settling,
//! which puts the hard state first where it changed. Time never goes back within it.

use std::mem;

use model::{Instant, LeaderEpoch, NodeId, Offset};

use crate::jitter::Jitter;
use crate::mutant::{Mutant, Mutation};
use crate::peers::Peers;
use crate::role::{Role, Unattached};
use crate::snapshot::Snapshots;
use crate::{
    Action, Config, CurrentLeader, HardState, LogView, Peer, ReplicaKey, Request, RequestId, Response,
    RoleName, SnapshotId, Token, VoterHistory,
};

/// What a node finds on its disk when it starts, all of it flushed.
#[derive(Clone, Debug, Default)]
pub struct Boot {
    /// `quorum-state`; the default where there is none.
    pub hard: HardState,
    /// The log.
    pub log: LogView,
    /// The voters, from the latest snapshot and the log; bootstrap ones on a first start; none on an
    /// observer's.
    pub voters: VoterHistory,
    /// The snapshots and their sizes in bytes. The first one, of end offset 0, is not among them.
    pub snapshots: Vec<(SnapshotId, u64)>,
}

/// One node of a metadata quorum, voter or observer.
#[derive(Clone, Debug)]
pub struct Quorum {
    pub(crate) config: Config,
    pub(crate) me: ReplicaKey,
    /// How many bootstrap servers there are to ask for the leader.
    pub(crate) bootstrap_servers: usize,
    pub(crate) jitter: Jitter,
    pub(crate) now: Instant,
    pub(crate) hard: HardState,
    persisted: HardState,
    pub(crate) role: Role,
    pub(crate) announced: (RoleName, CurrentLeader),
    pub(crate) peers: Peers,
    next_request: u64,
    pub(crate) log: LogView,
    flush_asked: (Offset, u64),
    pub(crate) voters: VoterHistory,
    pub(crate) snapshots: Snapshots,
    pub(crate) high_watermark: Offset,
    pub(crate) actions: Vec<Action>,
    pub(crate) mutation: Mutation,
}

impl Quorum {
    /// A node that starts. `seed` decides its random waits; `bootstrap_servers` is how many addresses an
    /// unattached node may ask beside the voters.
    ///
    /// # Panics
    /// Where what was found does not fit together: the driver checks files as it reads them.
    pub fn open(
        config: Config,
        me: ReplicaKey,
        bootstrap_servers: usize,
        seed: u64,
        boot: Boot,
        now: Instant,
    ) -> Self {
        assert!(boot.log.flushed() == boot.log.end(), "what recovery kept is flushed before it counts");
        let snapshots = Snapshots::found(boot.snapshots, &boot.log);
        // A quorum-state that lags behind the log was lost: nothing is known of the log's last epoch but that
        // it was.
        let lost = boot.hard.epoch < boot.log.last_epoch();
        let hard = if lost { HardState::of_epoch(boot.log.last_epoch()) } else { boot.hard };
        let mut quorum = Self {
            config,
            me,
            bootstrap_servers,
            jitter: Jitter::new(seed),
            now,
            hard,
            persisted: boot.hard,
            role: Role::Unattached(Unattached { campaign_at: now, next_peer: 0 }),
            announced: (RoleName::Unattached, CurrentLeader::default()),
            peers: Peers::default(),
            next_request: 0,
            flush_asked: (boot.log.end(), boot.log.truncations()),
            log: boot.log,
            voters: boot.voters,
            snapshots,
            high_watermark: Offset(0),
            actions: Vec::new(),
            mutation: Mutation::default(),
        };
        quorum.event(now, Self::begin);
        quorum
    }

    /// The same node with a known fault.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutation = Mutation::of(mutant);
        self
    }

    // Who led this epoch before a restart cannot go on: it may have lost what it did not flush. It resigns.
    fn begin(&mut self) {
        self.move_high_watermark(self.snapshots.latest().map_or(Offset(0), |id| id.end));
        match self.hard.leader {
            _ if self.is_alone() => self.become_prospective(),
            Some(leader) if leader == self.me.id => self.become_resigned(self.other_voter_keys()),
            Some(leader) => self.become_follower(self.hard.epoch, leader),
            None => self.become_unattached(self.hard.epoch),
        }
    }

    fn is_alone(&self) -> bool {
        self.is_voter() && self.may_campaign() && self.voters.current().len() == 1
    }

    /// What is to be done since the last call, in order.
    pub fn take_actions(&mut self) -> Vec<Action> {
        mem::take(&mut self.actions)
    }

    /// When [`handle_tick`](Self::handle_tick) is to be called next.
    pub fn deadline(&self) -> Option<Instant> {
        let role = match &self.role {
            Role::Unattached(_) if !self.may_campaign() => None,
            role => role.deadline(),
        };
        let peers = self.peers.deadline(self.now);
        role.into_iter().chain(peers).min()
    }

    /// Time has passed.
    pub fn handle_tick(&mut self, now: Instant) {
        self.event(now, |_| ());
    }

    /// A peer's request came; its answer is an action under `token`, now or later.
    pub fn handle_request(&mut self, now: Instant, token: Token, request: Request) {
        self.event(now, |quorum| match request {
            Request::Vote(request) => quorum.handle_vote(token, &request),
            Request::BeginQuorumEpoch(request) => quorum.handle_begin_epoch(token, &request),
            Request::EndQuorumEpoch(request) => quorum.handle_end_epoch(token, &request),
            Request::Fetch(request) => quorum.handle_fetch(token, request),
            Request::FetchSnapshot(request) => quorum.handle_fetch_snapshot(token, &request),
        });
    }

    /// The answer to one of this node's requests came.
    pub fn handle_response(&mut self, now: Instant, id: RequestId, response: Response) {
        self.event(now, |quorum| {
            let Some(peer) = quorum.asked(id) else { return };
            let current = response.current();
            if quorum.learn(current) {
                return;
            }
            if current.epoch < quorum.hard.epoch {
                return quorum.back_off(peer);
            }
            match response {
                Response::Vote(response) => quorum.handle_vote_response(peer, &response),
                Response::BeginQuorumEpoch(_) => quorum.handle_begin_epoch_response(peer),
                Response::EndQuorumEpoch(response) => quorum.handle_end_epoch_response(peer, response.error),
                Response::Fetch(response) => quorum.handle_fetch_response(peer, response),
                Response::FetchSnapshot(response) => quorum.handle_fetch_snapshot_response(peer, &response),
            }
        });
    }

    /// One of this node's requests will have no answer: it was not sent, the connection broke, or the answer
    /// was unreadable.
    pub fn handle_failure(&mut self, now: Instant, id: RequestId) {
        self.event(now, |quorum| {
            if let Some(peer) = quorum.peers.take(id) {
                quorum.back_off(peer);
            }
        });
    }

    /// Nobody listens where that node is. If it leads, its process is gone, or hidden from here: this node does not wait for
    /// the fetch timeout until it campaigns. Who still hears from that leader refuses it.
    pub fn handle_unreachable(&mut self, now: Instant, node: NodeId) {
        self.event(now, |quorum| quorum.doubt_leader(node));
    }

    /// A flush that began when the log ended at `end` and had been cut `truncations` times is done.
    pub fn handle_flushed(&mut self, now: Instant, end: Offset, truncations: u64) {
        self.event(now, |quorum| {
            if truncations != quorum.log.truncations() && !quorum.mutation.is(Mutant::FlushAcrossTruncation) {
                return;
            }
            quorum.log.advance_flushed(end);
            quorum.advance_high_watermark();
            quorum.follow_high_watermark();
        });
    }

    // An answer counts only for the question that is in flight now.
    fn asked(&mut self, id: RequestId) -> Option<Peer> {
        let taken = self.peers.take(id);
        match &self.role {
            Role::Follower(role) if taken.is_none() && self.mutation.is(Mutant::StaleAnswer) => {
                Some(Peer::Node(role.leader))
            }
            _ => taken,
        }
    }

    pub(crate) fn event(&mut self, now: Instant, handler: impl FnOnce(&mut Self)) {
        self.now = self.now.max(now);
        let first = self.actions.len();
        handler(self);
        self.drive();
        self.settle(first);
    }

    // A role that ends by itself leaves the next one to be driven.
    fn drive(&mut self) {
        self.peers.expire(self.now);
        let mut driven = None;
        while driven != Some(self.role.name()) {
            driven = Some(self.role.name());
            self.drive_role();
        }
    }

    fn drive_role(&mut self) {
        match self.role.name() {
            RoleName::Unattached => self.drive_unattached(),
            RoleName::Prospective | RoleName::Candidate => self.drive_election(),
            RoleName::Follower => self.drive_follower(),
            RoleName::Leader => self.drive_leader(),
            RoleName::Resigned => self.drive_resigned(),
        }
    }

    fn settle(&mut self, first: usize) {
        self.announce_role();
        self.ask_for_flush();
        if self.hard == self.persisted {
            return;
        }
        self.persisted.check_successor(&self.hard);
        let forgets = self.mutation.is(Mutant::VoteNotPersisted) && self.hard.leader.is_none();
        self.persisted = self.hard;
        if !forgets {
            self.actions.insert(first, Action::Persist(self.hard));
        }
    }

    fn ask_for_flush(&mut self) {
        let all = (self.log.end(), self.log.truncations());
        if self.log.flushed() < all.0 && self.flush_asked != all {
            self.flush_asked = all;
            self.actions.push(Action::Flush { end: all.0, truncations: all.1 });
        }
    }

    pub(crate) fn send(&mut self, to: Peer, request: Request) {
        self.next_request += 1;
        let id = RequestId(self.next_request);
        self.peers.sent(to, id, self.now.plus(self.config.request_timeout));
        self.actions.push(Action::Send { to, id, request });
    }

    pub(crate) fn back_off(&mut self, peer: Peer) {
        self.peers.back_off(peer, self.now.plus(self.config.retry_backoff));
    }

    pub(crate) fn respond(&mut self, token: Token, response: Response) {
        self.actions.push(Action::Respond { token, response });
    }

    pub(crate) fn other_voter_keys(&self) -> Vec<ReplicaKey> {
        let keys = self.voters.current().iter().map(|voter| voter.key);
        keys.filter(|key| key.id != self.me.id).collect()
    }

    /// What it is.
    pub fn role(&self) -> RoleName {
        self.role.name()
    }

    /// The epoch that it is in.
    pub fn epoch(&self) -> LeaderEpoch {
        self.hard.epoch
    }

    /// Who leads, where that is known.
    pub fn leader(&self) -> Option<NodeId> {
        self.current().leader
    }

    /// Everything before it is committed, as far as this node knows.
    pub fn high_watermark(&self) -> Offset {
        self.high_watermark
    }

    /// The shape of its log.
    pub fn log(&self) -> &LogView {
        &self.log
    }

    /// Which voters count from which offset.
    pub fn voters(&self) -> &VoterHistory {
        &self.voters
    }
}
