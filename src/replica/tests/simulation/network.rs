//! The network between nodes: it loses, doubles, delays and reorders, and is cut in one direction at a time.
//!
//! What nodes say to the controller goes the same way; what the controller publishes keeps its order.

use std::collections::BTreeSet;
use std::time::Duration;

use fastrand::Rng;
use model::{BrokerEpoch, ErrorCode, LeaderEpoch, Offset};
use replica::{AlterPartition, AlteredPartition, EpochEnd, FetchState, LeaderOffsets, QuestionId};

use super::disk::Batch;

/// The controller's place in the network.
pub const CONTROLLER: usize = 1000;

#[derive(Clone, Debug)]
pub struct Message {
    pub from: usize,
    pub to: usize,
    /// Questions: of which process of the sender. Answers: for which process of the receiver.
    pub life: u64,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    Fetch {
        fetch: FetchState,
        broker_epoch: BrokerEpoch,
    },
    Fetched {
        id: QuestionId,
        answer: Answer,
    },
    ListOffsets {
        id: QuestionId,
        leader_epoch: LeaderEpoch,
    },
    Offsets {
        id: QuestionId,
        offsets: Option<LeaderOffsets>,
    },
    /// On the `connection`-th connection of its sender to the controller.
    Alter {
        connection: u64,
        broker_epoch: BrokerEpoch,
        asked: AlterPartition,
    },
    Altered {
        id: QuestionId,
        answer: Result<AlteredPartition, ErrorCode>,
    },
}

/// A Fetch answer of one partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub error: ErrorCode,
    pub high_watermark: Offset,
    pub log_start: Offset,
    pub diverging: Option<EpochEnd>,
    pub batches: Vec<Batch>,
}

impl Message {
    pub fn is_fetch(&self) -> bool {
        matches!(self.body, Body::Fetch { .. })
    }

    pub fn is_answer(&self) -> bool {
        matches!(self.body, Body::Fetched { .. })
    }

    pub fn is_alter(&self) -> bool {
        matches!(self.body, Body::Alter { .. })
    }

    pub fn is_altered(&self) -> bool {
        matches!(self.body, Body::Altered { .. })
    }

    /// An answer that says where logs diverge.
    pub fn is_diverging(&self) -> bool {
        matches!(&self.body, Body::Fetched { answer, .. } if answer.diverging.is_some())
    }
}

pub struct Network {
    pub lost_per_mille: u32,
    pub doubled_per_mille: u32,
    /// In microseconds: at least, and at most.
    pub delay_micros: (u64, u64),
    /// How many are much slower than that.
    pub slow_per_mille: u32,
    cuts: BTreeSet<(usize, usize)>,
}

impl Network {
    /// One millisecond, and nothing is lost.
    pub fn calm() -> Self {
        Self {
            lost_per_mille: 0,
            doubled_per_mille: 0,
            delay_micros: (1_000, 1_001),
            slow_per_mille: 0,
            cuts: BTreeSet::new(),
        }
    }

    pub fn random(rng: &mut Rng) -> Self {
        Self {
            lost_per_mille: rng.u32(0..60),
            doubled_per_mille: rng.u32(0..60),
            delay_micros: (rng.u64(100..2_000), rng.u64(2_000..30_000)),
            slow_per_mille: rng.u32(0..30),
            cuts: BTreeSet::new(),
        }
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts.contains(&(from, to))
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    /// After how long each copy of a message arrives.
    pub fn arrivals(&self, message: &Message, rng: &mut Rng) -> Vec<Duration> {
        if self.is_cut(message.from, message.to) || rng.u32(0..1000) < self.lost_per_mille {
            return Vec::new();
        }
        let copies = if rng.u32(0..1000) < self.doubled_per_mille { 2 } else { 1 };
        (0..copies).map(|_| self.delay(rng)).collect()
    }

    pub fn delay(&self, rng: &mut Rng) -> Duration {
        let stretch = if rng.u32(0..1000) < self.slow_per_mille { rng.u64(5..100) } else { 1 };
        Duration::from_micros(rng.u64(self.delay_micros.0..self.delay_micros.1) * stretch)
    }
}
