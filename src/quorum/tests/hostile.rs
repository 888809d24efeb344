//! Whatever peers send, a node does not panic, and keeps its promises.
//!
//! One thing excepted: a leader that asks for a cut below the high watermark. That is a quorum which has
//! broken already, and the node stops.

mod simulation;

use std::collections::BTreeSet;
use std::time::Duration;

use model::{ErrorCode, Instant, LeaderEpoch, NodeId, Offset, Uuid};
use quorum::{
    Action, Batch, BeginQuorumEpochRequest, Boot, Config, CurrentLeader, EndQuorumEpochRequest, EpochEnd,
    EpochResponse, FetchRequest, FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse, Quorum,
    ReplicaKey, Request, RequestId, Response, SnapshotId, Token, VoteRequest, VoteResponse, Voter,
    VoterHistory, VoterSet,
};
use simulation::chance::Chance;

const EVENTS: usize = 4_000;

struct Hostile {
    chance: Chance,
    quorum: Quorum,
    now: Instant,
    asked: Vec<(RequestId, Request)>,
}

fn key(id: i32) -> ReplicaKey {
    ReplicaKey::new(NodeId(id), Uuid([id as u8; 16]))
}

impl Hostile {
    fn new(seed: u64) -> Self {
        let mut chance = Chance::new(seed);
        let voters: VoterSet = (1..=chance.below(4) as i32).map(|id| Voter::new(key(id))).collect();
        let boot = Boot { voters: VoterHistory::bootstrap(voters), ..Boot::default() };
        let quorum = Quorum::open(Config::default(), key(1), 2, seed, boot, Instant(0));
        Self { chance, quorum, now: Instant(0), asked: Vec::new() }
    }

    fn number(&mut self) -> i64 {
        let around = self.quorum.log().end().0 + self.chance.below(7) as i64 - 3;
        [i64::MIN, -1, 0, 1, 2, 5, around, around, around, i64::MAX - 1, i64::MAX]
            [self.chance.below(11) as usize]
    }

    fn offset(&mut self) -> Offset {
        Offset(self.number())
    }

    fn epoch(&mut self) -> LeaderEpoch {
        let LeaderEpoch(now) = self.quorum.epoch();
        let near = now.saturating_add(self.chance.below(3) as i32 - 1);
        let far = [i32::MIN, -1, 0, i32::MAX][self.chance.below(4) as usize];
        LeaderEpoch(if self.chance.per_mille(970) { near } else { far })
    }

    fn id(&mut self) -> NodeId {
        NodeId([i32::MIN, -1, 1, 2, 2, 3, 3, 9, i32::MAX][self.chance.below(9) as usize])
    }

    fn key(&mut self) -> ReplicaKey {
        let id = self.id();
        if self.chance.per_mille(800) { key(id.0) } else { ReplicaKey::new(id, Uuid::ZERO) }
    }

    fn epoch_end(&mut self) -> EpochEnd {
        EpochEnd { epoch: self.epoch(), end: self.offset() }
    }

    fn snapshot(&mut self) -> SnapshotId {
        SnapshotId { end: self.offset(), epoch: self.epoch() }
    }

    fn request(&mut self) -> Request {
        let (epoch, leader, replica, voter) = (self.epoch(), self.id(), self.key(), key(1));
        match self.chance.below(6) {
            0 | 1 => {
                let (log_end, pre_vote) = (self.epoch_end(), self.chance.per_mille(500));
                Request::Vote(VoteRequest { epoch, candidate: replica, voter, log_end, pre_vote })
            }
            2 => Request::BeginQuorumEpoch(BeginQuorumEpochRequest { epoch, leader, voter }),
            3 => Request::EndQuorumEpoch(EndQuorumEpochRequest {
                epoch,
                leader,
                preferred: vec![replica, self.key()],
            }),
            4 => Request::Fetch(FetchRequest {
                replica,
                epoch,
                fetch_offset: self.offset(),
                last_fetched_epoch: self.epoch(),
                high_watermark: self.offset(),
                wait: Duration::from_secs(self.chance.next()),
            }),
            _ => Request::FetchSnapshot(FetchSnapshotRequest {
                replica,
                epoch,
                id: self.snapshot(),
                position: self.chance.next(),
                bytes_max: self.chance.next() as u32,
            }),
        }
    }

    fn error(&mut self) -> ErrorCode {
        let codes = [ErrorCode::None, ErrorCode::NotLeaderOrFollower, ErrorCode::UnknownServerError];
        codes[if self.chance.per_mille(900) { 0 } else { self.chance.below(3) as usize }]
    }

    fn response(&mut self, request: &Request) -> Response {
        let (error, leader) = (self.error(), self.id());
        let current = CurrentLeader {
            epoch: self.epoch(),
            leader: Some(leader).filter(|_| self.chance.per_mille(900)),
        };
        match request {
            Request::Vote(_) => {
                Response::Vote(VoteResponse { error, current, granted: self.chance.per_mille(700) })
            }
            Request::BeginQuorumEpoch(_) => Response::BeginQuorumEpoch(EpochResponse { error, current }),
            Request::EndQuorumEpoch(_) => Response::EndQuorumEpoch(EpochResponse { error, current }),
            Request::Fetch(_) => Response::Fetch(self.fetch_response(error, current)),
            Request::FetchSnapshot(asked) => {
                let position = if self.chance.per_mille(800) { asked.position } else { self.chance.next() };
                let length = self.chance.between(1, 1_500) as u32;
                let size = if self.chance.per_mille(800) { 1_500 } else { self.chance.next() };
                Response::FetchSnapshot(FetchSnapshotResponse {
                    error,
                    current,
                    id: asked.id,
                    size,
                    position,
                    length,
                })
            }
        }
    }

    fn fetch_response(&mut self, error: ErrorCode, current: CurrentLeader) -> FetchResponse {
        let diverging =
            Some(self.epoch_end()).filter(|end| self.chance.per_mille(200) && self.is_bearable(*end));
        let snapshot = Some(self.snapshot()).filter(|_| self.chance.per_mille(100));
        let batches = (0..self.chance.below(3)).map(|_| self.batch()).collect();
        let high_watermark = Some(self.offset()).filter(|_| self.chance.per_mille(700));
        FetchResponse {
            error,
            current,
            high_watermark,
            log_start: self.offset(),
            diverging,
            snapshot,
            batches,
        }
    }

    fn is_bearable(&self, diverging: EpochEnd) -> bool {
        let own = self.quorum.log().end_for(diverging.epoch);
        let cut = if own.epoch == diverging.epoch { own.end.min(diverging.end) } else { own.end };
        cut >= self.quorum.high_watermark()
    }

    fn batch(&mut self) -> Batch {
        let voters_records = if self.chance.per_mille(100) { 2 } else { 0 };
        let voters = (0..voters_records).map(|_| (self.offset(), VoterSet::default())).collect();
        Batch { base_offset: self.offset(), end: self.offset(), epoch: self.epoch(), voters }
    }

    fn act(&mut self) {
        for action in self.quorum.take_actions() {
            match action {
                Action::Flush { end, truncations } if self.chance.per_mille(900) => {
                    self.quorum.handle_flushed(self.now, end, truncations);
                }
                Action::Send { id, request, .. } => self.asked.push((id, request)),
                Action::InstallSnapshot(id) => {
                    self.quorum.handle_snapshot_installed(self.now, id, 1, VoterSet::default());
                }
                _ => (),
            }
        }
    }

    fn step(&mut self, token: u64) {
        self.now = self.now.plus(Duration::from_millis(self.chance.below(100)));
        match self.chance.below(4) {
            0 => {
                let request = self.request();
                self.quorum.handle_request(self.now, Token(token), request);
            }
            1 if self.chance.per_mille(20) => self.quorum.resign(self.now),
            1 => self.quorum.handle_tick(self.now),
            _ => {
                let Some((id, request)) = self.asked.pop() else { return };
                let response = self.response(&request);
                self.quorum.handle_response(self.now, id, response);
            }
        }
        self.act();
    }
}

#[test]
fn a_node_survives_whatever_it_is_sent() {
    let (mut roles, mut snapshots, mut commits) = (BTreeSet::new(), 0, 0);
    for seed in 0..60 {
        let mut hostile = Hostile::new(seed);
        for token in 0..EVENTS {
            hostile.step(token as u64);
            roles.insert(format!("{:?}", hostile.quorum.role()));
        }
        snapshots += usize::from(hostile.quorum.latest_snapshot().is_some());
        commits += usize::from(hostile.quorum.high_watermark() > Offset(0));
    }
    assert_eq!(roles.len(), 6, "only {roles:?} were tried");
    assert!(snapshots > 0 && commits > 20, "{snapshots} nodes got a snapshot, {commits} committed something");
}
