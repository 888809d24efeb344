//! The network between nodes: it loses, doubles, delays and reorders, and is cut in one direction at a time.

use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::Duration;

use model::LeaderEpoch;
use quorum::{Request, RequestId, Response};

use super::chance::Chance;
use super::disk::{Entry, SnapshotFile};

#[derive(Clone, Debug)]
pub struct Message {
    pub from: usize,
    pub to: usize,
    pub body: Body,
}

#[derive(Clone, Debug)]
pub enum Body {
    /// Asked by the `life`-th process of the sender.
    Request { life: u64, id: RequestId, request: Request },
    /// For the `life`-th process of the receiver.
    Response { life: u64, id: RequestId, response: Response, payload: Payload },
    /// For the same: there will be no answer.
    Failure { life: u64, id: RequestId },
}

impl Message {
    pub fn is_vote(&self) -> bool {
        matches!(&self.body, Body::Request { request: Request::Vote(vote), .. } if !vote.pre_vote)
    }

    pub fn is_campaign(&self) -> bool {
        matches!(&self.body, Body::Request { request: Request::Vote(_), .. })
    }

    pub fn is_vote_answer(&self) -> bool {
        matches!(&self.body, Body::Response { response: Response::Vote(_), .. })
    }

    pub fn is_fetch(&self) -> bool {
        matches!(&self.body, Body::Request { request: Request::Fetch(_), .. })
    }

    /// An answer that says where logs diverge.
    pub fn is_diverging(&self) -> bool {
        matches!(&self.body, Body::Response { response: Response::Fetch(fetch), .. } if fetch.diverging.is_some())
    }

    pub fn brings(&self, epoch: LeaderEpoch) -> bool {
        matches!(&self.body, Body::Response { payload, .. } if payload.entries.iter().any(|entry| entry.epoch == epoch))
    }
}

/// The bytes of an answer.
#[derive(Clone, Debug, Default)]
pub struct Payload {
    pub entries: Vec<Rc<Entry>>,
    pub file: Option<Rc<SnapshotFile>>,
}

pub struct Network {
    pub lost_per_mille: u64,
    pub doubled_per_mille: u64,
    /// In microseconds: at least, and at most.
    pub delay_micros: (u64, u64),
    /// How many are much slower than that.
    pub slow_per_mille: u64,
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

    pub fn random(chance: &mut Chance) -> Self {
        Self {
            lost_per_mille: chance.below(60),
            doubled_per_mille: chance.below(60),
            delay_micros: (chance.between(100, 2_000), chance.between(2_000, 30_000)),
            slow_per_mille: chance.below(30),
            cuts: BTreeSet::new(),
        }
    }

    pub fn cut(&mut self, from: usize, to: usize) {
        self.cuts.insert((from, to));
    }

    /// Nothing goes in or out.
    pub fn isolate(&mut self, node: usize, of: usize) {
        for other in 0..of {
            self.cut(node, other);
            self.cut(other, node);
        }
    }

    pub fn is_cut(&self, from: usize, to: usize) -> bool {
        self.cuts.contains(&(from, to))
    }

    pub fn heal(&mut self) {
        self.cuts.clear();
    }

    pub fn heal_one(&mut self, chance: &mut Chance) {
        let cuts: Vec<_> = self.cuts.iter().copied().collect();
        if let Some(cut) = chance.pick(&cuts) {
            self.cuts.remove(&cut);
        }
    }

    /// After how long each copy of a message arrives.
    pub fn arrivals(&mut self, message: &Message, chance: &mut Chance) -> Vec<Duration> {
        if self.is_cut(message.from, message.to) || chance.per_mille(self.lost_per_mille) {
            return Vec::new();
        }
        let copies = if chance.per_mille(self.doubled_per_mille) { 2 } else { 1 };
        (0..copies).map(|_| self.delay(chance)).collect()
    }

    fn delay(&self, chance: &mut Chance) -> Duration {
        let (least, most) = self.delay_micros;
        let stretch = if chance.per_mille(self.slow_per_mille) { chance.between(5, 100) } else { 1 };
        Duration::from_micros(chance.between(least, most) * stretch)
    }
}
