//! The KRaft core: one node of a metadata quorum, as a pure machine.
//!
//! No task, no clock, no file, no socket: events go in, [`Action`]s come out, and `now` is an argument. One
//! voter runs the same code as five, and an observer too.
//!
//! How a driver uses it (`a_driver_commits_what_it_appends` below is one in small):
//!
//! 1. Read `quorum-state`, the log and the snapshots; flush what recovery kept; [`Quorum::open`].
//! 2. After each call do what [`Quorum::take_actions`] gives, *in order, each done before the next begins*;
//!    only a flush and a send are merely begun. A disk that fails ends the process. What an action needs from
//!    a message ([`Action::AppendFetched`], [`Action::WriteSnapshotPiece`]) is in the one that was handed in
//!    just before.
//! 3. Call [`Quorum::handle_tick`] at [`Quorum::deadline`], ask again for it after each call.
//! 4. Report what comes: [`handle_request`](Quorum::handle_request),
//!    [`handle_response`](Quorum::handle_response), [`handle_failure`](Quorum::handle_failure),
//!    [`handle_flushed`](Quorum::handle_flushed).
//! 5. A leader's controller starts at [`Action::Activated`], when it has applied the log up to there. It
//!    calls [`Quorum::append`] and writes the batch, before it takes the actions, at the offset that it is
//!    told. It answers when [`Action::HighWatermark`] has passed it.
//! 6. An orderly end: [`Quorum::resign`], and go on until another leads or some seconds have passed.
//! 7. Everybody applies records below the high watermark, makes snapshots of them
//!    ([`handle_snapshot_made`](Quorum::handle_snapshot_made)), and may then
//!    [`delete_before`](Quorum::delete_before).
//!
//! Invariants, asserted here and in the simulator (`tests/simulation`): the epoch and the high watermark only
//! grow; one vote and one leader an epoch; nothing below the high watermark is cut; a vote and an
//! acknowledgement leave only after what they promise is on disk; only records of a leader's own epoch are
//! committed by counting.
//!
//! What is absent: bytes of records and snapshots, endpoints of peers (but for the voters'), the cluster id.
//! Those are the driver's.
//!
//! Kafka: `org.apache.kafka.raft`, KIP-595, KIP-630, KIP-853, KIP-996.

mod action;
mod change;
mod config;
mod describe;
mod follow;
mod formation;
mod hard_state;
mod jitter;
mod lead;
mod log_view;
mod machine;
mod message;
mod mutant;
mod peers;
mod role;
mod serve;
mod snapshot;
mod vote;
mod voters;

pub use action::{Action, ControlBatch, ControlRecord, RoleName};
pub use change::VoterChangeError;
pub use config::Config;
pub use describe::{Description, ReplicaState};
pub use formation::{Cluster, Formation, FormationError, Introduction, Outcome};
pub use hard_state::HardState;
pub use lead::{AppendError, Appended};
pub use log_view::{EpochEnd, EpochStart, LogView};
pub use machine::{Boot, Quorum};
pub use message::{
    Batch, BeginQuorumEpochRequest, CurrentLeader, EndQuorumEpochRequest, EpochResponse, FetchRequest,
    FetchResponse, FetchSnapshotRequest, FetchSnapshotResponse, Peer, Request, RequestId, Response, Token,
    VoteRequest, VoteResponse,
};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use snapshot::SnapshotId;
pub use voters::{Endpoint, ReplicaKey, Voter, VoterHistory, VoterSet};

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::time::Duration;

    use model::{Instant, LeaderEpoch, NodeId, Offset, Uuid};

    use super::*;

    /// A driver in small: the log is a list of epochs, a flush takes a millisecond, and nobody is there to be
    /// sent to.
    struct Driver {
        quorum: Quorum,
        now: Instant,
        persisted: HardState,
        log: Vec<LeaderEpoch>,
        flushes: VecDeque<(Offset, u64)>,
        active: Option<LeaderEpoch>,
        high_watermark: Offset,
    }

    impl Driver {
        fn start(me: ReplicaKey, voters: VoterSet) -> Self {
            let boot = Boot { voters: VoterHistory::bootstrap(voters), ..Boot::default() };
            Self::open(me, boot, Vec::new())
        }

        fn open(me: ReplicaKey, boot: Boot, log: Vec<LeaderEpoch>) -> Self {
            let (now, persisted) = (Instant(0), boot.hard);
            let quorum = Quorum::open(Config::default(), me, 0, 1, boot, now);
            let mut driver = Self {
                quorum,
                now,
                persisted,
                log,
                flushes: VecDeque::new(),
                active: None,
                high_watermark: Offset(0),
            };
            driver.act();
            driver
        }

        fn act(&mut self) {
            for action in self.quorum.take_actions() {
                match action {
                    Action::Persist(hard) => self.persisted = hard,
                    Action::AppendControl(batch) => {
                        assert_eq!(batch.base_offset.0, self.log.len() as i64);
                        self.log.extend(batch.records.iter().map(|_| batch.epoch));
                    }
                    Action::Flush { end, truncations } => self.flushes.push_back((end, truncations)),
                    Action::Activated { epoch, .. } => self.active = Some(epoch),
                    Action::HighWatermark(offset) => self.high_watermark = offset,
                    _ => (),
                }
            }
        }

        fn append(&mut self, count: u32) -> Result<Offset, AppendError> {
            let epoch = self.active.unwrap_or(self.quorum.epoch());
            let appended = self.quorum.append(self.now, epoch, count)?;
            self.log.extend((0..count).map(|_| appended.epoch));
            self.act();
            Ok(appended.base_offset)
        }

        fn run_flushes(&mut self) {
            while let Some((end, truncations)) = self.flushes.pop_front() {
                self.now = self.now.plus(Duration::from_millis(1));
                self.quorum.handle_flushed(self.now, end, truncations);
                self.act();
            }
        }
    }

    fn me() -> ReplicaKey {
        ReplicaKey::new(NodeId(1), Uuid([7; 16]))
    }

    fn alone() -> VoterSet {
        [Voter::new(me())].into_iter().collect()
    }

    #[test]
    fn a_driver_commits_what_it_appends() {
        let mut driver = Driver::start(me(), alone());
        assert_eq!(driver.quorum.role(), RoleName::Leader);
        assert_eq!(driver.persisted.leader, Some(me().id));
        assert_eq!(driver.log.len(), 3, "LeaderChange, KRaftVersion, Voters");
        assert_eq!(driver.append(1), Err(AppendError::NotActive), "nothing before LeaderChange is committed");

        driver.run_flushes();
        assert_eq!(driver.active, Some(LeaderEpoch(1)));
        assert_eq!(driver.high_watermark, Offset(3));

        assert_eq!(driver.append(5), Ok(Offset(3)));
        assert_eq!(driver.high_watermark, Offset(3), "not before it is flushed");
        driver.run_flushes();
        assert_eq!(driver.high_watermark, Offset(8));
    }

    #[test]
    fn a_single_voter_leads_a_new_epoch_after_a_restart() {
        let mut driver = Driver::start(me(), alone());
        driver.run_flushes();
        driver.append(2).expect("it leads");
        driver.run_flushes();

        let epochs = [EpochStart { epoch: LeaderEpoch(1), start: Offset(0) }];
        let log = LogView::found(Offset(0), LeaderEpoch(0), &epochs, Offset(5));
        let mut voters = VoterHistory::bootstrap(alone());
        voters.append(Offset(2), alone());
        let boot = Boot { hard: driver.persisted, log, voters, snapshots: Vec::new() };
        let mut driver = Driver::open(me(), boot, driver.log);
        assert_eq!(
            driver.high_watermark,
            Offset(0),
            "what is committed shows only by a commit of the new epoch"
        );
        driver.run_flushes();
        assert_eq!(driver.active, Some(LeaderEpoch(2)));
        assert_eq!(driver.high_watermark, Offset(6), "one LeaderChange; the voters stand in the log already");
    }

    #[test]
    fn an_observer_asks_bootstrap_servers_for_the_leader() {
        let mut quorum = Quorum::open(Config::default(), me(), 2, 1, Boot::default(), Instant(0));
        let actions = quorum.take_actions();
        let [Action::Send { to: Peer::Bootstrap(0), id, request: Request::Fetch(_) }] = actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(quorum.deadline(), Some(Instant(0).plus(Config::default().request_timeout)));
        quorum.handle_failure(Instant(1), id);
        assert_eq!(quorum.role(), RoleName::Unattached);
    }
}
