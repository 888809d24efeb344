//! The event loop: nodes, their disks, the network between them, and a clock that jumps from event to event.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::hash::{Hash, Hasher};
use std::rc::Rc;
use std::time::Duration;

use model::{FixedHasher, Instant, LeaderEpoch, NodeId, Offset, Uuid};
use quorum::{
    Config, Quorum, ReplicaKey, Request, Response, RoleName, SnapshotId, Token, Voter, VoterChangeError,
    VoterSet,
};

use super::chance::Chance;
use super::disk::{Disk, Entry, SnapshotFile};
use super::network::{Body, Message, Network, Payload};
use super::node::{Asker, Node, Process};
use super::oracle::Oracle;
use super::{Mutant, with_mutant};

/// What becomes of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    Drop,
    /// Until the scenario releases it.
    Hold,
}

/// What has happened in a history, so that it is seen to happen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub elections: u64,
    pub truncations: u64,
    pub installs: u64,
    pub voter_changes: u64,
    pub disks_replaced: u64,
}

impl Counts {
    pub fn add(&mut self, other: &Self) {
        self.elections += other.elections;
        self.truncations += other.truncations;
        self.installs += other.installs;
        self.voter_changes += other.voter_changes;
        self.disks_replaced += other.disks_replaced;
    }
}

pub struct World {
    pub now: Instant,
    pub chance: Chance,
    pub network: Network,
    pub nodes: Vec<Node>,
    pub oracle: Oracle,
    pub events: u64,
    pub counts: Counts,
    /// How changes of voters went, in the order of their ends.
    pub changes: Vec<Result<(), VoterChangeError>>,
    config: Config,
    mutant: Option<Mutant>,
    queue: BinaryHeap<Reverse<Planned>>,
    planned: u64,
    pub(super) hash: FixedHasher,
    /// How many batches were appended; the last one's value.
    pub values: u64,
    disks_made: u64,
    /// What a scenario does with messages as they are sent.
    rule: Box<dyn Fn(&Message) -> Verdict>,
    held: Vec<Message>,
    /// What should have happened on nodes that stand still.
    missed: Vec<Event>,
    /// The most batches in an answer to a Fetch.
    pub batches_most: u64,
}

#[derive(Debug)]
struct Planned {
    at: Instant,
    order: u64,
    event: Event,
}

#[derive(Debug)]
pub(super) enum Event {
    Tick { node: usize, life: u64 },
    Arrival(Message),
    Flushed { node: usize, life: u64 },
}

impl Event {
    // Where it happens.
    fn node(&self) -> usize {
        match self {
            Self::Tick { node, .. } | Self::Flushed { node, .. } => *node,
            Self::Arrival(message) => message.to,
        }
    }
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

/// Timeouts that keep a history short.
pub fn quick() -> Config {
    Config {
        election_timeout: Duration::from_millis(200),
        election_backoff_max: Duration::from_millis(200),
        fetch_timeout: Duration::from_millis(400),
        request_timeout: Duration::from_millis(300),
        retry_backoff: Duration::from_millis(10),
        fetch_wait: Duration::from_millis(100),
        snapshot_piece_bytes: 1000,
    }
}

impl World {
    /// `voters` nodes of a first voter set, and `observers` that know it as their bootstrap servers. All are
    /// started.
    pub fn new(seed: u64, voters: usize, observers: usize, mutant: Option<Mutant>) -> Self {
        let mut world = Self {
            now: Instant(0),
            chance: Chance::new(seed),
            network: Network::calm(),
            nodes: Vec::new(),
            oracle: Oracle::default(),
            events: 0,
            counts: Counts::default(),
            changes: Vec::new(),
            config: quick(),
            mutant,
            queue: BinaryHeap::new(),
            planned: 0,
            hash: FixedHasher::default(),
            values: 0,
            disks_made: 0,
            rule: Box::new(|_| Verdict::Pass),
            held: Vec::new(),
            missed: Vec::new(),
            batches_most: 12,
        };
        let keys: Vec<_> = (0..voters + observers).map(|at| world.new_key(at)).collect();
        let set: VoterSet = keys[..voters].iter().map(|key| Voter::new(*key)).collect();
        for (at, key) in keys.into_iter().enumerate() {
            let bootstrap = if at < voters { set.clone() } else { VoterSet::default() };
            world.nodes.push(Node {
                key,
                disk: Disk::new(bootstrap),
                process: None,
                life: 0,
                flush_micros: (200, 2_000),
                paused: false,
                flushes_held: false,
            });
        }
        for at in 0..world.nodes.len() {
            world.start(at);
        }
        world
    }

    fn new_key(&mut self, at: usize) -> ReplicaKey {
        self.disks_made += 1;
        ReplicaKey::new(NodeId(at as i32 + 1), Uuid(u128::from(self.disks_made).to_be_bytes()))
    }

    /// The hash of the history so far.
    pub fn hash(&self) -> u64 {
        self.hash.finish()
    }

    // ---- nodes

    pub fn start(&mut self, at: usize) {
        assert!(self.nodes[at].process.is_none(), "it runs");
        let seed = self.chance.next();
        let bootstrap_servers = self.nodes.len();
        let node = &mut self.nodes[at];
        node.life += 1;
        let quorum = Quorum::open(self.config, node.key, bootstrap_servers, seed, node.disk.boot(), self.now);
        let quorum = match self.mutant {
            Some(mutant) => with_mutant(quorum, mutant),
            None => quorum,
        };
        node.process = Some(Process::new(quorum));
        self.act(at, Payload::default());
    }

    /// The process dies and the node's power with it.
    pub fn crash(&mut self, at: usize) {
        self.nodes[at].process = None;
        self.nodes[at].disk.lose_power(&mut self.chance);
    }

    /// The same, and nothing survives that was not flushed.
    pub fn crash_hard(&mut self, at: usize) {
        self.nodes[at].process = None;
        self.nodes[at].disk.lose_all_unflushed();
    }

    /// The node's disk is replaced by an empty one.
    pub fn replace_disk(&mut self, at: usize) {
        self.nodes[at].process = None;
        self.nodes[at].key = self.new_key(at);
        self.counts.disks_replaced += 1;
        self.nodes[at].disk = Disk::default();
    }

    pub fn is_up(&self, at: usize) -> bool {
        self.nodes[at].process.is_some()
    }

    pub fn quorum(&self, at: usize) -> &Quorum {
        &self.nodes[at].process.as_ref().expect("it runs").quorum
    }

    pub fn role(&self, at: usize) -> Option<RoleName> {
        self.nodes[at].process.as_ref().map(|process| process.quorum.role())
    }

    /// The nodes that believe to lead and may decide.
    pub fn active_leaders(&self) -> Vec<usize> {
        let active = |at: &usize| {
            let node = &self.nodes[*at];
            !node.paused && node.process.as_ref().is_some_and(|process| process.active.is_some())
        };
        (0..self.nodes.len()).filter(active).collect()
    }

    // ---- what happens outside of the core

    /// A client's records reach this node. False where it takes none.
    pub fn append(&mut self, at: usize, count: u32) -> bool {
        let now = self.now;
        let Some(process) = self.nodes[at].process.as_mut() else { return false };
        let Some(epoch) = process.active else { return false };
        let Ok(appended) = process.quorum.append(now, epoch, count) else { return false };
        let end = appended.base_offset.plus(i64::from(count));
        self.write(at, appended.base_offset, end, appended.epoch, Vec::new());
        self.act(at, Payload::default());
        true
    }

    pub(super) fn write(
        &mut self,
        at: usize,
        base: Offset,
        end: Offset,
        epoch: LeaderEpoch,
        voters: Vec<(Offset, VoterSet)>,
    ) {
        self.values += 1;
        let entry = Entry { base, end, epoch, value: self.values, voters };
        self.nodes[at].disk.append(Rc::new(entry));
    }

    /// The node makes a snapshot of all that it knows to be committed.
    pub fn snapshot(&mut self, at: usize) {
        let size = self.chance.between(1, 6_000);
        self.snapshot_of(at, size);
    }

    /// The same, of `size` bytes.
    pub fn snapshot_of(&mut self, at: usize, size: u64) {
        let now = self.now;
        let Some(process) = self.nodes[at].process.as_mut() else { return };
        let end = process.high_watermark;
        let id = SnapshotId { end, epoch: process.quorum.log().epoch_before(end) };
        if end <= process.quorum.latest_snapshot().map_or(Offset(0), |latest| latest.end) {
            return;
        }
        let voters = process.quorum.voters().before(end).clone();
        let file = SnapshotFile { id, size, voters, state: self.oracle.state_before(end) };
        process.quorum.handle_snapshot_made(now, id, size);
        self.nodes[at].disk.snapshots.insert(id, Rc::new(file));
        self.act(at, Payload::default());
    }

    /// The node deletes log, and older snapshots, below its latest.
    pub fn clean(&mut self, at: usize) {
        let now = self.now;
        let Some(process) = self.nodes[at].process.as_mut() else { return };
        let Some(latest) = process.quorum.latest_snapshot() else { return };
        process.quorum.delete_before(now, latest.end);
        self.act(at, Payload::default());
        let node = &mut self.nodes[at];
        let Some(process) = node.process.as_mut() else { return };
        let (start, old) = (node.disk.start(), latest);
        let gone: Vec<_> =
            node.disk.snapshots.keys().filter(|id| id.end < start && **id != old).copied().collect();
        for id in gone {
            node.disk.snapshots.remove(&id);
            process.quorum.handle_snapshot_deleted(id);
        }
    }

    /// The leader steps down.
    pub fn resign(&mut self, at: usize) {
        self.call(at, |quorum, now, _| quorum.resign(now));
    }

    pub fn add_voter(&mut self, at: usize, added: usize) {
        let voter = Voter::new(self.nodes[added].key);
        self.call(at, |quorum, now, token| quorum.add_voter(now, token, voter));
    }

    pub fn remove_voter(&mut self, at: usize, key: ReplicaKey) {
        self.call(at, |quorum, now, token| quorum.remove_voter(now, token, key));
    }

    fn call(&mut self, at: usize, call: impl FnOnce(&mut Quorum, Instant, Token)) {
        let now = self.now;
        if let Some(process) = self.nodes[at].process.as_mut() {
            process.next_token += 1;
            call(&mut process.quorum, now, Token(process.next_token));
            self.act(at, Payload::default());
        }
    }

    /// The disk flushes on its own, without having been asked.
    pub fn flush_unasked(&mut self, at: usize) {
        let log = self.quorum(at).log();
        let (end, truncations) = (log.end(), log.truncations());
        self.begin_flush(at, end, truncations);
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

    /// Flushes of this node end again.
    pub fn release_flushes(&mut self, at: usize) {
        self.nodes[at].flushes_held = false;
        if self.nodes[at].disk.flushing.is_some() {
            self.plan_flush_end(at);
        }
    }

    // ---- time

    /// Runs until `after` has passed.
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
            if self.queue.peek().is_none_or(|Reverse(planned)| planned.at > end) {
                return false;
            }
            self.step();
        }
        true
    }

    /// The next event.
    pub fn step(&mut self) {
        let Some(Reverse(planned)) = self.queue.pop() else {
            // Nobody runs, and time goes on.
            self.now = self.now.plus(Duration::from_millis(50));
            return;
        };
        self.now = self.now.max(planned.at);
        self.events += 1;
        self.now.hash(&mut self.hash);
        if self.nodes[planned.event.node()].paused {
            return self.missed.push(planned.event);
        }
        match planned.event {
            Event::Tick { node, life } => self.tick(node, life),
            Event::Arrival(message) => self.arrive(message),
            Event::Flushed { node, life } => self.flushed(node, life),
        }
    }

    pub(super) fn plan(&mut self, at: Instant, event: Event) {
        self.planned += 1;
        self.queue.push(Reverse(Planned { at, order: self.planned, event }));
    }

    fn tick(&mut self, at: usize, life: u64) {
        let now = self.now;
        let Some(process) = self.process(at, life) else { return };
        if process.tick_at.is_some_and(|due| due <= now) {
            process.tick_at = None;
            process.quorum.handle_tick(now);
            self.act(at, Payload::default());
        }
    }

    pub(super) fn process(&mut self, at: usize, life: u64) -> Option<&mut Process> {
        let node = &mut self.nodes[at];
        node.process.as_mut().filter(|_| node.life == life)
    }

    fn flushed(&mut self, at: usize, life: u64) {
        let now = self.now;
        if self.process(at, life).is_none() || self.nodes[at].flushes_held {
            return;
        }
        let Some(flush) = self.nodes[at].disk.end_flush() else { return };
        let next = self.nodes[at].disk.flush_next.take();
        if let Some((end, truncations)) = next {
            self.begin_flush(at, end, truncations);
        }
        let Some(process) = self.process(at, life) else { return };
        process.quorum.handle_flushed(now, flush.end, flush.truncations);
        self.act(at, Payload::default());
    }

    pub(super) fn begin_flush(&mut self, at: usize, end: Offset, truncations: u64) {
        self.nodes[at].disk.begin_flush(end, truncations);
        if !self.nodes[at].flushes_held {
            self.plan_flush_end(at);
        }
    }

    fn plan_flush_end(&mut self, at: usize) {
        let (least, most) = self.nodes[at].flush_micros;
        let done = self.now.plus(Duration::from_micros(self.chance.between(least, most)));
        let life = self.nodes[at].life;
        self.plan(done, Event::Flushed { node: at, life });
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
        for after in self.network.arrivals(&message, &mut self.chance) {
            self.plan(self.now.plus(after), Event::Arrival(message.clone()));
        }
    }

    fn arrive(&mut self, message: Message) {
        (message.from, message.to).hash(&mut self.hash);
        let Message { from, to, body } = message;
        match body {
            Body::Request { life, id, request } => {
                let vote = match &request {
                    Request::Vote(vote) if !vote.pre_vote => Some((vote.epoch, vote.candidate)),
                    _ => None,
                };
                self.arrive_request(from, to, Asker { node: from, life, id, vote }, request);
            }
            Body::Response { life, id, response, payload } => {
                let now = self.now;
                let Some(process) = self.process(to, life) else { return };
                process.quorum.handle_response(now, id, response);
                self.act(to, payload);
            }
            Body::Failure { life, id } => {
                let (now, callee, is_down) = (self.now, self.nodes[from].key.id, !self.is_up(from));
                let Some(process) = self.process(to, life) else { return };
                process.quorum.handle_failure(now, id);
                if is_down {
                    process.quorum.handle_unreachable(now, callee);
                }
                self.act(to, Payload::default());
            }
        }
    }

    fn arrive_request(&mut self, from: usize, to: usize, asker: Asker, request: Request) {
        let now = self.now;
        let Some(process) = self.nodes[to].process.as_mut() else {
            let body = Body::Failure { life: asker.life, id: asker.id };
            return self.post(Message { from: to, to: from, body });
        };
        let token = process.token(asker);
        process.quorum.handle_request(now, token, request);
        self.act(to, Payload::default());
    }

    pub(super) fn answer(&mut self, at: usize, token: Token, response: Response, payload: Payload) {
        let process = self.nodes[at].process.as_mut().expect("it answers");
        let asker = process.asked_by.remove(&token).expect("each question is answered once");
        if let (Some((epoch, candidate)), Response::Vote(vote)) = (asker.vote, &response)
            && vote.granted
        {
            let written = self.nodes[at].disk.hard.voted;
            assert!(
                self.oracle.harm_only || written == Some(candidate),
                "a vote is given that is not written down"
            );
            self.oracle.voted(epoch, self.nodes[at].key, candidate);
        }
        let body = Body::Response { life: asker.life, id: asker.id, response, payload };
        self.post(Message { from: at, to: asker.node, body });
    }
}

impl World {
    /// All nodes in a line each, for a violation's text.
    pub fn describe(&self) -> String {
        let mut text =
            format!("at {} ms, committed {}\n", self.now.0 / 1_000_000, self.oracle.committed_end());
        for node in &self.nodes {
            let line = match &node.process {
                None => format!("{:?} down, log ends at {}\n", node.key, node.disk.end()),
                Some(process) => {
                    let quorum = &process.quorum;
                    let keys: Vec<_> = quorum.voters().current().iter().map(|voter| voter.key).collect();
                    format!(
                        "{:?} {:?} of epoch {} leader {:?} log {}..{} flushed {} watermark {} voters {keys:?}\n",
                        node.key,
                        quorum.role(),
                        quorum.epoch(),
                        quorum.leader(),
                        quorum.log().start(),
                        quorum.log().end(),
                        quorum.log().flushed(),
                        quorum.high_watermark(),
                    )
                }
            };
            text += &line;
        }
        text
    }
}
