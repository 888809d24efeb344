//! Whatever is asked of the controller and whatever becomes of its brokers, in whatever order: the image makes sense, and
//! every replica that may lead holds all that was committed.
//!
//! Who holds all of it is kept beside the controller: while enough are in sync a write commits at every moment, and then
//! those in sync hold it and nobody else does.

mod world;

use std::collections::BTreeMap;

use controller::{AlterPartitionReassignments, ElectLeaders, ElectionType, Heartbeat, Reassignment};
use metadata::LeaderRecovery;
use metadata::config::{BrokerConfig, topic_key};
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
    remembered: Option<controller::AlterPartition>,
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
        let held = ids.iter().map(|id| (*id, self.world.disk(*id)));
        self.complete.extend(held);
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
                let _ = self.world.try_assign(*id);
                let offline_directories = vec![self.world.disk(*id)];
                let _ = self.world.say(&Heartbeat { offline_directories, ..self.world.heartbeat_of(*id) });
            }
            Step::Assign(id) => drop(self.world.try_assign(*id)),
            Step::SetIsr(isr) => {
                let isr = self.caught_up(isr);
                self.alter(&self.world.new_isr(&isr));
            }
            Step::Remember(isr) => self.remembered = Some(self.world.new_isr(&self.caught_up(isr))),
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
        let is_same_disk = self.complete.get(&id) == Some(&self.world.disk(id));
        if is_registered && (start == Start::KilledUnflushed || !is_same_disk) {
            self.complete.remove(&id);
        }
        is_registered
    }

    /// A leader asks for who has caught up: all that it leads with.
    fn caught_up(&self, wanted: &[i32]) -> Vec<i32> {
        let partition = self.world.partition();
        let mut isr: Vec<i32> = wanted.iter().copied().filter(|id| *id != partition.leader.0).collect();
        isr.retain(|id| partition.has_replica(NodeId(*id)));
        isr.insert(0, partition.leader.0);
        isr
    }

    fn alter(&mut self, command: &controller::AlterPartition) {
        if self.world.partition().leader == NodeId::NONE {
            return;
        }
        let decision = self.world.controller.alter_partition(command);
        let Ok(reply) = self.world.commit(decision) else { return };
        if let Ok(partition) = &reply[0].result {
            assert_eq!(partition, &self.world.partition(), "the answer is what is committed");
            self.hold(&self.world.state().1);
        }
        if reply[0].result == Err(controller::AlterPartitionError::NewLeaderElected) {
            self.hold(&self.world.state().1);
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
            self.complete.clear();
            self.hold(&isr);
            self.hold(&elr);
        }
        let is_there = |id: &&i32| !self.world.is_fenced(**id);
        for id in isr.iter().chain(&elr).filter(is_there) {
            assert!(self.complete.contains_key(id), "{id} may lead and lacks records: {partition:?}");
        }
        if leader != NodeId::NONE.0 && isr.len() >= self.isr_min(partition.replicas.len()) {
            self.complete.retain(|id, _| isr.contains(id));
        }
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
