//! Whatever is asked of the controller and whatever becomes of its brokers, in whatever order: the image makes sense, and
//! every replica that may lead holds all that was committed.
//!
//! Who holds all of it is kept beside the controller: while enough are in sync a write commits at every moment, and then
//! those in sync hold it and nobody else does.

mod world;

use std::collections::BTreeMap;

use controller::{
    AlterPartition, AlterPartitionReassignments, ElectLeaders, ElectionType, Heartbeat, Reassignment,
};
use metadata::config::{BrokerConfig, topic_key};
use metadata::{LeaderRecovery, Partition};
use model::{NodeId, Uuid};
use proptest::prelude::*;
use world::{Start, World, millis, nodes};

const NODES: std::ops::RangeInclusive<i32> = 1..=4;

#[derive(Clone, Debug)]
enum Step {
    Kill(Vec<i32>),
    Start(i32, Start),
    /// Registers, and says what it lost when it is unfenced.
    StartWithLoss(i32),
    Register(i32, Start),
    Heartbeat(i32),
    Stop(i32),
    FailFolder(i32),
    Assign(i32),
    SetIsr(Vec<i32>),
    /// Asked for before the next steps, and taken up after them.
    Remember(Vec<i32>),
    Recall,
    Reassign(Option<Vec<i32>>),
    Elect,
    MinIsr(u8),
    FailOver,
    Unregister(i32),
    Pass(u64),
}

fn some_nodes() -> impl Strategy<Value = Vec<i32>> {
    proptest::sample::subsequence(NODES.collect::<Vec<_>>(), 1..=4).prop_shuffle()
}

fn start() -> impl Strategy<Value = Start> {
    prop_oneof![
        3 => Just(Start::Killed),
        1 => Just(Start::Clean),
        1 => Just(Start::EmptyDisk),
        1 => Just(Start::KilledUnflushed),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => some_nodes().prop_map(Step::Kill),
        6 => (NODES, start()).prop_map(|(node, start)| Step::Start(node, start)),
        1 => NODES.prop_map(Step::StartWithLoss),
        1 => (NODES, start()).prop_map(|(node, start)| Step::Register(node, start)),
        2 => NODES.prop_map(Step::Heartbeat),
        1 => NODES.prop_map(Step::Stop),
        1 => NODES.prop_map(Step::FailFolder),
        1 => NODES.prop_map(Step::Assign),
        6 => some_nodes().prop_map(Step::SetIsr),
        1 => some_nodes().prop_map(Step::Remember),
        1 => Just(Step::Recall),
        2 => proptest::option::of(some_nodes()).prop_map(Step::Reassign),
        1 => Just(Step::Elect),
        1 => (1..=3_u8).prop_map(Step::MinIsr),
        1 => Just(Step::FailOver),
        1 => NODES.prop_map(Step::Unregister),
        2 => (0..10_000_u64).prop_map(Step::Pass),
    ]
}

struct Story {
    world: World,
    /// Who holds all that was committed, each on which disk.
    complete: BTreeMap<i32, Uuid>,
    remembered: Option<AlterPartition>,
}

impl Story {
    fn new(isr_min: u8) -> Self {
        let mut world = World::new(4, None);
        world.topic(&[1, 2, 3], &[("min.insync.replicas", &isr_min.to_string())]);
        let mut story = Self { world, complete: BTreeMap::new(), remembered: None };
        story.hold(&[1, 2, 3]);
        story
    }

    /// These hold all of it.
    fn hold(&mut self, ids: &[i32]) {
        let held: Vec<(i32, Uuid)> = ids.iter().map(|id| (*id, self.place(*id))).collect();
        self.complete.extend(held);
    }

    /// Where a broker has its replica: in the folder that the controller knows, else in its first one.
    fn place(&self, id: i32) -> Uuid {
        match self.world.partition().directory(NodeId(id)) {
            Partition::UNASSIGNED => self.world.disk(id),
            directory => directory,
        }
    }

    /// A broker has its replica in its first folder from now on: moved there, or begun anew if the old one is away.
    fn assign(&mut self, id: i32) {
        let Some(broker) = self.world.controller.image().brokers.get(NodeId(id)).cloned() else { return };
        let (before, disk) = (self.place(id), self.world.disk(id));
        if !broker.has_directory(disk) && before != disk {
            return;
        }
        let _ = self.world.try_assign(id);
        if broker.has_directory(before) || before == disk {
            self.complete.entry(id).and_modify(|held| *held = disk);
        } else {
            self.complete.remove(&id);
        }
    }

    fn take(&mut self, step: &Step) {
        match step {
            Step::Kill(ids) => self.world.kill(ids),
            Step::Start(id, start) => {
                if self.register(*id, *start) {
                    let _ = self.world.heartbeat(*id);
                }
            }
            Step::StartWithLoss(id) => {
                if self.register(*id, Start::Killed) {
                    self.complete.remove(id);
                    let lost = vec![self.world.of()];
                    let _ = self.world.say(&Heartbeat { lost, ..self.world.heartbeat_of(*id) });
                }
            }
            Step::Register(id, start) => drop(self.register(*id, *start)),
            Step::Heartbeat(id) => drop(self.world.heartbeat(*id)),
            Step::Stop(id) => {
                let stop = Heartbeat { want_shut_down: true, ..self.world.heartbeat_of(*id) };
                let _ = self.world.say(&stop);
            }
            Step::FailFolder(id) => {
                // A broker says in which folder a replica was before it says that the folder failed.
                self.assign(*id);
                let offline_directories = vec![self.world.disk(*id)];
                let _ = self.world.say(&Heartbeat { offline_directories, ..self.world.heartbeat_of(*id) });
            }
            Step::Assign(id) => self.assign(*id),
            Step::SetIsr(isr) => {
                let isr = self.caught_up(isr);
                self.alter(&self.world.new_isr(&isr));
            }
            Step::Remember(isr) => {
                let isr = self.caught_up(isr);
                self.remembered = Some(self.world.new_isr(&isr));
            }
            Step::Recall => {
                if let Some(command) = self.remembered.take() {
                    self.alter(&command);
                }
            }
            Step::Reassign(replicas) => self.reassign(replicas.as_deref()),
            Step::Elect => self.elect(),
            Step::MinIsr(min) => self.world.set_config("min.insync.replicas", &min.to_string()),
            Step::FailOver => self.world.fail_over(None),
            Step::Unregister(id) => {
                let decision = self.world.controller.unregister_broker(NodeId(*id));
                let _ = self.world.commit(decision);
            }
            Step::Pass(time) => self.world.pass(millis(*time)),
        }
    }

    /// Whether it is registered. Each broker has a second folder, where the topic is not.
    fn register(&mut self, id: i32, start: Start) -> bool {
        let mut registration = self.world.registration(id, start);
        registration.directories.push(Uuid([200 + id as u8; 16]));
        let is_registered = self.world.register(&registration).is_ok();
        if is_registered && start == Start::KilledUnflushed {
            self.complete.remove(&id);
        }
        is_registered
    }

    /// The leader, and those of the others that are there and have caught up by now; nobody if nobody leads.
    fn caught_up(&mut self, wanted: &[i32]) -> Vec<i32> {
        let partition = self.world.partition();
        let leader = partition.leader.0;
        let mut isr: Vec<i32> = Some(leader).into_iter().filter(|leader| *leader >= 0).collect();
        let others = wanted.iter().copied().filter(|id| !isr.is_empty() && *id != leader);
        let others: Vec<i32> = others
            .filter(|id| partition.has_replica(NodeId(*id)) && self.is_there(*id, &partition))
            .collect();
        isr.extend(others);
        self.hold(&isr);
        isr
    }

    fn is_there(&self, id: i32, partition: &Partition) -> bool {
        let broker = self.world.controller.image().brokers.get(NodeId(id));
        let directory = partition.directory(NodeId(id));
        broker.is_some_and(|broker| !broker.fenced && broker.has_directory(directory))
    }

    fn alter(&mut self, command: &AlterPartition) {
        if self.world.partition().leader == NodeId::NONE {
            return;
        }
        let decision = self.world.controller.alter_partition(command);
        let Ok(reply) = self.world.commit(decision) else { return };
        if let Ok(partition) = &reply[0].result {
            assert_eq!(partition, &self.world.partition(), "the answer is what is committed");
        }
    }

    fn reassign(&mut self, replicas: Option<&[i32]>) {
        let reassignment = Reassignment { topic: "t".into(), partition: 0, replicas: replicas.map(nodes) };
        let command = AlterPartitionReassignments {
            allow_replication_factor_change: true,
            reassignments: vec![reassignment],
        };
        let decision = self.world.controller.alter_partition_reassignments(&command);
        self.world.commit(decision);
    }

    fn elect(&mut self) {
        let command = ElectLeaders { election: ElectionType::Preferred, partitions: None };
        let decision = self.world.controller.elect_leaders(&command);
        self.world.commit(decision);
    }

    /// A write commits if it can; then whoever may lead must hold it.
    fn check(&mut self) {
        let partition = self.world.partition();
        let (leader, isr, elr) = self.world.state();
        // What is lost is lost: the last known leader was elected.
        let declared_lost = partition.recovery == LeaderRecovery::Recovering || partition.replicas.len() == 1;
        if declared_lost {
            let waits_for = self.pending();
            self.complete.retain(|id, _| waits_for.contains(id));
            self.hold(&isr);
            self.hold(&elr);
        }
        for id in isr.iter().chain(&elr).filter(|id| self.is_there(**id, &partition)) {
            assert!(
                self.complete.get(id) == Some(&self.place(*id)),
                "{id} may lead and lacks records: {partition:?}"
            );
        }
        if leader != NodeId::NONE.0 && isr.len() >= self.isr_min(partition.replicas.len()) {
            let waits_for = self.pending();
            self.complete.retain(|id, _| isr.contains(id) || waits_for.contains(id));
        }
    }

    /// Who is named in the request that the leader has sent and not heard of: the high watermark waits for them, too.
    fn pending(&self) -> Vec<i32> {
        let partition = self.world.partition();
        let sent = self.remembered.iter().flat_map(|command| &command.partitions);
        let counts = sent.filter(|wanted| {
            (wanted.leader_epoch, wanted.partition_epoch)
                == (partition.leader_epoch, partition.partition_epoch)
        });
        counts.flat_map(|wanted| &wanted.isr).map(|(node, _)| node.0).collect()
    }

    fn isr_min(&self, replicas: usize) -> usize {
        let config = BrokerConfig::default();
        let name = "t".into();
        let configs = &self.world.controller.image().configs;
        let layers = configs.topic_layers(&name, NodeId(1), config.values());
        let value = layers.topic_value(topic_key("min.insync.replicas").expect("a key"));
        (value.and_then(|value| value.integer()).unwrap_or(1) as usize).min(replicas)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]
    #[test]
    fn who_may_lead_holds_all_that_was_committed(
        isr_min in 1..=3_u8,
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut story = Story::new(isr_min);
        for step in &steps {
            story.take(step);
            story.check();
        }
    }
}
