//! A node: its disk, which outlives its processes, and the process that runs.

use std::collections::BTreeMap;
use std::time::Duration;

use model::{BrokerEpoch, Instant, LeaderEpoch, NodeId, Offset};
use replica::{FetchState, LogView, PartitionState, QuestionId, Replica};

use super::disk::{Batch, Disk};

pub struct Node {
    pub id: NodeId,
    pub disk: Disk,
    /// Which of its processes runs, or ran last.
    pub life: u64,
    pub process: Option<Process>,
    /// The metadata that it saw last, in any life.
    pub metadata: Option<PartitionState>,
    /// Whether its last process ended in order.
    pub ended_well: bool,
    /// Recovery found less than was known to be committed, and the controller has not heard of it yet.
    pub lost_records: bool,
    /// Whether its process, as it started, had all that earlier ones promised.
    pub holds_all: bool,
    /// It stands still.
    pub paused: bool,
    /// At least, and at most.
    pub flush_micros: (u64, u64),
    pub flushes_held: bool,
    /// Its disk was replaced since it registered.
    pub lost_disk: bool,
    /// The version of the metadata that it saw last.
    pub version: i64,
    /// Metadata comes no sooner than this, so that it keeps its order.
    pub metadata_at: Instant,
    /// How far its clock is ahead.
    pub ahead: Duration,
    /// When the controller heard of it last.
    pub heard_at: Instant,
    /// How much longer than other messages metadata takes, in microseconds.
    pub metadata_lag: u64,
}

pub struct Process {
    pub replica: Replica,
    pub broker_epoch: Option<BrokerEpoch>,
    /// The epoch that it was last seen to lead.
    pub led: Option<LeaderEpoch>,
    /// Up to where its high watermark was looked at.
    pub exposed: Offset,
    pub tick_at: Option<Instant>,
    /// What is in flight.
    pub questions: BTreeMap<QuestionId, Question>,
    /// Which connection to the controller it uses.
    pub connection: u64,
    /// The batches of the answer that was just handed in.
    pub fetched: Vec<Batch>,
    pub parked: Vec<Parked>,
    pub waits: Vec<Wait>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    Leader,
    Controller,
}

/// A Fetch that waits for more.
#[derive(Clone, Debug)]
pub struct Parked {
    pub from: usize,
    pub replica: NodeId,
    pub life: u64,
    pub fetch: FetchState,
    pub broker_epoch: BrokerEpoch,
}

/// A client that waits until its batch is committed.
#[derive(Clone, Copy, Debug)]
pub struct Wait {
    pub epoch: LeaderEpoch,
    pub base: Offset,
    pub end: Offset,
    pub value: u64,
}

impl Node {
    pub fn new(id: NodeId) -> Self {
        Self {
            id,
            disk: Disk::default(),
            life: 0,
            process: None,
            metadata: None,
            ended_well: false,
            lost_records: false,
            holds_all: true,
            paused: false,
            flush_micros: (200, 2_000),
            flushes_held: false,
            lost_disk: false,
            version: 0,
            metadata_at: Instant(0),
            ahead: Duration::ZERO,
            heard_at: Instant(0),
            metadata_lag: 0,
        }
    }

    pub fn describe(&self) -> String {
        let (id, disk) = (self.id, &self.disk);
        let log = format!("log {}..{} counted {}", disk.log_start(), disk.log_end(), disk.counted_end());
        let Some(process) = &self.process else { return format!("{id} down, {log}\n") };
        let replica = &process.replica;
        let isr: Vec<_> = replica.isr().into_iter().flatten().collect();
        let maximal: Vec<_> = replica.maximal_isr().into_iter().flatten().collect();
        let (leads, watermark, paused) = (replica.leads(), replica.high_watermark(), self.paused);
        format!(
            "{id} leads {leads:?} watermark {watermark} {log} isr {isr:?} of {maximal:?} paused {paused}\n"
        )
    }
}
