//! Internal topics that grow with the cluster.

mod world;

use std::time::Duration;

use controller::{AlterPartition, CreateTopics, NewIsr};
use metadata::config::BrokerConfig;
use metadata::{ConfigResource, Topic};
use model::{NodeId, TopicName};
use world::{Start, World};

const OFFSETS: &str = "__consumer_offsets";
const SOON: Duration = Duration::from_secs(2);

fn topic(world: &World) -> Topic {
    (**world.controller.image().topics.by_name(OFFSETS).expect("the topic")).clone()
}

/// One node, which made the topic.
fn alone() -> World {
    let mut world = World::new(1, None);
    let (image, broker) = (world.controller.image(), BrokerConfig::default());
    let topics = controller::auto_topics(image, &broker, &[TopicName::from(OFFSETS)]);
    let mut random = 0;
    let decision =
        world.controller.create_topics(&CreateTopics { topics, validate_only: false }, &mut || {
            random += 1;
            random
        });
    assert!(world.commit(decision)[0].result.is_ok());
    world
}

fn min_isr(world: &World) -> Option<String> {
    world.controller.image().configs.of(&ConfigResource::topic(OFFSETS)).get("min.insync.replicas").cloned()
}

/// All that was added has caught up.
fn catch_up(world: &mut World) {
    let topic = topic(world);
    for (index, partition) in &topic.partitions {
        let isr = partition.replicas.iter().map(|node| (*node, Some(world.epoch(node.0)))).collect();
        let wanted = NewIsr {
            topic: topic.id,
            partition: *index,
            leader_epoch: partition.leader_epoch,
            partition_epoch: partition.partition_epoch,
            isr,
            recovery: partition.recovery,
        };
        let (broker, broker_epoch) = (partition.leader, world.epoch(partition.leader.0));
        let command = AlterPartition { broker, broker_epoch, partitions: vec![wanted] };
        world.alter(&command).expect("larger");
    }
}

#[test]
fn alone_a_node_keeps_to_itself() {
    let mut world = alone();
    world.pass(SOON);
    assert!(topic(&world).partitions.values().all(|partition| partition.replicas == [NodeId(1)]));
}

#[test]
fn replicas_come_with_the_nodes_and_the_minimum_follows_when_they_are_in_sync() {
    let mut world = alone();
    for (node, replicas) in [(2, 2), (3, 3)] {
        world.start(node, Start::Killed);
        world.pass(SOON);
        assert!(topic(&world).partitions.values().all(|partition| partition.replicas.len() == replicas));
        assert_eq!(min_isr(&world), None, "they have not caught up");
        catch_up(&mut world);
    }
    world.pass(SOON);
    assert_eq!(min_isr(&world).as_deref(), Some("2"));
    assert!(world.controller.list_partition_reassignments(None).is_empty());
    let end = world.controller.image().end();
    world.start(4, Start::Killed);
    world.pass(SOON);
    assert!(topic(&world).partitions.values().all(|partition| partition.replicas.len() == 3));
    assert!(world.controller.image().end().0 - end.0 < 5, "a fourth node changes nothing");
}

#[test]
fn replicas_are_spread() {
    let mut world = alone();
    (2..=5).for_each(|node| world.start(node, Start::Killed));
    world.pass(SOON);
    let topic = topic(&world);
    for node in 2..=5 {
        let load = topic.partitions.values().filter(|partition| partition.has_replica(NodeId(node))).count();
        assert_eq!(load, 25, "{node}");
    }
}

#[test]
fn what_was_set_by_hand_stays() {
    let mut world = alone();
    world.set_config_of(OFFSETS, "min.insync.replicas", "1");
    (2..=3).for_each(|node| world.start(node, Start::Killed));
    world.pass(SOON);
    catch_up(&mut world);
    world.pass(SOON);
    assert_eq!(min_isr(&world).as_deref(), Some("1"));
}
