//! One replica on a bench: its log is there, its flushes end at once or when told, and what it asks for is written down.

#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    reason = "shared by several test programs, each of which uses a part"
)]

#[path = "../simulation/disk.rs"]
pub mod disk;

use std::time::Duration;

use disk::{Batch, Disk};
use model::{BrokerEpoch, ErrorCode, Instant, LeaderEpoch, NodeId, Offset, PartitionEpoch};
use replica::{
    Action, AlterPartition, AlteredPartition, BatchRange, Config, EpochEnd, FetchAnswer, FetchRequest,
    FetchState, FollowerFetch, LogView, PartitionState, QuestionId, Replica, ReplicaBroker,
};

/// The node on the bench.
pub const ME: i32 = 1;

pub struct Bench {
    pub replica: Replica,
    pub disk: Disk,
    pub now: Instant,
    /// What the metadata says.
    pub state: PartitionState,
    /// What was done since it was last asked for.
    done: Vec<String>,
    /// Whether flushes wait to be told to end.
    pub holds_flushes: bool,
    pub fetch: Option<FetchState>,
    pub question: QuestionId,
    pub asked: Option<AlterPartition>,
    /// What the next `Action::Append` takes.
    batches: Vec<Batch>,
    values: u64,
}

/// Replicas 1, 2, 3, all in sync; nobody leads.
pub fn three() -> PartitionState {
    let broker =
        |id| ReplicaBroker { id: NodeId(id), epoch: Some(BrokerEpoch(100 + i64::from(id))), is_active: true };
    PartitionState {
        leader: NodeId::NONE,
        leader_epoch: LeaderEpoch(0),
        partition_epoch: PartitionEpoch(0),
        replicas: vec![broker(1), broker(2), broker(3)],
        isr: vec![NodeId(1), NodeId(2), NodeId(3)],
        min_isr: 2,
    }
}

impl Bench {
    /// A log of batches of ten records in these epochs, all flushed.
    pub fn new(epochs: &[i32]) -> Self {
        let mut disk = Disk::default();
        for (at, epoch) in (0..).zip(epochs) {
            disk.append(batch(at * 10, at * 10 + 10, *epoch));
        }
        disk.begin_flush();
        disk.end_flush();
        Self::open(disk, 0)
    }

    pub fn open(disk: Disk, restored: i64) -> Self {
        let mut replica = Replica::new(Config::default(), NodeId(ME), Offset(restored), &disk);
        replica.handle_registered(BrokerEpoch(101));
        Self {
            replica,
            disk,
            now: Instant(0).plus(Duration::from_secs(1000)),
            state: three(),
            done: Vec::new(),
            holds_flushes: false,
            fetch: None,
            question: QuestionId(0),
            asked: None,
            batches: Vec::new(),
            values: 0,
        }
    }

    /// What was done since the last call.
    pub fn done(&mut self) -> Vec<String> {
        std::mem::take(&mut self.done)
    }

    /// Metadata comes in which this holds, too.
    pub fn metadata(&mut self, change: impl FnOnce(&mut PartitionState)) {
        change(&mut self.state);
        self.state.partition_epoch.0 += 1;
        self.replica.apply_metadata(self.now, &self.disk, self.state.clone());
        self.act();
    }

    pub fn led_by(&mut self, leader: i32, epoch: i32) {
        self.metadata(|state| {
            state.leader = NodeId(leader);
            state.leader_epoch = LeaderEpoch(epoch);
        });
    }

    pub fn pass(&mut self, time: Duration) {
        self.now = self.now.plus(time);
        self.replica.handle_tick(self.now, &self.disk);
        self.act();
    }

    /// This leader appends ten records.
    pub fn append(&mut self) -> Offset {
        let epoch = self.replica.leads().expect("it leads");
        let base = self.disk.log_end();
        self.disk.append(batch(base.0, base.0 + 10, epoch.0));
        self.replica.handle_log_changed(self.now, &self.disk);
        self.act();
        base.plus(10)
    }

    /// A flush of everything begins and ends.
    pub fn flush(&mut self) {
        self.disk.begin_flush();
        self.disk.end_flush();
        self.replica.handle_log_changed(self.now, &self.disk);
        self.act();
    }

    /// A follower fetches from this offset, in this leader's epoch.
    pub fn fetched_by(&mut self, follower: i32, offset: i64) {
        let fetch = self.follower_fetch(follower, offset);
        self.replica.handle_follower_fetch(self.now, &self.disk, &fetch);
        self.act();
    }

    pub fn follower_fetch(&self, follower: i32, offset: i64) -> FollowerFetch {
        let before = self.disk.at(Offset(offset - 1)).map(|batch| batch.epoch);
        FollowerFetch {
            replica: NodeId(follower),
            broker_epoch: Some(BrokerEpoch(100 + i64::from(follower))),
            log_start: Offset(0),
            request: FetchRequest {
                leader_epoch: self.replica.leads(),
                offset: Offset(offset),
                last_fetched_epoch: before,
            },
        }
    }

    /// The controller answers what it was asked last.
    pub fn altered(&mut self, answer: Result<(), ErrorCode>) {
        let asked = self.asked.clone().expect("it asked");
        let answer = answer.map(|()| AlteredPartition {
            leader_epoch: asked.leader_epoch,
            partition_epoch: PartitionEpoch(asked.partition_epoch.0 + 1),
            isr: asked.isr.iter().map(|member| member.id).collect(),
        });
        self.replica.handle_alter_partition_answer(self.now, &self.disk, asked.id, answer);
        self.act();
    }

    /// The leader answers the fetch that is open.
    pub fn answer(&mut self, answer: Answer) {
        let id = self.fetch.expect("it fetches").id;
        self.answer_to(id, answer);
    }

    pub fn answer_to(&mut self, id: QuestionId, answer: Answer) {
        let ranges: Vec<BatchRange> = answer.batches.iter().map(Batch::range).collect();
        let fetched = FetchAnswer {
            error: answer.error,
            high_watermark: Offset(answer.high_watermark),
            log_start: Offset(answer.log_start),
            diverging: answer
                .diverging
                .map(|(epoch, end)| EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }),
            batches: &ranges,
        };
        self.replica.handle_fetch_answer(self.now, &self.disk, id, &fetched);
        self.batches = answer.batches;
        self.act();
    }

    pub fn act(&mut self) {
        while let Some(action) = self.replica.poll_action() {
            self.done.push(described(&action));
            if self.carry_out(action) {
                self.replica.handle_log_changed(self.now, &self.disk);
            }
        }
    }

    /// Whether the log changed.
    fn carry_out(&mut self, action: Action) -> bool {
        match action {
            Action::BeginEpoch { epoch, start } => self.disk.begin_epoch(epoch, start),
            Action::Truncate(to) => self.disk.truncate(to),
            Action::RestartAt(start) => self.disk.restart_at(start),
            Action::AdvanceLogStart(to) => self.disk.advance_log_start(to),
            Action::Append { count } => self.batches.drain(..count).for_each(|batch| self.disk.append(batch)),
            Action::Flush if self.holds_flushes => return false,
            Action::Flush => {
                self.disk.begin_flush();
                self.disk.end_flush();
            }
            Action::Fetch(fetch) => {
                self.fetch = Some(fetch);
                return false;
            }
            Action::ListOffsets { id, .. } => {
                self.question = id;
                return false;
            }
            Action::AlterPartition(asked) => {
                self.asked = Some(asked);
                return false;
            }
            Action::HighWatermark(_) | Action::LostLeadership => return false,
        }
        true
    }
}

/// A Fetch answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub error: ErrorCode,
    pub high_watermark: i64,
    pub log_start: i64,
    pub diverging: Option<(i32, i64)>,
    pub batches: Vec<Batch>,
}

/// Records, and the high watermark.
pub fn records(batches: &[Batch], high_watermark: i64) -> Answer {
    Answer {
        error: ErrorCode::None,
        high_watermark,
        log_start: 0,
        diverging: None,
        batches: batches.to_vec(),
    }
}

pub fn diverging(epoch: i32, end: i64, high_watermark: i64) -> Answer {
    Answer { diverging: Some((epoch, end)), ..records(&[], high_watermark) }
}

pub fn refused(error: ErrorCode) -> Answer {
    Answer { error, ..records(&[], -1) }
}

pub fn batch(base: i64, end: i64, epoch: i32) -> Batch {
    Batch { base: Offset(base), end: Offset(end), epoch: LeaderEpoch(epoch), value: 0 }
}

fn described(action: &Action) -> String {
    match action {
        Action::BeginEpoch { epoch, start } => format!("epoch {epoch} begins at {start}"),
        Action::Flush => "flush".to_owned(),
        Action::Truncate(to) => format!("truncate to {to}"),
        Action::RestartAt(start) => format!("restart at {start}"),
        Action::Append { count } => format!("append {count}"),
        Action::AdvanceLogStart(to) => format!("log starts at {to}"),
        Action::Fetch(fetch) => match fetch.last_fetched_epoch {
            Some(epoch) => format!("fetch {} after epoch {epoch}", fetch.offset),
            None => format!("fetch {}", fetch.offset),
        },
        Action::ListOffsets { .. } => "list offsets".to_owned(),
        Action::AlterPartition(asked) => {
            let isr: Vec<_> = asked.isr.iter().map(|member| member.id.0).collect();
            format!("ask for ISR {isr:?}")
        }
        Action::HighWatermark(offset) => format!("committed {offset}"),
        Action::LostLeadership => "leads no more".to_owned(),
    }
}
