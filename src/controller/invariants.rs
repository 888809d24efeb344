//! Whatever is asked of the controller, in whatever order: its decisions fit, and the image stays one that makes sense.

use metadata::{ConfigResource, Image, Partition};
use model::{BrokerEpoch, ClusterId, NodeId, Uuid};
use proptest::prelude::*;

use crate::testing::{NOW, commit, controller_at, counter, folder, heartbeat};
use crate::{
    AlterConfig, AlterOp, AlterResource, ConnectionId, Controller, CreatePartitions, CreateTopics,
    DeleteTopic, NewPartitions, NewTopic, Registration,
};

const NODES: std::ops::Range<i32> = 1..4;

#[derive(Clone, Debug)]
enum Step {
    Start { node: i32, clean: bool, same_disk: bool },
    Unfence { node: i32 },
    Create { name: usize, partitions: i32, factor: i16 },
    Delete { name: usize },
    Grow { name: usize, count: i32 },
    Alter { name: usize, key: &'static str, op: AlterOp, value: &'static str },
    ProducerIds { node: i32 },
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..4_usize;
    let op = prop_oneof![
        Just(AlterOp::Set),
        Just(AlterOp::Delete),
        Just(AlterOp::Append),
        Just(AlterOp::Subtract)
    ];
    let pair = prop_oneof![
        Just(("min.insync.replicas", "2")),
        Just(("min.insync.replicas", "1")),
        Just(("write.caching", "true")),
        Just(("cleanup.policy", "compact")),
        Just(("unclean.leader.election.enable", "true")),
        Just(("nosuch", "x")),
    ];
    prop_oneof![
        3 => (NODES, any::<bool>(), any::<bool>())
            .prop_map(|(node, clean, same_disk)| Step::Start { node, clean, same_disk }),
        3 => NODES.prop_map(|node| Step::Unfence { node }),
        3 => (name.clone(), -1..4_i32, -1..4_i16)
            .prop_map(|(name, partitions, factor)| Step::Create { name, partitions, factor }),
        1 => name.clone().prop_map(|name| Step::Delete { name }),
        1 => (name.clone(), 0..6_i32).prop_map(|(name, count)| Step::Grow { name, count }),
        2 => (name, pair, op).prop_map(|(name, (key, value), op)| Step::Alter { name, key, op, value }),
        1 => NODES.prop_map(|node| Step::ProducerIds { node }),
    ]
}

fn topic_name(name: usize) -> String {
    ["plain", "with.dot", "with_dot", "not valid"][name].to_owned()
}

fn epoch(controller: &Controller, node: i32) -> BrokerEpoch {
    controller.image().brokers.get(NodeId(node)).map_or(BrokerEpoch(-1), |broker| broker.epoch)
}

fn registration(controller: &Controller, node: i32, clean: bool, same_disk: bool, run: u8) -> Registration {
    let features = controller.image().features.iter();
    let range = |(name, level): (&str, i16)| metadata::FeatureRange { name: name.into(), min: 0, max: level };
    Registration {
        cluster_id: ClusterId::from("c"),
        id: NodeId(node),
        incarnation: Uuid([run; 16]),
        endpoints: Vec::new(),
        features: features.map(range).collect(),
        rack: None,
        directories: vec![if same_disk { folder(node) } else { Uuid([run; 16]) }],
        previous_epoch: clean.then(|| epoch(controller, node)),
        durable: true,
        connection: ConnectionId(u64::from(run)),
    }
}

fn take(controller: &mut Controller, step: &Step, run: u8) {
    let mut random = counter();
    match step {
        Step::Start { node, clean, same_disk } => {
            let registration = registration(controller, *node, *clean, *same_disk, run);
            let log_end = controller.image().end();
            controller.sessions.forget(&[NodeId(*node)]);
            let decision = controller.register_broker(&registration, log_end, NOW);
            let _ = commit(controller, decision);
        }
        Step::Unfence { node } => {
            let decision = controller.heartbeat(&heartbeat(controller, *node), NOW);
            let _ = commit(controller, decision);
        }
        Step::Create { name, partitions, factor } => {
            let topic = NewTopic {
                name: topic_name(*name),
                partitions: *partitions,
                replication_factor: *factor,
                ..NewTopic::default()
            };
            let command = CreateTopics { topics: vec![topic], validate_only: false };
            let decision = controller.create_topics(&command, &mut random);
            commit(controller, decision);
        }
        Step::Delete { name } => {
            let topic = DeleteTopic { name: Some(topic_name(*name)), id: Uuid::ZERO };
            let decision = controller.delete_topics(&[topic]);
            commit(controller, decision);
        }
        Step::Grow { name, count } => {
            let topic = NewPartitions { name: topic_name(*name), count: *count, assignments: None };
            let command = CreatePartitions { topics: vec![topic], validate_only: false };
            let decision = controller.create_partitions(&command, &mut random);
            commit(controller, decision);
        }
        Step::Alter { name, key, op, value } => {
            let change = AlterConfig { name: (*key).into(), op: *op, value: Some((*value).into()) };
            let resource = ConfigResource::topic(&topic_name(*name));
            let resource = AlterResource {
                kind: resource.kind.code(),
                name: resource.name,
                changes: vec![change],
                replace: false,
            };
            let decision = controller.alter_configs(&[resource], Some(NodeId(1)), false);
            commit(controller, decision);
        }
        Step::ProducerIds { node } => {
            let before = controller.image().producer_ids.next();
            let decision = controller.allocate_producer_ids(NodeId(*node), epoch(controller, *node));
            if let Ok(block) = commit(controller, decision) {
                assert!(block.first.0 >= before, "no id twice");
            }
        }
    }
}

fn check(image: &Image) {
    for topic in image.topics.iter() {
        assert!(topic.partitions.keys().copied().eq(0..topic.partitions.len() as i32), "no gap");
        topic.partitions.values().for_each(|partition| check_partition(image, partition));
    }
    let again = Image::from_snapshot(&image.to_records(), image.end());
    assert_eq!(again.as_ref(), Ok(image), "a snapshot is the image");
}

fn check_partition(image: &Image, partition: &Partition) {
    let Partition { replicas, isr, elr, leader, .. } = partition;
    assert_eq!(partition.directories.len(), replicas.len());
    assert!(isr.iter().chain(elr).all(|node| replicas.contains(node)), "only replicas: {partition:?}");
    assert!(isr.iter().all(|node| !elr.contains(node)), "in sync or eligible, not both: {partition:?}");
    if *leader == NodeId::NONE {
        return;
    }
    assert!(isr.contains(leader), "the leader is in sync: {partition:?}");
    assert!(
        image.brokers.get(*leader).is_some_and(|broker| !broker.fenced),
        "the leader is there: {partition:?}"
    );
}

proptest! {
    #[test]
    fn every_decision_fits_and_leaves_an_image_that_makes_sense(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut controller = controller_at(Image::default());
        let decision = controller.bootstrap();
        commit(&mut controller, decision);
        for (run, step) in (1..).zip(&steps) {
            take(&mut controller, step, run);
            check(controller.image());
        }
    }
}
