//! The cluster: nodes that are voters and brokers at once, and what happens between their machines.

use std::collections::BTreeMap;
use std::time::Duration;

use controller::{
    AlterConfig, AlterOp, AlterResource, ConnectionId, CreateTopics, ElectLeaders, ElectionType, Heartbeat,
    NewTopic, Registration, SUPPORTED_FEATURES,
};
use fastrand::Rng;
use metadata::{FeatureRange, Image};
use model::{BrokerEpoch, Instant, NodeId, Offset, TopicIdPartition, Uuid};
use protocol::records::metadata::MetadataRecord;

use super::active::{Active, altered, cluster_id};
use super::mail::{Letter, Mail, Post};
use super::{quorum_world, replica_world, view};

/// The machines' simulators go on in turns of this.
pub(crate) const TURN: Duration = Duration::from_millis(1);
const HEARTBEAT: Duration = Duration::from_millis(100);

/// What a node knows above its machines, in one life.
struct Member {
    life: u64,
    image: Image,
    broker_epoch: Option<BrokerEpoch>,
    is_fenced: bool,
    /// When it speaks to the controller next.
    speaks_at: Instant,
    active: Option<Active>,
}

/// Nodes, their machines and the post between brokers and controller.
pub(crate) struct Cluster {
    pub(crate) now: Instant,
    pub(crate) quorum: quorum_world::world::World,
    pub(crate) partitions: Vec<replica_world::world::World>,
    members: Vec<Member>,
    /// Of which process, and in which registration, each node's last connection closed.
    closed: BTreeMap<usize, (u64, BrokerEpoch)>,
    /// What stands in the metadata log's batches.
    records: BTreeMap<u64, Vec<MetadataRecord>>,
    /// The latest image that any node has.
    committed: Image,
    post: Post,
    pub(crate) rng: Rng,
    /// In microseconds: at least, and at most.
    pub(crate) delay_micros: (u64, u64),
    pub(crate) lost_per_mille: u32,
    ids: u64,
}

impl Member {
    fn new(life: u64, now: Instant) -> Self {
        Self {
            life,
            image: Image::default(),
            broker_epoch: None,
            is_fenced: true,
            speaks_at: now,
            active: None,
        }
    }

    fn describe(&self, at: usize) -> String {
        let Self { life, broker_epoch, is_fenced, .. } = self;
        let active = self.active.as_ref().map(|active| active.epoch);
        let (node, image) = (at + 1, self.image.end());
        format!(
            "{node}: life {life} broker epoch {broker_epoch:?} fenced {is_fenced} controller {active:?} image {image}\n"
        )
    }
}

impl Cluster {
    /// Nodes that all run, the first three of them voters, and a topic to be of so many partitions.
    pub(crate) fn new(seed: u64, nodes: usize, partitions: usize) -> Self {
        let partition = |index: usize| {
            let mut world = replica_world::world::World::new(seed ^ (index as u64 + 1), nodes, 0, None);
            world.is_mirror = true;
            world
        };
        let now = Instant(0);
        Self {
            now,
            quorum: quorum_world::world::World::new(seed, 3, nodes - 3, None),
            partitions: (0..partitions).map(partition).collect(),
            members: (0..nodes).map(|_| Member::new(1, now)).collect(),
            closed: BTreeMap::new(),
            records: BTreeMap::new(),
            committed: Image::default(),
            post: Post::default(),
            rng: Rng::with_seed(seed),
            delay_micros: (500, 2_000),
            lost_per_mille: 0,
            ids: 0,
        }
    }

    pub(crate) fn nodes(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn is_up(&self, at: usize) -> bool {
        self.quorum.is_up(at)
    }

    fn runs(&self, at: usize) -> bool {
        self.is_up(at) && !self.quorum.nodes[at].paused
    }

    // ---- life and death

    pub(crate) fn start(&mut self, at: usize) {
        self.members[at] = Member::new(self.members[at].life + 1, self.now);
        self.quorum.start(at);
        self.partitions.iter_mut().for_each(|world| world.start(at));
    }

    /// The process ends; with `power`, what the node's logs had not flushed is lost.
    pub(crate) fn kill(&mut self, at: usize, power: bool) {
        self.quorum.crash(at);
        let member = &mut self.members[at];
        member.active = None;
        if let Some(epoch) = member.broker_epoch {
            self.closed.insert(at, (member.life, epoch));
        }
        for world in &mut self.partitions {
            if power {
                world.lose_power(at);
            } else {
                world.kill(at);
            }
        }
    }

    pub(crate) fn pause(&mut self, at: usize) {
        self.quorum.nodes[at].paused = true;
        self.partitions.iter_mut().for_each(|world| world.nodes[at].paused = true);
    }

    pub(crate) fn resume(&mut self) {
        self.quorum.resume();
        self.partitions.iter_mut().for_each(replica_world::world::World::resume);
    }

    pub(crate) fn cut(&mut self, from: usize, to: usize) {
        self.quorum.network.cut(from, to);
        self.partitions.iter_mut().for_each(|world| world.network.cut(from, to));
    }

    pub(crate) fn heal(&mut self) {
        self.quorum.network.heal();
        self.partitions.iter_mut().for_each(|world| world.network.heal());
    }

    // ---- time

    /// One turn of everything.
    pub(crate) fn turn(&mut self) {
        self.now = self.now.plus(TURN);
        self.quorum.run_for(TURN);
        self.partitions.iter_mut().for_each(|world| world.run_for(TURN));
        for at in 0..self.nodes() {
            self.lead(at);
            self.apply(at);
            self.speak(at);
        }
        self.carry_requests();
        while let Some(mail) = self.post.poll(self.now) {
            self.deliver(mail);
        }
    }

    // ---- the controller

    // A node that leads the quorum runs the controller, and answers what is committed.
    fn lead(&mut self, at: usize) {
        if !self.runs(at) {
            return;
        }
        let Some(process) = self.quorum.nodes[at].process.as_ref() else { return };
        let (epoch, committed) = (process.active, process.high_watermark);
        if self.members[at].active.as_ref().map(|active| active.epoch) != epoch {
            self.members[at].active = None;
            if let Some(epoch) = epoch {
                let image = self.image_of_log(at);
                let node = self.quorum.nodes[at].id();
                self.members[at].active = Some(Active::new(node, image, epoch, self.now));
                self.decide(at, |active, _, _| (active.controller.bootstrap().records, ()));
            }
        }
        let Some(active) = self.members[at].active.as_mut() else { return };
        for mail in active.take_replies(committed) {
            self.send(mail);
        }
        self.upkeep(at);
    }

    fn upkeep(&mut self, at: usize) {
        if let Some(active) = self.members[at].active.as_mut() {
            for (node, (life, epoch)) in &self.closed {
                let (id, connection) = (NodeId(*node as i32 + 1), Some(ConnectionId(*life)));
                active.controller.handle_connection_closed(id, *epoch, connection, self.now);
            }
        }
        let is_due = |member: &Member, now: Instant| {
            member.active.as_ref().is_some_and(|active| active.controller.deadline() <= now)
        };
        if is_due(&self.members[at], self.now) {
            self.decide(at, |active, now, _| (active.controller.handle_tick(now).records, ()));
        }
    }

    // All that stands in a log, committed or not.
    fn image_of_log(&self, at: usize) -> Image {
        let mut image = self.members[at].image.clone();
        for entry in self.quorum.nodes[at].disk.from(image.end()) {
            image = self.after(&image, entry.value, entry.end);
        }
        image
    }

    fn after(&self, image: &Image, value: u64, end: Offset) -> Image {
        let records = self.records.get(&value).map(Vec::as_slice).unwrap_or_default();
        image.apply(records, end).expect("what a controller decided fits").0
    }

    /// Decides, and appends what is decided. `None` where this node does not run the controller, or no longer.
    fn decide<T>(
        &mut self,
        at: usize,
        decide: impl FnOnce(&mut Active, Instant, Offset) -> (Vec<MetadataRecord>, T),
    ) -> Option<T> {
        let (now, end) = (self.now, self.quorum.nodes[at].disk.end());
        let active = self.members[at].active.as_mut()?;
        let (records, reply) = decide(active, now, end);
        if records.is_empty() {
            return Some(reply);
        }
        if !self.quorum.append(at, records.len() as u32) {
            self.members[at].active = None;
            return None;
        }
        let end = end.plus(records.len() as i64);
        self.members[at].active.as_mut()?.appended(&records, end);
        self.records.insert(self.quorum.values, records);
        Some(reply)
    }

    /// The node that runs the controller of the latest epoch.
    pub(crate) fn controller(&self) -> Option<usize> {
        let epoch = |at: &usize| self.members[*at].active.as_ref().map(|active| active.epoch);
        (0..self.nodes()).filter(|at| self.runs(*at) && epoch(at).is_some()).max_by_key(epoch)
    }

    // ---- metadata

    // Applies what is committed, batch by batch, and tells the replicas.
    fn apply(&mut self, at: usize) {
        if !self.runs(at) {
            return;
        }
        let Some(committed) = self.quorum.nodes[at].process.as_ref().map(|process| process.high_watermark)
        else {
            return;
        };
        while let Some(entry) = self.next_committed(at, committed) {
            let image = self.after(&self.members[at].image, entry.0, entry.1);
            self.members[at].image = image.clone();
            if image.end() > self.committed.end() {
                self.committed = image.clone();
                self.mirror();
            }
            self.tell(at, &image);
        }
    }

    fn next_committed(&self, at: usize, committed: Offset) -> Option<(u64, Offset)> {
        let next = self.quorum.nodes[at].disk.from(self.members[at].image.end()).first()?;
        (next.end <= committed).then_some((next.value, next.end))
    }

    fn tell(&mut self, at: usize, image: &Image) {
        for (index, world) in self.partitions.iter_mut().enumerate() {
            if let Some(state) = view::partition_state(image, index) {
                let life = world.nodes[at].life;
                world.learn(at, life, image.end().0, state);
            }
        }
    }

    // What the rules of a partition are checked against.
    fn mirror(&mut self) {
        for (index, world) in self.partitions.iter_mut().enumerate() {
            let Some(partition) = view::partition(&self.committed, index) else { continue };
            let state = view::partition_state(&self.committed, index).expect("it is there");
            let controller = &mut world.controller;
            controller.replicas.clone_from(&partition.replicas);
            controller.target.clone_from(&partition.replicas);
            controller.isr = partition.isr.iter().copied().collect();
            controller.elr = partition.elr.iter().copied().collect();
            controller.leader = partition.leader;
            controller.leader_epoch = partition.leader_epoch;
            controller.partition_epoch = partition.partition_epoch;
            controller.min_isr = state.min_isr;
            world.check();
        }
    }

    // ---- brokers

    // Registers, and says that it lives.
    fn speak(&mut self, at: usize) {
        if !self.runs(at) || self.members[at].speaks_at > self.now {
            return;
        }
        self.members[at].speaks_at = self.now.plus(HEARTBEAT);
        let Some(to) = self.leader_of(at) else { return };
        let life = self.members[at].life;
        let letter = match self.members[at].broker_epoch {
            None => Letter::Register(Box::new(self.registration(at)), life),
            Some(epoch) => Letter::Heartbeat(Box::new(self.heartbeat(at, epoch)), life),
        };
        self.send(Mail { from: at, to, letter });
    }

    // Who leads the quorum, as this node knows.
    fn leader_of(&self, at: usize) -> Option<usize> {
        let leader = self.quorum.quorum(at).leader()?;
        usize::try_from(leader.0 - 1).ok().filter(|leader| *leader < self.nodes())
    }

    fn registration(&self, at: usize) -> Registration {
        let life = self.members[at].life;
        let mut incarnation = [0; 16];
        incarnation[0] = at as u8 + 1;
        incarnation[8..].copy_from_slice(&life.to_be_bytes());
        let features = SUPPORTED_FEATURES.iter().map(|feature| FeatureRange {
            name: feature.name.into(),
            min: feature.min,
            max: feature.max,
        });
        Registration {
            cluster_id: cluster_id(),
            id: self.quorum.nodes[at].id(),
            incarnation: Uuid(incarnation),
            endpoints: Vec::new(),
            features: features.collect(),
            rack: None,
            directories: vec![Uuid([at as u8 + 200; 16])],
            previous_epoch: None,
            durable: true,
            connection: ConnectionId(life),
        }
    }

    fn heartbeat(&self, at: usize, epoch: BrokerEpoch) -> Heartbeat {
        let topic = self.members[at].image.topics.by_name(view::TOPIC).map(|topic| topic.id);
        let lost = self.partitions.iter().enumerate().filter(|(_, world)| world.nodes[at].lost_records);
        let id = |(index, _): (usize, _)| {
            topic.map(|topic_id| TopicIdPartition { topic_id, partition: index as i32 })
        };
        Heartbeat {
            id: self.quorum.nodes[at].id(),
            epoch,
            metadata_offset: Offset(self.members[at].image.end().0 - 1),
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
            lost: lost.filter_map(id).collect(),
            connection: ConnectionId(self.members[at].life),
        }
    }

    // Leaders ask for another ISR; who knows no controller asks nobody, and will try again.
    fn carry_requests(&mut self) {
        for partition in 0..self.partitions.len() {
            for request in std::mem::take(&mut self.partitions[partition].requests) {
                let from = request.from;
                if self.runs(from)
                    && let Some(to) = self.leader_of(from)
                {
                    self.send(Mail { from, to, letter: Letter::Alter { partition, request } });
                }
            }
        }
    }

    // ---- post

    fn send(&mut self, mail: Mail) {
        let is_lost = mail.from != mail.to
            && (self.quorum.network.is_cut(mail.from, mail.to)
                || self.rng.u32(0..1000) < self.lost_per_mille);
        if !is_lost {
            let delay = Duration::from_micros(self.rng.u64(self.delay_micros.0..=self.delay_micros.1));
            self.post.send(self.now.plus(delay), mail);
        }
    }

    fn deliver(&mut self, mail: Mail) {
        let Mail { from, to: at, letter } = mail;
        if !self.runs(at) {
            return;
        }
        match letter {
            Letter::Register(registration, life) => self.register(at, from, life, &registration),
            Letter::Heartbeat(heartbeat, life) => self.hear(at, from, life, &heartbeat),
            Letter::Alter { partition, request } => self.alter(at, partition, &request),
            Letter::Registered { life, epoch } if life == self.members[at].life => self.registered(at, epoch),
            Letter::Heard { life, is_fenced } if life == self.members[at].life => {
                self.members[at].is_fenced = is_fenced;
                if !is_fenced {
                    self.partitions.iter_mut().for_each(|world| world.nodes[at].lost_records = false);
                }
            }
            Letter::Registered { .. } | Letter::Heard { .. } => {}
            Letter::Altered { partition, life, id, answer } => {
                self.partitions[partition].altered(at, life, id, answer);
            }
        }
    }

    fn register(&mut self, at: usize, from: usize, life: u64, registration: &Registration) {
        let reply = self.decide(at, |active, now, end| {
            let decision = active.controller.register_broker(registration, end, now);
            (decision.records, decision.reply)
        });
        if let Some(Ok(epoch)) = reply {
            self.reply(at, Mail { from: at, to: from, letter: Letter::Registered { life, epoch } });
        }
    }

    fn registered(&mut self, at: usize, epoch: BrokerEpoch) {
        self.members[at].broker_epoch = Some(epoch);
        self.members[at].speaks_at = self.now;
        for world in &mut self.partitions {
            if let Some(process) = world.nodes[at].process.as_mut() {
                process.broker_epoch = Some(epoch);
                process.replica.handle_registered(epoch);
            }
        }
    }

    fn hear(&mut self, at: usize, from: usize, life: u64, heartbeat: &Heartbeat) {
        let reply = self.decide(at, |active, now, _| {
            let decision = active.controller.heartbeat(heartbeat, now);
            (decision.records, decision.reply)
        });
        if let Some(Ok(reply)) = reply {
            let letter = Letter::Heard { life, is_fenced: reply.is_fenced };
            self.reply(at, Mail { from: at, to: from, letter });
        }
    }

    fn alter(&mut self, at: usize, partition: usize, request: &replica_world::world::Request) {
        let sender = self.quorum.nodes[request.from].id();
        let Some(topic) = self.topic() else { return };
        let is_latest = |active: &mut Active| active.is_latest(request);
        if !self.members[at].active.as_mut().is_some_and(is_latest) {
            return;
        }
        let reply = self.decide(at, |active, _, _| active.alter(topic, partition, sender, request));
        if let Some(answer) = reply {
            self.reply(at, altered(at, partition, request, answer));
        }
    }

    fn reply(&mut self, at: usize, mail: Mail) {
        if let Some(active) = self.members[at].active.as_mut() {
            active.reply(mail);
        }
    }

    fn topic(&self) -> Option<Uuid> {
        self.committed.topics.by_name(view::TOPIC).map(|topic| topic.id)
    }

    // ---- administration

    /// The topic is created where it is not there yet and three brokers are active.
    pub(crate) fn create_topic(&mut self) {
        let Some(at) = self.controller().filter(|_| self.topic().is_none()) else { return };
        let partitions = self.partitions.len() as i32;
        self.ids += 1;
        let seed = self.ids << 32 | self.rng.u64(0..1 << 32);
        self.decide(at, |active, _, _| {
            let brokers = active.controller.image().brokers.unfenced().count();
            if brokers < 3 || active.controller.image().topics.by_name(view::TOPIC).is_some() {
                return (Vec::new(), ());
            }
            let topic = NewTopic {
                name: view::TOPIC.into(),
                partitions,
                replication_factor: 3,
                configs: vec![("min.insync.replicas".into(), Some("2".into()))],
                ..NewTopic::default()
            };
            let mut rng = Rng::with_seed(seed);
            let command = CreateTopics { topics: vec![topic], validate_only: false };
            (active.controller.create_topics(&command, &mut || rng.u64(..)).records, ())
        });
    }

    pub(crate) fn has_topic(&self) -> bool {
        self.topic().is_some()
    }

    /// Not while a partition has no leader: as in Kafka, such a change makes everybody ineligible (KAFKA-16540), and nobody
    /// could lead it any more but by an unclean election.
    pub(crate) fn set_min_isr(&mut self, min_isr: usize) {
        let value = Some(min_isr.to_string());
        let change = AlterConfig { name: "min.insync.replicas".into(), op: AlterOp::Set, value };
        let resource =
            AlterResource { kind: 2, name: view::TOPIC.into(), changes: vec![change], replace: false };
        if let Some(at) = self.controller() {
            let partitions = self.partitions.len();
            self.decide(at, |active, _, _| {
                let image = active.controller.image();
                let leads = |index| {
                    view::partition(image, index).is_some_and(|partition| partition.leader != NodeId::NONE)
                };
                if !(0..partitions).all(leads) {
                    return (Vec::new(), ());
                }
                (active.controller.alter_configs(&[resource], Some(NodeId(1)), false).records, ())
            });
        }
    }

    pub(crate) fn elect_preferred(&mut self) {
        let command = ElectLeaders { election: ElectionType::Preferred, partitions: None };
        if let Some(at) = self.controller() {
            self.decide(at, |active, _, _| (active.controller.elect_leaders(&command).records, ()));
        }
    }

    /// The cluster in lines, for a violation's text.
    pub(crate) fn describe(&self) -> String {
        let mut text = self.quorum.describe();
        for (at, member) in self.members.iter().enumerate() {
            text += &member.describe(at);
        }
        self.partitions.iter().for_each(|world| text += &world.describe());
        text
    }
}
