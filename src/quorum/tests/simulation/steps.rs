//! Steps that scenarios are told in.

use std::time::Duration;

use model::{LeaderEpoch, Offset};
use quorum::RoleName;

use super::network::Message;
use super::world::{Verdict, World};

/// More than any timeout.
pub const LONG: Duration = Duration::from_secs(20);

impl World {
    /// All messages pass again.
    pub fn no_rule(&mut self) {
        self.set_rule(|_| Verdict::Pass);
    }

    /// Messages that `wanted` picks are dropped from now on.
    pub fn drop_all(&mut self, wanted: impl Fn(&Message) -> bool + 'static) {
        self.set_rule(move |message| if wanted(message) { Verdict::Drop } else { Verdict::Pass });
    }

    /// Nobody else's campaigns are heard until this node leads.
    pub fn elect(&mut self, at: usize) {
        self.elect_but(at, |_| false);
    }

    /// The same, and messages that `dropped` picks are lost, then and later.
    pub fn elect_but(&mut self, at: usize, dropped: impl Fn(&Message) -> bool + Clone + 'static) {
        let also = dropped.clone();
        self.drop_all(move |message| (message.is_campaign() && message.from != at) || also(message));
        if self.role(at) != Some(RoleName::Leader) {
            self.step_down(at);
        }
        let leads = move |world: &Self| world.role(at) == Some(RoleName::Leader);
        assert!(self.run_until(LONG, leads), "node {at} was not elected: {}", self.describe());
        self.drop_all(dropped);
    }

    // Whoever else leads and can be reached by the one to be elected makes room.
    fn step_down(&mut self, for_whom: usize) {
        for at in 0..self.nodes.len() {
            let reached = !self.network.is_cut(for_whom, at) && self.is_up(at);
            if reached && self.role(at) == Some(RoleName::Leader) {
                self.resign(at);
            }
        }
    }

    /// The node leads and is elected, and what it has is committed everywhere that it reaches.
    pub fn settle(&mut self) {
        let quiet = |world: &Self| {
            let leaders = world.active_leaders();
            leaders.len() == 1 && world.watermark(leaders[0]) == world.end(leaders[0])
        };
        assert!(self.run_until(LONG, quiet), "it does not settle: {}", self.describe());
        self.run_for(Duration::from_millis(300));
    }

    /// `voters` nodes, of which the first leads and has `batches` batches committed.
    pub fn led_by_first(&mut self, batches: usize) {
        self.elect(0);
        self.settle();
        self.append_many(0, batches);
        self.settle();
    }

    pub fn append_many(&mut self, at: usize, batches: usize) {
        for _ in 0..batches {
            assert!(self.append(at, 2), "node {at} takes nothing: {}", self.describe());
        }
    }

    pub fn isolate(&mut self, at: usize) {
        let nodes = self.nodes.len();
        self.network.isolate(at, nodes);
    }

    pub fn end(&self, at: usize) -> Offset {
        self.quorum(at).log().end()
    }

    pub fn watermark(&self, at: usize) -> Offset {
        self.quorum(at).high_watermark()
    }

    pub fn epoch(&self, at: usize) -> LeaderEpoch {
        self.quorum(at).epoch()
    }

    pub fn hold_flushes(&mut self, at: usize) {
        self.nodes[at].flushes_held = true;
    }
}

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}
