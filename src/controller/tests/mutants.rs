//! Known faults, each put back and caught by a scenario of its own that the true code passes.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};

use controller::{AlterPartitionReassignments, BrokerError, Mutant, Reassignment};
use model::{NodeId, Offset};
use world::{Start, World, millis, nodes};

/// The true code passes; with the fault the scenario ends with this complaint.
fn catches(mutant: Mutant, complaint: &str, scenario: impl Fn(Option<Mutant>)) {
    scenario(None);
    let found = catch_unwind(AssertUnwindSafe(|| scenario(Some(mutant))));
    let found = found.expect_err("the scenario does not notice the fault");
    let text = found.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| found.downcast_ref::<&str>().copied()).unwrap_or_default();
    assert!(text.contains(complaint), "noticed for another reason: {text}");
}

#[test]
fn a_stale_alter_partition_is_refused() {
    catches(Mutant::StaleAlterPartitionTaken, "the late request is refused", |mutant| {
        let mut world = World::new(3, mutant);
        world.topic(&[1, 2, 3], &[]);
        let late = world.new_isr(&[1, 2, 3]);
        world.set_isr(&[1, 2]).expect("smaller");
        assert!(world.alter(&late).is_err(), "the late request is refused");
        assert_eq!(world.state().1, [1, 2]);
    });
}

#[test]
fn a_replica_of_an_earlier_run_does_not_join() {
    // KAFKA-14139: the second broker comes back empty while the leader still asks for it as it was.
    catches(Mutant::OldBrokerEpochTaken, "the empty replica is not in sync", |mutant| {
        let mut world = World::new(3, mutant);
        world.topic(&[1, 2], &[]);
        world.set_isr(&[1]).expect("smaller");
        let delayed = world.new_isr(&[1, 2]);
        world.kill(&[2]);
        world.start(2, Start::EmptyDisk);
        let _ = world.alter(&delayed);
        assert_eq!(world.state().1, [1], "the empty replica is not in sync");
    });
}

#[test]
fn a_fenced_replica_does_not_join() {
    catches(Mutant::FencedReplicaAdded, "the fenced replica is not in sync", |mutant| {
        let mut world = World::new(2, mutant);
        world.topic(&[1, 2], &[]);
        world.kill(&[2]);
        let _ = world.set_isr(&[1, 2]);
        assert_eq!(world.state().1, [1], "the fenced replica is not in sync");
    });
}

#[test]
fn an_empty_disk_is_neither_eligible_nor_the_last_known_leader() {
    catches(Mutant::EmptyDiskCounted, "nobody leads", |mutant| {
        let mut world = World::new(2, mutant);
        world.topic(&[1, 2], &[]);
        world.set_isr(&[1]).expect("smaller");
        world.kill(&[1]);
        assert_eq!(world.state(), (-1, vec![], vec![1]));
        world.start(1, Start::EmptyDisk);
        // The broker makes the log anew, says so, and is restarted.
        world.assign(1, world.disk(1), world.of()).expect("its replica");
        world.kill(&[1]);
        world.start(1, Start::Killed);
        assert_eq!(world.state(), (-1, vec![], vec![]), "nobody leads");
    });
}

#[test]
fn a_replica_that_lost_records_is_not_eligible() {
    catches(Mutant::LostRecordsIgnored, "who lost records is not eligible", |mutant| {
        let mut world = World::new(3, mutant);
        world.topic(&[1, 2], &[("min.insync.replicas", "2")]);
        world.kill(&[2]);
        assert_eq!(world.state(), (1, vec![1], vec![2]));
        let registration = world.registration(2, Start::Killed);
        world.register(&registration).expect("registered");
        let mut heartbeat = world.heartbeat_of(2);
        heartbeat.lost.push(world.of());
        world.say(&heartbeat).expect("its epoch");
        assert!(world.state().2.is_empty(), "who lost records is not eligible");
    });
}

#[test]
fn a_fenced_last_known_leader_is_not_elected() {
    // KAFKA-19522: it registers again, and is not unfenced yet.
    catches(Mutant::FencedLastKnownLeaderElected, "nobody leads", |mutant| {
        let mut world = World::new(2, mutant);
        world.topic(&[1, 2], &[("write.caching", "true")]);
        world.set_isr(&[1]).expect("smaller");
        world.kill(&[1]);
        let registration = world.registration(1, Start::Killed);
        world.register(&registration).expect("registered");
        assert_eq!(world.state().0, -1, "nobody leads");
        assert_eq!(world.partition().last_known_elr, nodes(&[1]));
        world.heartbeat(1).expect("its epoch");
        assert_eq!(world.state().0, 1, "once it is back it leads");
    });
}

#[test]
fn another_minimum_forgets_who_was_eligible() {
    // KAFKA-16540: by the lower minimum the leader alone commits what the eligible replica does not have.
    catches(Mutant::ElrKeptAfterMinIsrChange, "who was eligible is forgotten", |mutant| {
        let mut world = World::new(2, mutant);
        world.topic(&[1, 2], &[("min.insync.replicas", "2")]);
        world.kill(&[2]);
        assert_eq!(world.state(), (1, vec![1], vec![2]));
        world.set_config("min.insync.replicas", "1");
        assert!(world.state().2.is_empty(), "who was eligible is forgotten");
    });
}

#[test]
fn a_broker_is_unfenced_when_it_has_read_its_registration() {
    catches(Mutant::UnfencedTooEarly, "it is fenced until it knows of itself", |mutant| {
        let mut world = World::new(1, mutant);
        let registration = world.registration(2, Start::Killed);
        let epoch = world.register(&registration).expect("registered");
        let mut heartbeat = world.heartbeat_of(2);
        heartbeat.metadata_offset = Offset(epoch.0 - 1);
        let reply = world.say(&heartbeat).expect("its epoch");
        assert!(!reply.is_caught_up);
        assert!(reply.is_fenced && world.is_fenced(2), "it is fenced until it knows of itself");
    });
}

#[test]
fn a_broker_that_died_while_controllers_changed_is_fenced() {
    // KAFKA-18138: the new controller never heard of it.
    catches(Mutant::SilentBrokerForgotten, "the silent broker is fenced", |mutant| {
        let mut world = World::new(2, mutant);
        world.silence(2);
        world.fail_over(mutant);
        world.pass(millis(9_500));
        assert!(world.is_fenced(2), "the silent broker is fenced");
        assert!(!world.is_fenced(1));
    });
}

#[test]
fn nobody_takes_the_id_of_a_broker_that_lives() {
    catches(Mutant::DuplicateTaken, "refused", |mutant| {
        let mut world = World::new(2, mutant);
        let second = world.registration(2, Start::Killed);
        assert_eq!(world.register(&second), Err(BrokerError::Duplicate), "refused");
        assert!(world.controller.image().brokers.get(NodeId(2)).is_some_and(|broker| !broker.fenced));
    });
}

#[test]
fn a_reassignment_waits_for_who_comes() {
    // KAFKA-15665.
    catches(Mutant::ReassignmentEndsEarly, "two copies are left", |mutant| {
        let mut world = World::new(3, mutant);
        world.topic(&[1, 2], &[]);
        let reassignment = Reassignment { topic: "t".into(), partition: 0, replicas: Some(nodes(&[1, 3])) };
        let command = AlterPartitionReassignments {
            allow_replication_factor_change: false,
            reassignments: vec![reassignment],
        };
        let decision = world.controller.alter_partition_reassignments(&command);
        assert_eq!(world.commit(decision)[0].result, Ok(()));
        assert_eq!(world.state().1, [1, 2], "two copies are left");
    });
}

#[test]
fn every_mutant_has_a_scenario() {
    let named = include_str!("mutants.rs");
    for mutant in Mutant::ALL {
        assert!(named.contains(&format!("catches(Mutant::{mutant:?}, ")), "{mutant:?}");
    }
}
