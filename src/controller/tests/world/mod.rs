//! A cluster of brokers that are only said to be there, on a clock that is moved by hand.
//!
//! After every decision the image is checked: it makes sense whatever was asked for.

#![allow(dead_code, reason = "each file of tests uses a part of it")]

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use controller::{
    AlterConfig, AlterOp, AlterPartition, AlterPartitionError, AlterResource, AssignReplicaError,
    AssignReplicasToDirs, Assignment, BrokerError, Config, ConnectionId, Controller, CreateTopics, Decision,
    Heartbeat, HeartbeatReply, Mutant, NewIsr, NewTopic, Registration, SUPPORTED_FEATURES,
};
use metadata::config::{BrokerConfig, topic_key};
use metadata::{FeatureRange, Image, LeaderRecovery, Partition};
use model::{BrokerEpoch, ClusterId, Instant, NodeId, Offset, TopicIdPartition, Uuid};

/// How brokers came to their end, and what they come back with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// After a clean stop.
    Clean,
    /// After a kill or a power cut, with the same disk.
    Killed,
    /// With a disk that is empty.
    EmptyDisk,
    /// After a kill, as a broker that does not flush before it acknowledges.
    KilledUnflushed,
}

pub(crate) struct World {
    pub(crate) controller: Controller,
    pub(crate) now: Instant,
    /// The brokers that send heartbeats.
    alive: BTreeSet<i32>,
    disks: BTreeMap<i32, Uuid>,
    connections: BTreeMap<i32, ConnectionId>,
    last_epochs: BTreeMap<i32, BrokerEpoch>,
    runs: u8,
    random: u64,
    /// Whether the image is checked: a fault that was put back may break it.
    checks: bool,
}

pub(crate) const TICK: Duration = Duration::from_millis(100);

pub(crate) fn millis(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) fn nodes(ids: &[i32]) -> Vec<NodeId> {
    ids.iter().copied().map(NodeId).collect()
}

impl World {
    /// Brokers from 1 on, all of them active.
    pub(crate) fn new(brokers: i32, mutant: Option<Mutant>) -> Self {
        Self::with_config(brokers, mutant, &[])
    }

    pub(crate) fn with_config(brokers: i32, mutant: Option<Mutant>, values: &[(&str, &str)]) -> Self {
        let mut broker = BrokerConfig::default();
        for (name, value) in values {
            broker.set(name, value).expect("a key");
        }
        let config = Config { node: NodeId(1), cluster_id: ClusterId::from("c"), broker };
        let controller = Controller::new(Image::default(), config, Instant(0));
        let controller = match mutant {
            Some(mutant) => controller.with_mutant(mutant),
            None => controller,
        };
        let mut world = Self {
            controller,
            now: Instant(0),
            alive: BTreeSet::new(),
            disks: BTreeMap::new(),
            connections: BTreeMap::new(),
            last_epochs: BTreeMap::new(),
            runs: 0,
            random: 0,
            checks: mutant.is_none(),
        };
        let bootstrap = world.controller.bootstrap();
        world.commit(bootstrap);
        (1..=brokers).for_each(|id| world.start(id, Start::Killed));
        world
    }

    pub(crate) fn commit<R>(&mut self, decision: Decision<R>) -> R {
        let before = self.controller.image();
        let end = before.end().plus(decision.records.len() as i64);
        let (image, _) = before.apply(&decision.records, end).expect("a decision fits its image");
        self.controller.advance(image);
        if self.checks && !decision.records.is_empty() {
            check(self.controller.image());
        }
        decision.reply
    }

    /// Time passes: the living send heartbeats, and the controller does what is due.
    pub(crate) fn pass(&mut self, time: Duration) {
        let end = self.now.plus(time);
        while self.now < end {
            self.now = end.min(self.now.plus(TICK));
            for id in self.alive.clone() {
                let _ = self.heartbeat(id);
            }
            self.tick();
        }
    }

    /// Another node's controller begins, with the same metadata.
    pub(crate) fn fail_over(&mut self, mutant: Option<Mutant>) {
        let config =
            Config { node: NodeId(1), cluster_id: ClusterId::from("c"), broker: BrokerConfig::default() };
        let controller = Controller::new(self.controller.image().clone(), config, self.now);
        self.controller = match mutant {
            Some(mutant) => controller.with_mutant(mutant),
            None => controller,
        };
    }

    /// Everything that is due.
    pub(crate) fn tick(&mut self) {
        // A controller that leaves undone what is due would be asked for ever.
        for _ in 0..1_000 {
            if self.controller.deadline() > self.now {
                return;
            }
            let decision = self.controller.handle_tick(self.now);
            self.commit(decision);
        }
    }
}

// Brokers.
impl World {
    pub(crate) fn registration(&mut self, id: i32, start: Start) -> Registration {
        self.runs += 1;
        let disk = if start == Start::EmptyDisk { Uuid([self.runs; 16]) } else { self.disk(id) };
        let range = |feature: &controller::SupportedFeature| FeatureRange {
            name: feature.name.into(),
            min: feature.min,
            max: feature.max,
        };
        Registration {
            cluster_id: ClusterId::from("c"),
            id: NodeId(id),
            incarnation: Uuid([self.runs; 16]),
            endpoints: Vec::new(),
            features: SUPPORTED_FEATURES.iter().map(range).collect(),
            rack: None,
            directories: vec![disk],
            previous_epoch: self.last_epochs.get(&id).copied().filter(|_| start == Start::Clean),
            durable: start != Start::KilledUnflushed,
            connection: ConnectionId(u64::from(self.runs)),
        }
    }

    /// The disk with which it registered last.
    pub(crate) fn disk(&self, id: i32) -> Uuid {
        self.disks.get(&id).copied().unwrap_or(Uuid([240 + id as u8; 16]))
    }

    pub(crate) fn register(&mut self, registration: &Registration) -> Result<BrokerEpoch, BrokerError> {
        let log_end = self.controller.image().end();
        let decision = self.controller.register_broker(registration, log_end, self.now);
        let epoch = self.commit(decision)?;
        self.last_epochs.insert(registration.id.0, epoch);
        self.disks.insert(registration.id.0, registration.directories[0]);
        self.connections.insert(registration.id.0, registration.connection);
        Ok(epoch)
    }

    /// Registers and is unfenced.
    pub(crate) fn start(&mut self, id: i32, start: Start) {
        let registration = self.registration(id, start);
        self.register(&registration).expect("registered");
        let reply = self.heartbeat(id).expect("its epoch");
        assert!(!reply.is_fenced, "{id} is unfenced");
        self.alive.insert(id);
    }

    pub(crate) fn epoch(&self, id: i32) -> BrokerEpoch {
        self.controller.image().brokers.get(NodeId(id)).map_or(BrokerEpoch(-1), |broker| broker.epoch)
    }

    pub(crate) fn is_fenced(&self, id: i32) -> bool {
        self.controller.image().brokers.get(NodeId(id)).is_none_or(|broker| broker.fenced)
    }

    /// What a broker says that has all metadata and is well.
    pub(crate) fn heartbeat_of(&self, id: i32) -> Heartbeat {
        Heartbeat {
            id: NodeId(id),
            epoch: self.epoch(id),
            metadata_offset: Offset(self.controller.image().end().0 - 1),
            want_fence: false,
            want_shut_down: false,
            offline_directories: Vec::new(),
            lost: Vec::new(),
            connection: self.connections.get(&id).copied().unwrap_or(ConnectionId::LOCAL),
        }
    }

    pub(crate) fn heartbeat(&mut self, id: i32) -> Result<HeartbeatReply, BrokerError> {
        let heartbeat = self.heartbeat_of(id);
        self.say(&heartbeat)
    }

    pub(crate) fn say(&mut self, heartbeat: &Heartbeat) -> Result<HeartbeatReply, BrokerError> {
        let decision = self.controller.heartbeat(heartbeat, self.now);
        self.commit(decision)
    }

    pub(crate) fn close_connection(&mut self, id: i32) {
        let connection = self.connections.get(&id).copied();
        self.controller.handle_connection_closed(NodeId(id), self.epoch(id), connection, self.now);
    }

    /// Comes back on another connection.
    pub(crate) fn reconnect(&mut self, id: i32) {
        self.runs += 1;
        self.connections.insert(id, ConnectionId(u64::from(self.runs)));
        self.heartbeat(id).expect("its epoch");
    }

    /// Says nothing any more.
    pub(crate) fn silence(&mut self, id: i32) {
        self.alive.remove(&id);
    }

    /// The process is gone, and with it its connection; the controller notices.
    pub(crate) fn kill(&mut self, ids: &[i32]) {
        for id in ids {
            self.silence(*id);
            self.close_connection(*id);
        }
        self.pass(millis(300));
    }
}

// Topics.
impl World {
    /// A topic `t` of one partition.
    pub(crate) fn topic(&mut self, replicas: &[i32], configs: &[(&str, &str)]) {
        let config = |(name, value): &(&str, &str)| ((*name).to_owned(), Some((*value).to_owned()));
        let topic = NewTopic {
            name: "t".into(),
            partitions: -1,
            replication_factor: -1,
            assignments: vec![Assignment { partition: 0, replicas: nodes(replicas) }],
            configs: configs.iter().map(config).collect(),
        };
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        let mut n = self.random;
        let decision = self.controller.create_topics(&command, &mut || {
            n += 1;
            n
        });
        self.random = n;
        let reply = self.commit(decision);
        assert!(reply[0].result.is_ok(), "{reply:?}");
    }

    pub(crate) fn of(&self) -> TopicIdPartition {
        let topic = self.controller.image().topics.by_name("t").expect("the topic");
        TopicIdPartition { topic_id: topic.id, partition: 0 }
    }

    pub(crate) fn partition(&self) -> Partition {
        self.controller.image().topics.partition(self.of()).expect("the partition").clone()
    }

    /// Leader, ISR, ELR.
    pub(crate) fn state(&self) -> (i32, Vec<i32>, Vec<i32>) {
        let partition = self.partition();
        let ids = |nodes: &[NodeId]| nodes.iter().map(|node| node.0).collect();
        (partition.leader.0, ids(&partition.isr), ids(&partition.elr))
    }

    /// What its leader asks for, knowing everything.
    pub(crate) fn new_isr(&self, isr: &[i32]) -> AlterPartition {
        let partition = self.partition();
        let of = self.of();
        AlterPartition {
            broker: partition.leader,
            broker_epoch: self.epoch(partition.leader.0),
            partitions: vec![NewIsr {
                topic: of.topic_id,
                partition: of.partition,
                leader_epoch: partition.leader_epoch,
                partition_epoch: partition.partition_epoch,
                isr: isr.iter().map(|id| (NodeId(*id), Some(self.epoch(*id)))).collect(),
                recovery: LeaderRecovery::Recovered,
            }],
        }
    }

    pub(crate) fn alter(&mut self, command: &AlterPartition) -> Result<Partition, AlterPartitionError> {
        let decision = self.controller.alter_partition(command);
        self.commit(decision).expect("the sender's epoch").remove(0).result
    }

    pub(crate) fn set_isr(&mut self, isr: &[i32]) -> Result<Partition, AlterPartitionError> {
        self.alter(&self.new_isr(isr))
    }

    /// The broker says in which folder it has its replica.
    pub(crate) fn assign(
        &mut self,
        broker: i32,
        directory: Uuid,
        of: TopicIdPartition,
    ) -> Result<(), AssignReplicaError> {
        let command = AssignReplicasToDirs {
            broker: NodeId(broker),
            broker_epoch: self.epoch(broker),
            replicas: vec![(directory, of)],
        };
        let decision = self.controller.assign_replicas_to_dirs(&command);
        self.commit(decision).expect("its epoch").remove(0).result
    }

    /// The same of a broker that may not be there, or not have the replica.
    pub(crate) fn try_assign(&mut self, broker: i32) -> Result<(), BrokerError> {
        let command = AssignReplicasToDirs {
            broker: NodeId(broker),
            broker_epoch: self.epoch(broker),
            replicas: vec![(self.disk(broker), self.of())],
        };
        let decision = self.controller.assign_replicas_to_dirs(&command);
        self.commit(decision).map(drop)
    }

    pub(crate) fn set_config(&mut self, name: &str, value: &str) {
        self.set_config_of("t", name, value);
    }

    pub(crate) fn set_config_of(&mut self, topic: &str, name: &str, value: &str) {
        let change = AlterConfig { name: name.into(), op: AlterOp::Set, value: Some(value.into()) };
        let resource = AlterResource { kind: 2, name: topic.into(), changes: vec![change], replace: false };
        let decision = self.controller.alter_configs(&[resource], Some(NodeId(1)), false);
        let reply = self.commit(decision);
        assert!(reply[0].result.is_ok(), "{reply:?}");
    }
}

/// Invariant: in sync and eligible are replicas, never both; with enough in sync nobody is eligible; nobody who is fenced
/// is in sync; the leader is, or there is none.
pub(crate) fn check(image: &Image) {
    for topic in image.topics.iter() {
        let values = BrokerConfig::default();
        let layers = image.configs.topic_layers(&topic.name, NodeId(1), values.values());
        let key = topic_key("min.insync.replicas").expect("a key");
        let isr_min = layers.topic_value(key).and_then(|value| value.integer()).unwrap_or(1) as usize;
        topic.partitions.values().for_each(|partition| check_partition(image, partition, isr_min));
    }
    let again = Image::from_snapshot(&image.to_records(), image.end());
    assert_eq!(again.as_ref(), Ok(image), "a snapshot is the image");
}

fn check_partition(image: &Image, partition: &Partition, isr_min: usize) {
    let Partition { replicas, isr, elr, leader, .. } = partition;
    let is_active = |node: &NodeId| image.brokers.get(*node).is_some_and(|broker| broker.is_active());
    assert_eq!(partition.directories.len(), replicas.len(), "{partition:?}");
    assert!(isr.iter().chain(elr).all(|node| replicas.contains(node)), "only replicas: {partition:?}");
    assert!(isr.iter().all(|node| !elr.contains(node)), "in sync or eligible, not both: {partition:?}");
    assert!(isr.iter().all(is_active), "a broker that is away is not in sync: {partition:?}");
    let enough = isr.len() >= isr_min.min(replicas.len());
    assert!(!enough || elr.is_empty(), "enough are in sync, and some eligible: {partition:?}");
    assert!(*leader == NodeId::NONE || isr.contains(leader), "the leader is in sync: {partition:?}");
}
