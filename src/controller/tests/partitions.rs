//! ISRs, elections and reassignments of one partition.

mod world;

use std::time::Duration;

use controller::{
    AlterPartitionError, AlterPartitionReassignments, ElectLeaders, ElectionError, ElectionType,
    Reassignment, ReassignmentError,
};
use metadata::LeaderRecovery;
use model::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, PartitionEpoch, Uuid};
use world::{Start, World, millis, nodes};

// AlterPartition.

fn code(result: Result<metadata::Partition, AlterPartitionError>) -> ErrorCode {
    result.expect_err("refused").into()
}

#[test]
fn an_isr_grows_and_shrinks_without_a_new_leader_epoch() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    let before = world.partition();
    let smaller = world.set_isr(&[1, 2]).expect("smaller");
    assert_eq!(smaller, world.partition(), "the answer is what is committed");
    world.set_isr(&[1, 2, 3]).expect("larger");
    let after = world.partition();
    assert_eq!(after.leader_epoch, before.leader_epoch);
    assert_eq!(after.partition_epoch.0, before.partition_epoch.0 + 2);
}

#[test]
fn the_same_isr_again_changes_nothing() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    let before = world.partition();
    assert_eq!(world.set_isr(&[1, 2]).as_ref(), Ok(&before));
    assert_eq!(world.partition(), before);
}

#[test]
fn an_alter_partition_is_checked_in_kafkas_order() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    world.set_isr(&[1, 2]).expect("smaller");
    let right = world.new_isr(&[1, 2, 3]);
    // Each request is wrong in all that comes after, too.
    let mut wrong = right.clone();
    let partition = &mut wrong.partitions[0];
    partition.isr = vec![(NodeId(1), None), (NodeId(7), None)];
    assert_eq!(code(world.alter(&wrong)), ErrorCode::InvalidRequest, "7 is no replica");
    wrong.partitions[0].partition_epoch = PartitionEpoch(0);
    assert_eq!(code(world.alter(&wrong)), ErrorCode::InvalidUpdateVersion);
    (wrong.broker, wrong.broker_epoch) = (NodeId(2), world.epoch(2));
    assert_eq!(code(world.alter(&wrong)), ErrorCode::InvalidRequest, "2 does not lead");
    wrong.partitions[0].leader_epoch = LeaderEpoch(-1);
    assert_eq!(code(world.alter(&wrong)), ErrorCode::FencedLeaderEpoch);
    wrong.partitions[0].partition_epoch = PartitionEpoch(50);
    assert_eq!(code(world.alter(&wrong)), ErrorCode::NotController, "the partition epoch is ahead");
    wrong.partitions[0].leader_epoch = LeaderEpoch(50);
    assert_eq!(code(world.alter(&wrong)), ErrorCode::NotController, "the leader epoch is ahead");
    wrong.partitions[0].partition = 9;
    assert_eq!(code(world.alter(&wrong)), ErrorCode::UnknownTopicOrPartition);
    wrong.partitions[0].topic = Uuid([9; 16]);
    assert_eq!(code(world.alter(&wrong)), ErrorCode::UnknownTopicId);
    wrong.broker_epoch = BrokerEpoch(-5);
    let error = world.controller.alter_partition(&wrong).reply.expect_err("an old epoch");
    assert_eq!(ErrorCode::from(&error), ErrorCode::StaleBrokerEpoch);
    assert!(world.alter(&right).is_ok());
}

#[test]
fn the_leader_is_in_its_isr_and_nobody_twice() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    for isr in [&[2][..], &[], &[1, 1]] {
        assert_eq!(world.set_isr(isr), Err(AlterPartitionError::InvalidIsr), "{isr:?}");
    }
}

#[test]
fn an_epoch_that_the_leader_does_not_know_is_not_asked_for() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    world.set_isr(&[1]).expect("smaller");
    let mut command = world.new_isr(&[1, 2]);
    command.partitions[0].isr[1].1 = None;
    assert!(world.alter(&command).is_ok());
}

#[test]
fn a_partition_that_is_named_twice_changes_once() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    let mut command = world.new_isr(&[1, 2]);
    command.partitions.push(world.new_isr(&[1]).partitions.remove(0));
    let decision = world.controller.alter_partition(&command);
    let reply = world.commit(decision).expect("its epoch");
    assert_eq!(reply[1].result, Err(AlterPartitionError::OldPartitionEpoch));
    assert_eq!(world.state().1, [1, 2]);
}

#[test]
fn a_leader_that_recovers_is_alone_until_it_has() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[("unclean.leader.election.enable", "true")]);
    world.set_isr(&[1]).expect("smaller");
    world.kill(&[1]);
    assert_eq!(world.state(), (2, vec![2], vec![]), "an unclean leader");
    assert_eq!(world.partition().recovery, LeaderRecovery::Recovering);
    world.start(1, Start::Killed);
    let mut command = world.new_isr(&[2, 1]);
    command.partitions[0].recovery = LeaderRecovery::Recovering;
    assert_eq!(world.alter(&command), Err(AlterPartitionError::InvalidRecovery));
    assert!(world.set_isr(&[2]).is_ok());
    assert_eq!(world.partition().recovery, LeaderRecovery::Recovered);
    let mut again = world.new_isr(&[2]);
    again.partitions[0].recovery = LeaderRecovery::Recovering;
    assert_eq!(world.alter(&again), Err(AlterPartitionError::InvalidRecovery));
}

// Elections.

fn elect(world: &mut World, election: ElectionType) -> Vec<Result<(), ElectionError>> {
    let command = ElectLeaders { election, partitions: Some(vec![("t".into(), 0)]) };
    let decision = world.controller.elect_leaders(&command);
    world.commit(decision).into_iter().map(|elected| elected.result).collect()
}

/// Led by 2, with 1 in sync again.
fn imbalanced() -> World {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    world.kill(&[1]);
    world.start(1, Start::Killed);
    world
}

#[test]
fn the_preferred_replica_leads_when_it_is_in_sync() {
    let mut world = imbalanced();
    let missing = ElectionError::PreferredLeaderNotAvailable;
    assert_eq!(elect(&mut world, ElectionType::Preferred), [Err(missing)]);
    world.set_isr(&[2, 3, 1]).expect("larger");
    assert_eq!(elect(&mut world, ElectionType::Preferred), [Ok(())]);
    assert_eq!(world.state(), (1, vec![2, 3, 1], vec![]));
    assert_eq!(elect(&mut world, ElectionType::Preferred), [Err(ElectionError::NotNeeded)]);
}

#[test]
fn an_election_for_all_partitions_says_which_needed_none() {
    let mut world = imbalanced();
    world.set_isr(&[2, 3, 1]).expect("larger");
    for elected in [1, 0] {
        let command = ElectLeaders { election: ElectionType::Preferred, partitions: None };
        let decision = world.controller.elect_leaders(&command);
        let told = world.commit(decision);
        assert!(!told.is_empty());
        assert_eq!(told.iter().filter(|one| one.result.is_ok()).count(), elected);
    }
}

#[test]
fn an_unclean_election_is_for_who_has_no_leader() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    world.set_isr(&[1]).expect("smaller");
    assert_eq!(elect(&mut world, ElectionType::Unclean), [Err(ElectionError::NotNeeded)]);
    world.kill(&[1]);
    assert_eq!(world.state().0, -1);
    assert_eq!(elect(&mut world, ElectionType::Unclean), [Ok(())]);
    assert_eq!(world.state(), (2, vec![2], vec![]));
    world.kill(&[2]);
    let missing = ElectionError::EligibleLeadersNotAvailable;
    assert_eq!(elect(&mut world, ElectionType::Unclean), [Err(missing)]);
}

#[test]
fn an_unclean_election_comes_as_soon_as_it_is_allowed() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    world.set_isr(&[1]).expect("smaller");
    world.kill(&[1]);
    assert_eq!(world.state().0, -1);
    world.set_config("unclean.leader.election.enable", "true");
    assert_eq!(world.state().0, 2);
}

#[test]
fn leadership_goes_back_by_itself() {
    let mut world = imbalanced();
    world.set_isr(&[2, 3, 1]).expect("larger");
    world.pass(Duration::from_mins(5));
    assert_eq!(world.state().0, 1);
}

#[test]
fn leadership_stays_where_it_is_told_to() {
    let mut world = World::with_config(3, None, &[("auto.leader.rebalance.enable", "false")]);
    world.topic(&[1, 2, 3], &[]);
    world.kill(&[1]);
    world.start(1, Start::Killed);
    world.set_isr(&[2, 3, 1]).expect("larger");
    world.pass(Duration::from_mins(6));
    assert_eq!(world.state().0, 2);
}

// Reassignments.

fn reassign(world: &mut World, replicas: Option<&[i32]>) -> Result<(), ReassignmentError> {
    let reassignment = Reassignment { topic: "t".into(), partition: 0, replicas: replicas.map(nodes) };
    let command = AlterPartitionReassignments {
        allow_replication_factor_change: true,
        reassignments: vec![reassignment],
    };
    let decision = world.controller.alter_partition_reassignments(&command);
    world.commit(decision).remove(0).result
}

#[test]
fn a_reassignment_adds_waits_and_removes() {
    let mut world = World::new(4, None);
    world.topic(&[1, 2, 3], &[]);
    let epoch = world.partition().leader_epoch;
    assert_eq!(reassign(&mut world, Some(&[1, 2, 4])), Ok(()));
    let moving = world.partition();
    assert_eq!(moving.replicas, nodes(&[1, 2, 4, 3]));
    assert_eq!((moving.adding_replicas, moving.removing_replicas), (nodes(&[4]), nodes(&[3])));
    assert_eq!(moving.directories[2], world.disk(4));
    assert_eq!(moving.leader_epoch, epoch, "nobody is gone yet");
    let ongoing = world.controller.list_partition_reassignments(None);
    assert_eq!((ongoing.len(), &ongoing[0].adding), (1, &nodes(&[4])));
    assert!(world.controller.list_partition_reassignments(Some(&[("t".into(), vec![1])])).is_empty());

    world.set_isr(&[1, 2, 3, 4]).expect("larger");
    let done = world.partition();
    assert_eq!((done.replicas, done.isr), (nodes(&[1, 2, 4]), nodes(&[1, 2, 4])));
    assert_eq!(done.leader_epoch.0, epoch.0 + 1, "who is gone cannot be counted");
    assert!(world.controller.list_partition_reassignments(None).is_empty());
}

#[test]
fn a_leader_that_a_reassignment_removes_hears_of_the_next_one() {
    let mut world = World::new(2, None);
    world.topic(&[1], &[]);
    assert_eq!(reassign(&mut world, Some(&[2])), Ok(()));
    assert_eq!(world.set_isr(&[1, 2]), Err(AlterPartitionError::NewLeaderElected));
    assert_eq!(world.state(), (2, vec![2], vec![]));
    assert_eq!(world.partition().replicas, nodes(&[2]));
}

#[test]
fn replicas_in_another_order_are_so_at_once() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    let epoch = world.partition().leader_epoch;
    assert_eq!(reassign(&mut world, Some(&[3, 2, 1])), Ok(()));
    let partition = world.partition();
    assert_eq!((partition.replicas, partition.leader), (nodes(&[3, 2, 1]), NodeId(1)));
    assert_eq!(partition.directories[0], world.disk(3), "folders go along");
    assert_eq!(partition.leader_epoch, epoch);
}

#[test]
fn fewer_replicas_must_all_be_in_sync_before_the_others_go() {
    // KAFKA-15665.
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    world.set_isr(&[1, 3]).expect("smaller");
    assert_eq!(reassign(&mut world, Some(&[1, 2])), Ok(()));
    assert_eq!(world.partition().replicas, nodes(&[1, 2, 3]), "2 has not caught up");
    world.set_isr(&[1, 2, 3]).expect("larger");
    assert_eq!(world.partition().replicas, nodes(&[1, 2]));
}

#[test]
fn a_replica_that_is_away_does_not_hold_up_a_reassignment_that_adds() {
    // KAFKA-19975.
    let mut world = World::new(4, None);
    world.topic(&[1, 2, 3], &[]);
    world.kill(&[2]);
    assert_eq!(reassign(&mut world, Some(&[1, 2, 4])), Ok(()));
    world.set_isr(&[1, 3, 4]).expect("larger");
    assert_eq!(world.partition().replicas, nodes(&[1, 2, 4]));
}

#[test]
fn a_reassignment_that_is_called_off_leaves_what_was() {
    let mut world = World::new(4, None);
    world.topic(&[1, 2], &[]);
    assert_eq!(reassign(&mut world, None), Err(ReassignmentError::NotInProgress));
    assert_eq!(reassign(&mut world, Some(&[3, 4])), Ok(()));
    world.set_isr(&[1, 2, 3]).expect("larger");
    assert_eq!(reassign(&mut world, None), Ok(()));
    let partition = world.partition();
    assert_eq!((&partition.replicas, &partition.isr), (&nodes(&[1, 2]), &nodes(&[1, 2])));
    assert!(!partition.is_reassigning());
}

#[test]
fn a_reassignment_whose_new_replicas_alone_are_in_sync_is_not_called_off() {
    let mut world = World::new(3, None);
    world.topic(&[1], &[]);
    assert_eq!(reassign(&mut world, Some(&[2, 3])), Ok(()));
    world.set_isr(&[1, 2]).expect("larger");
    world.kill(&[1]);
    assert_eq!(world.state(), (2, vec![2], vec![]));
    let error = reassign(&mut world, None).expect_err("refused");
    assert_eq!(ErrorCode::from(&error), ErrorCode::InvalidReplicaAssignment);
    world.set_config("unclean.leader.election.enable", "true");
    assert_eq!(reassign(&mut world, None), Ok(()));
    assert_eq!(world.state(), (-1, vec![], vec![]), "nobody has a copy, and 1 is away");
    world.start(1, Start::Killed);
    assert_eq!(world.state(), (1, vec![1], vec![]));
}

#[test]
fn the_target_changes_while_replicas_come() {
    let mut world = World::new(5, None);
    world.topic(&[1, 2], &[]);
    assert_eq!(reassign(&mut world, Some(&[1, 3])), Ok(()));
    assert_eq!(reassign(&mut world, Some(&[1, 3])), Ok(()), "the same again");
    assert_eq!(world.partition().adding_replicas, nodes(&[3]), "it is still coming");
    assert_eq!(reassign(&mut world, Some(&[1, 4])), Ok(()));
    let partition = world.partition();
    assert_eq!(partition.adding_replicas, nodes(&[4]));
    assert_eq!(partition.removing_replicas, nodes(&[2, 3]));
    world.set_isr(&[1, 2, 4]).expect("larger");
    assert_eq!(world.partition().replicas, nodes(&[1, 4]));
}

#[test]
fn reassignments_are_refused_in_kafkas_words() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[]);
    let mut refusal = |topic: &str, partition, replicas: &[i32]| {
        let reassignment = Reassignment { topic: topic.into(), partition, replicas: Some(nodes(replicas)) };
        let command = AlterPartitionReassignments {
            allow_replication_factor_change: false,
            reassignments: vec![reassignment],
        };
        let decision = world.controller.alter_partition_reassignments(&command);
        let error = world.commit(decision).remove(0).result.expect_err("refused");
        (ErrorCode::from(&error), error.to_string())
    };
    let unknown = ErrorCode::UnknownTopicOrPartition;
    assert_eq!(refusal("x", 0, &[1, 2]), (unknown, "Unable to find a topic named x.".into()));
    assert_eq!(refusal("t", 5, &[1, 2]), (unknown, "Unable to find partition t:5.".into()));
    assert_eq!(
        refusal("t", 0, &[1]),
        (ErrorCode::InvalidReplicationFactor, "The replication factor is changed from 2 to 1".into())
    );
    assert_eq!(refusal("t", 0, &[1, 9]).0, ErrorCode::InvalidReplicaAssignment);
    assert_eq!(refusal("t", 0, &[1, 1]).0, ErrorCode::InvalidReplicaAssignment);
}

#[test]
fn time_alone_changes_nothing() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    let end = world.controller.image().end();
    world.pass(millis(20_000));
    assert_eq!(world.controller.image().end(), end);
}
