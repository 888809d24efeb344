//! Nodes, a controller, a network and time: one loop of events.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use fastrand::Rng;
use model::{BrokerEpoch, Instant, NodeId};
use replica::{AlterPartition, Config, LogView, PartitionState, QuestionId, Replica};

use super::controller::Controller;
use super::network::{Message, Network};
use super::node::{Node, Process};
use super::oracle::Oracle;
use super::{Mutant, with_mutant};

/// What happens to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Until it is released.
    Hold,
}

#[derive(Clone, Debug)]
pub enum Event {
    Tick {
        node: usize,
        life: u64,
    },
    Arrival(Message),
    Flushed {
        node: usize,
        life: u64,
    },
    Metadata {
        node: usize,
        life: u64,
        version: i64,
        state: PartitionState,
    },
    TimedOut {
        node: usize,
        life: u64,
        id: QuestionId,
    },
    Unpark {
        node: usize,
        life: u64,
        id: QuestionId,
    },
    /// The controller looks at who is there.
    Sweep,
}

#[derive(Debug)]
struct Planned {
    at: Instant,
    order: u64,
    event: Event,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Planned {}

impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Planned {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

/// A leader's request to a controller that is not simulated here.
#[derive(Clone, Debug)]
pub struct Request {
    pub from: usize,
    pub life: u64,
    /// The connection that it came in on.
    pub connection: u64,
    pub broker_epoch: BrokerEpoch,
    pub asked: AlterPartition,
}

/// How often the controller looks at who is there.
const SWEEP: Duration = Duration::from_millis(50);
/// A broker that was not heard of for so long is fenced.
const SESSION: Duration = Duration::from_secs(2);

pub struct World {
    pub now: Instant,
    pub nodes: Vec<Node>,
    pub controller: Controller,
    /// The version that everybody was told of.
    published: i64,
    pub network: Network,
    pub oracle: Oracle,
    pub rng: Rng,
    pub mutant: Option<Mutant>,
    pub config: Config,
    /// The controller takes AlterPartition from the latest connection of a broker only.
    pub fences_connections: bool,
    pub connections: BTreeMap<(usize, u64), u64>,
    /// The controller is another: what it would say is done from outside, and `controller` mirrors what it has committed.
    pub is_mirror: bool,
    /// Requests to it.
    pub requests: Vec<Request>,
    rule: Box<dyn Fn(&Message) -> Verdict>,
    held: Vec<Message>,
    queue: BinaryHeap<Reverse<Planned>>,
    missed: Vec<Event>,
    planned: u64,
    pub events: u64,
    pub values: u64,
    /// The most records that a batch gets.
    pub batch_most: i64,
    pub faults: BTreeMap<&'static str, u64>,
    hash: DefaultHasher,
}

impl World {
    /// Nodes 1 to `nodes`, of which the first `replicas` have the partition. All run, and the first leads.
    pub fn new(seed: u64, nodes: usize, replicas: usize, mutant: Option<Mutant>) -> Self {
        let ids: Vec<NodeId> = (1..).take(nodes).map(NodeId).collect();
        let config = Config { replica_lag_time_max: Duration::from_secs(3), ..Config::default() };
        let mut world = Self {
            now: Instant(0).plus(Duration::from_secs(1)),
            nodes: ids.iter().copied().map(Node::new).collect(),
            controller: Controller::new(ids[..replicas].to_vec(), 2),
            published: 0,
            network: Network::calm(),
            oracle: Oracle::default(),
            rng: Rng::with_seed(seed),
            mutant,
            config,
            fences_connections: true,
            connections: BTreeMap::new(),
            is_mirror: false,
            requests: Vec::new(),
            rule: Box::new(|_| Verdict::Pass),
            held: Vec::new(),
            queue: BinaryHeap::new(),
            missed: Vec::new(),
            planned: 0,
            events: 0,
            values: 0,
            batch_most: 4,
            faults: BTreeMap::new(),
            hash: DefaultHasher::new(),
        };
        world.plan(world.now, Event::Sweep);
        for at in 0..nodes {
            world.start(at);
        }
        world
    }

    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    pub fn replica(&self, at: usize) -> &Replica {
        &self.nodes[at].process.as_ref().expect("the node runs").replica
    }

    pub fn is_up(&self, at: usize) -> bool {
        self.nodes[at].process.is_some()
    }

    /// The time as this node sees it.
    pub fn clock(&self, at: usize) -> Instant {
        self.now.plus(self.nodes[at].ahead)
    }

    pub fn index(&self, id: NodeId) -> usize {
        self.nodes.iter().position(|node| node.id == id).expect("a node of this world")
    }

    /// Who leads for the controller.
    pub fn leader(&self) -> Option<usize> {
        self.nodes.iter().position(|node| node.id == self.controller.leader)
    }

    // ---- life and death

    pub fn start(&mut self, at: usize) {
        assert!(!self.is_up(at), "it runs already");
        let disk = &self.nodes[at].disk;
        let kept = !disk.caches && disk.checkpoint <= disk.log_end();
        let node = &mut self.nodes[at];
        node.lost_records |= !kept && !node.ended_well;
        node.holds_all = !node.lost_disk && !node.lost_records;
        node.disk.checkpoint = node.disk.checkpoint.min(node.disk.log_end());
        self.open(at, None);
        let now = self.clock(at);
        let node = &mut self.nodes[at];
        // What a node knows first is what it knew last.
        if let (Some(process), Some(metadata)) = (node.process.as_mut(), node.metadata.clone()) {
            process.replica.apply_metadata(now, &node.disk, metadata);
        }
        self.act(at);
    }

    /// A replica begins, in a new process or, where the partition comes back, in the old one.
    pub(super) fn open(&mut self, at: usize, broker_epoch: Option<BrokerEpoch>) {
        let (config, mutant) = (self.config, self.mutant);
        let node = &mut self.nodes[at];
        node.life += 1;
        let mut replica = Replica::new(config, node.id, node.disk.checkpoint, &node.disk);
        if let Some(mutant) = mutant {
            replica = with_mutant(replica, mutant);
        }
        if let Some(epoch) = broker_epoch {
            replica.handle_registered(epoch);
        }
        let exposed = replica.high_watermark();
        node.process = Some(Process {
            replica,
            broker_epoch,
            led: None,
            exposed,
            tick_at: None,
            questions: BTreeMap::new(),
            connection: 0,
            fetched: Vec::new(),
            parked: Vec::new(),
            waits: Vec::new(),
        });
    }

    /// The process ends at once; the machine goes on.
    pub fn kill(&mut self, at: usize) {
        self.nodes[at].process = None;
        self.nodes[at].ended_well = false;
        self.nodes[at].disk.kill();
    }

    /// The machine loses power.
    pub fn lose_power(&mut self, at: usize) {
        self.kill(at);
        self.nodes[at].disk.lose_power(&mut self.rng);
    }

    /// Its disk is replaced by an empty one.
    pub fn replace_disk(&mut self, at: usize) {
        if self.is_up(at) {
            self.kill(at);
        }
        self.nodes[at].disk.replace();
        self.nodes[at].metadata = None;
        self.nodes[at].lost_disk = true;
    }

    /// Controlled shutdown.
    pub fn stop(&mut self, at: usize) {
        self.controller.shut_down(self.nodes[at].id);
        self.publish();
        self.checkpoint(at);
        self.kill(at);
        self.nodes[at].disk.flush_all();
        self.nodes[at].ended_well = true;
    }

    pub fn checkpoint(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let Some(process) = &node.process {
            node.disk.checkpoint = process.replica.high_watermark();
        }
    }

    // ---- what happens outside

    /// A client's records reach this node. False where it takes none.
    pub fn append(&mut self, at: usize, acks_all: bool) -> bool {
        let Some(process) = self.nodes[at].process.as_ref() else { return false };
        let Ok(epoch) = process.replica.check_append(acks_all) else { return false };
        self.values += 1;
        let count = self.rng.i64(1..=self.batch_most);
        self.write(at, epoch, count, self.values, acks_all);
        true
    }

    /// A client's batch of so many records reaches the leader.
    pub fn batch_of(&mut self, at: usize, count: i64) {
        let epoch = self.replica(at).leads().expect("it leads");
        self.values += 1;
        self.write(at, epoch, count, self.values, false);
    }

    /// Changes the controller's mind.
    pub fn control(&mut self, change: impl FnOnce(&mut Controller)) {
        change(&mut self.controller);
        self.publish();
    }

    /// All nodes that run and may hear of it are told what changed.
    pub fn publish(&mut self) {
        if self.published == self.controller.version {
            return;
        }
        self.published = self.controller.version;
        self.controller.check();
        self.oracle.knows_all &= !self.controller.elected_uncleanly;
        for at in 0..self.nodes.len() {
            self.tell(at);
        }
        self.check();
    }

    fn tell(&mut self, at: usize) {
        if self.is_mirror {
            return;
        }
        let delay = self.network.delay(&mut self.rng) + Duration::from_micros(self.nodes[at].metadata_lag);
        let (now, version, state) = (self.now, self.controller.version, self.controller.image());
        let node = &mut self.nodes[at];
        if node.process.as_ref().is_none_or(|process| process.broker_epoch.is_none()) {
            return;
        }
        node.metadata_at = node.metadata_at.max(now.plus(delay));
        let (when, life) = (node.metadata_at, node.life);
        self.plan(when, Event::Metadata { node: at, life, version, state });
    }

    // Registers, unfences and fences, as heartbeats would.
    fn sweep(&mut self) {
        if self.is_mirror {
            return;
        }
        for at in 0..self.nodes.len() {
            if self.is_heard(at) {
                self.nodes[at].heard_at = self.now;
                if self.rng.u8(0..20) == 0 {
                    self.checkpoint(at);
                }
                self.keep_registered(at);
            } else {
                self.miss(at);
            }
        }
        self.publish();
    }

    fn is_heard(&self, at: usize) -> bool {
        let node = &self.nodes[at];
        node.process.is_some() && !node.paused && !self.network.is_cut(at, super::network::CONTROLLER)
    }

    pub fn keep_registered(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        let Some(process) = node.process.as_mut() else { return };
        let Some(epoch) = process.broker_epoch else {
            node.lost_disk = false;
            node.lost_records = false;
            node.version = 0;
            let epoch = self.controller.register(node.id, node.holds_all);
            process.broker_epoch = Some(epoch);
            process.replica.handle_registered(epoch);
            return;
        };
        let (is_told, seen) = (node.metadata_at > self.now, node.version);
        // It has seen its own registration.
        if seen >= epoch.0 {
            self.controller.unfence(node.id, epoch);
        }
        if seen < self.controller.version && !is_told {
            self.tell(at);
        }
    }

    // A closed connection is noticed sooner than silence.
    fn miss(&mut self, at: usize) {
        let node = &self.nodes[at];
        let patience = if node.process.is_none() { Duration::from_millis(250) } else { SESSION };
        let registered = self.controller.brokers.get(&node.id).map(|broker| broker.epoch);
        if let Some(epoch) = registered
            && self.now.since(node.heard_at) >= patience
        {
            self.controller.fence(node.id, epoch);
        }
    }

    /// Nodes that stand still go on, late.
    pub fn resume(&mut self) {
        for node in &mut self.nodes {
            node.paused = false;
        }
        for event in std::mem::take(&mut self.missed) {
            self.plan(self.now, event);
        }
    }

    /// The disk flushes on its own, without having been asked.
    pub fn flush_unasked(&mut self, at: usize) {
        self.nodes[at].disk.begin_flush();
    }

    pub fn release_flushes(&mut self, at: usize) {
        self.nodes[at].flushes_held = false;
        if self.nodes[at].disk.is_flushing() {
            self.plan_flush_end(at);
        }
    }

    pub(super) fn plan_flush_end(&mut self, at: usize) {
        let (least, most) = self.nodes[at].flush_micros;
        let done = self.now.plus(Duration::from_micros(self.rng.u64(least..=most)));
        let life = self.nodes[at].life;
        self.plan(done, Event::Flushed { node: at, life });
    }

    // ---- time

    pub fn run_for(&mut self, after: Duration) {
        let end = self.now.plus(after);
        while self.queue.peek().is_some_and(|Reverse(planned)| planned.at <= end) {
            self.step();
        }
        self.now = end;
    }

    /// Runs until something holds. False where it still does not after `most`.
    pub fn run_until(&mut self, most: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let end = self.now.plus(most);
        while !holds(self) {
            if self.now > end {
                return false;
            }
            self.step();
        }
        true
    }

    /// The next event.
    pub fn step(&mut self) {
        let Reverse(planned) = self.queue.pop().expect("the controller always looks again");
        self.now = self.now.max(planned.at);
        self.events += 1;
        self.now.hash(&mut self.hash);
        if planned.event.node().is_some_and(|node| self.nodes[node].paused) {
            return self.missed.push(planned.event);
        }
        match planned.event {
            Event::Tick { node, life } => self.tick(node, life),
            Event::Arrival(message) => self.arrive(message),
            Event::Flushed { node, life } => self.flushed(node, life),
            Event::Metadata { node, life, version, state } => self.learn(node, life, version, state),
            Event::TimedOut { node, life, id } => self.time_out(node, life, id),
            Event::Unpark { node, life, id } => self.unpark(node, life, id),
            Event::Sweep => {
                self.plan(self.now.plus(SWEEP), Event::Sweep);
                self.sweep();
            }
        }
    }

    pub(super) fn plan(&mut self, at: Instant, event: Event) {
        self.planned += 1;
        self.queue.push(Reverse(Planned { at, order: self.planned, event }));
    }

    // ---- messages

    pub(super) fn post(&mut self, message: Message) {
        match (self.rule)(&message) {
            Verdict::Pass => self.carry(message),
            Verdict::Drop => (),
            Verdict::Hold => self.held.push(message),
        }
    }

    /// From now on messages are treated so.
    pub fn set_rule(&mut self, rule: impl Fn(&Message) -> Verdict + 'static) {
        self.rule = Box::new(rule);
    }

    /// Held messages that `wanted` picks go on their way.
    pub fn release(&mut self, wanted: impl Fn(&Message) -> bool) {
        let (released, held) = std::mem::take(&mut self.held).into_iter().partition(wanted);
        self.held = held;
        let released: Vec<Message> = released;
        for message in released {
            self.carry(message);
        }
    }

    fn carry(&mut self, message: Message) {
        for after in self.network.arrivals(&message, &mut self.rng) {
            self.plan(self.now.plus(after), Event::Arrival(message.clone()));
        }
    }

    pub(super) fn note(&mut self, from: usize, to: usize) {
        (from, to).hash(&mut self.hash);
    }

    // ---- rules

    /// What must hold between all, after every event that could break it.
    pub fn check(&self) {
        let (isr, elr) = (&self.controller.isr, &self.controller.elr);
        let may_lead = |node: &&Node| isr.contains(&node.id) || elr.contains(&node.id);
        for node in self.nodes.iter().filter(may_lead).filter(|node| !node.lost_disk) {
            let lacks = self.oracle.at_risk(&node.disk);
            assert!(
                lacks.is_none(),
                "{} may be elected and lacks the committed {lacks:?}\n{}",
                node.id,
                self.describe()
            );
        }
        self.check_maximal();
    }

    fn check_maximal(&self) {
        let Some(at) = self.leader() else { return };
        let Some(process) = self.nodes[at].process.as_ref() else { return };
        let replica = &process.replica;
        if replica.leads() != Some(self.controller.leader_epoch) {
            return;
        }
        let (Some(isr), Some(maximal)) = (replica.isr(), replica.maximal_isr()) else { return };
        let min_isr = replica.metadata().min_isr.min(replica.metadata().replicas.len());
        let maximal: Vec<NodeId> = maximal.collect();
        let is_superset =
            self.controller.isr.iter().chain(&self.controller.elr).all(|id| maximal.contains(id));
        assert!(
            isr.count() < min_isr || is_superset,
            "the leader counts on {maximal:?}, the controller on more\n{}",
            self.describe()
        );
    }

    /// All nodes in a line each, for a violation's text.
    pub fn describe(&self) -> String {
        let c = &self.controller;
        let mut text = format!(
            "at {} ms, committed {}; replicas {:?} isr {:?} elr {:?} leader {} epoch {} partition epoch {} min {}\n",
            self.now.0 / 1_000_000,
            self.oracle.committed_end(),
            c.replicas,
            c.isr,
            c.elr,
            c.leader,
            c.leader_epoch,
            c.partition_epoch,
            c.min_isr,
        );
        for node in &self.nodes {
            text += &node.describe();
        }
        text
    }
}

impl Event {
    fn node(&self) -> Option<usize> {
        match self {
            Self::Tick { node, .. }
            | Self::Flushed { node, .. }
            | Self::Metadata { node, .. }
            | Self::TimedOut { node, .. }
            | Self::Unpark { node, .. } => Some(*node),
            Self::Arrival(message) => Some(message.to).filter(|to| *to != super::network::CONTROLLER),
            Self::Sweep => None,
        }
    }
}
