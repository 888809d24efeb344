//! Steps that scenarios are told in. Nodes are numbered from 0 here.

use std::time::Duration;

use model::{LeaderEpoch, NodeId, Offset};
use replica::LogView;

use super::Mutant;
use super::network::Message;
use super::world::{Verdict, World};

/// More than any timeout.
pub const LONG: Duration = Duration::from_secs(20);

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

impl World {
    /// Three replicas, min ISR 2, all in sync, led by the first, with so many batches of
    /// one record committed.
    pub fn three(mutant: Option<Mutant>, batches: usize) -> Self {
        let mut world = Self::new(1, 3, 3, mutant);
        world.batch_most = 1;
        world.settle();
        world.lead(0);
        world.append_many(0, batches);
        world.settle();
        world
    }

    /// This node is made the leader, which is in sync.
    pub fn lead(&mut self, at: usize) {
        let id = self.nodes[at].id;
        for _ in 0..3 {
            if self.controller.leader != id {
                self.control(super::controller::Controller::move_leader);
            }
        }
        assert_eq!(self.controller.leader, id, "{}", self.describe());
        let leads = move |world: &Self| world.leads(at);
        assert!(self.run_until(LONG, leads), "node {at} does not lead: {}", self.describe());
    }

    /// Whether the node knows that it leads.
    pub fn leads(&self, at: usize) -> bool {
        self.is_up(at) && self.replica(at).leads() == Some(self.controller.leader_epoch)
    }

    pub fn append_many(&mut self, at: usize, batches: usize) {
        for _ in 0..batches {
            assert!(self.append(at, false), "node {at} takes nothing: {}", self.describe());
        }
    }

    /// All replicas that run are in sync and have everything, committed.
    pub fn settle(&mut self) {
        assert!(self.run_until(LONG, Self::is_quiet), "it does not settle: {}", self.describe());
    }

    pub fn is_quiet(&self) -> bool {
        let Some(leader) = self.leader().filter(|at| self.leads(*at)) else { return false };
        let end = self.end(leader);
        let is_there = |id: &NodeId| {
            let at = self.index(*id);
            !self.is_up(at)
                || (self.controller.isr.contains(id) && self.end(at) == end && self.watermark(at) == end)
        };
        self.controller.replicas.iter().all(is_there)
    }

    pub fn end(&self, at: usize) -> Offset {
        self.nodes[at].disk.log_end()
    }

    pub fn watermark(&self, at: usize) -> Offset {
        self.replica(at).high_watermark()
    }

    pub fn epoch(&self) -> LeaderEpoch {
        self.controller.leader_epoch
    }

    pub fn in_sync(&self) -> Vec<i32> {
        self.controller.isr.iter().map(|id| id.0).collect()
    }

    /// Nothing goes in or out, to the controller neither.
    pub fn isolate(&mut self, at: usize) {
        for other in (0..self.nodes.len()).chain([super::network::CONTROLLER]) {
            self.network.cut(at, other);
            self.network.cut(other, at);
        }
    }

    /// Two nodes do not hear each other; both hear the controller.
    pub fn part(&mut self, one: usize, other: usize) {
        self.network.cut(one, other);
        self.network.cut(other, one);
    }

    pub fn hold_flushes(&mut self, at: usize) {
        self.nodes[at].flushes_held = true;
    }

    /// All messages pass again.
    pub fn no_rule(&mut self) {
        self.set_rule(|_| Verdict::Pass);
    }

    pub fn drop_all(&mut self, wanted: impl Fn(&Message) -> bool + 'static) {
        self.set_rule(move |message| if wanted(message) { Verdict::Drop } else { Verdict::Pass });
    }

    pub fn hold_all(&mut self, wanted: impl Fn(&Message) -> bool + 'static) {
        self.set_rule(move |message| if wanted(message) { Verdict::Hold } else { Verdict::Pass });
    }

    /// The third leaves the ISR: the leader does not hear it, and asks for that.
    pub fn third_lags(&mut self) {
        self.part(0, 2);
        self.append_many(0, 1);
        let is_out = |world: &Self| world.in_sync() == [1, 2] && world.knows_isr(0, 2);
        assert!(self.run_until(LONG, is_out), "{}", self.describe());
    }

    /// Whether the node leads and takes so many for in sync.
    pub fn knows_isr(&self, at: usize, size: usize) -> bool {
        self.replica(at).isr().is_some_and(|isr| isr.count() == size)
    }

    /// The first leads, and keeps records that nobody else has; the second is made the leader, and the first, which is
    /// still in sync, hears nothing more of records until fetches pass again.
    pub fn with_a_tail_on_the_first(&mut self) {
        self.drop_all(Message::is_fetch);
        self.append_many(0, 4);
        self.run_for(millis(50));
        self.lead(1);
    }

    /// The first leads, is cut off with records that nobody else has, and loses its place; the second leads.
    pub fn with_a_lost_leader(&mut self) {
        self.isolate(0);
        self.append_many(0, 4);
        let is_led = |world: &Self| world.in_sync() == [2, 3] && world.leads(1);
        assert!(self.run_until(LONG, is_led), "{}", self.describe());
    }
}
