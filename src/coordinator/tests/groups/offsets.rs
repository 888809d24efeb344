//! Offsets: who may commit, what is fetched, deleted, and what expires.

use std::time::Duration;

use coordinator::{
    Commit, CoordinatorRecord, DeleteOffsets, FetchOffsets, Generation, GroupState, Join, TopicPartitions,
};
use model::{ErrorCode, LeaderEpoch, MemberId, Offset, Timestamp, TopicId, TopicName, TopicPartition, Uuid};

use crate::harness::{GROUP, World, commit, join, only_error};

const DAY: Duration = Duration::from_hours(24);

fn partitions(topic: &str, partitions: &[i32]) -> TopicPartitions {
    TopicPartitions { topic: topic.into(), topic_id: TopicId::ZERO, partitions: partitions.to_vec() }
}

fn fetch(world: &World, topic: &str, partition: i32) -> Offset {
    fetch_by_id(world, topic, TopicId::ZERO, partition)
}

fn fetch_by_id(world: &World, topic: &str, topic_id: TopicId, partition: i32) -> Offset {
    let topics = Some(vec![TopicPartitions { topic_id, ..partitions(topic, &[partition]) }]);
    world.groups.fetch_offsets(&FetchOffsets { group_id: GROUP.into(), topics })[0].partitions[0].offset
}

fn by(member_id: &MemberId, generation: Generation) -> Commit {
    Commit { member_id: member_id.clone(), generation, ..commit("topic", 0, 9) }
}

fn delete(world: &mut World, topic: &str) -> Result<ErrorCode, ErrorCode> {
    let delete = DeleteOffsets { group_id: GROUP.into(), topics: vec![partitions(topic, &[0])] };
    let outcome = world.groups.handle_delete_offsets(&delete);
    world.settle(outcome).expect("the append goes well").map(|topics| only_error(&topics))
}

fn expire(world: &mut World) {
    let outcome = world.groups.handle_expiry(world.at.wall);
    world.settle(outcome);
}

#[test]
fn what_nobody_in_particular_commits_makes_a_simple_group() {
    let mut world = World::new();
    assert_eq!(only_error(&world.commit(commit("topic", 1, 42))), ErrorCode::None);
    assert_eq!(fetch(&world, "topic", 1), Offset(42));
    assert_eq!(world.state(), GroupState::Empty);
    assert_eq!(&*world.groups.describe(&GROUP.into()).protocol_type, "");
}

#[test]
fn all_that_was_committed_comes_back() {
    let mut world = World::new();
    world.commit(commit("b", 1, 42));
    world.commit(commit("a", 3, 7));
    let topics = world.groups.fetch_offsets(&FetchOffsets { group_id: GROUP.into(), topics: None });
    let offset = &topics[0].partitions[0];
    assert_eq!((topics[0].topic.as_str(), offset.partition, offset.offset), ("a", 3, Offset(7)));
    assert_eq!((offset.leader_epoch, &*offset.metadata), (LeaderEpoch(3), "note"));
    assert_eq!(topics[1].topic.as_str(), "b");
}

#[test]
fn what_was_not_committed_is_minus_one() {
    let mut world = World::new();
    assert_eq!(fetch(&world, "topic", 0), Offset(-1), "no such group");
    world.commit(commit("topic", 0, 1));
    assert_eq!(fetch(&world, "topic", 9), Offset(-1));
    assert_eq!(fetch(&world, "other", 0), Offset(-1));
}

#[test]
fn an_offset_of_an_earlier_topic_of_that_name_does_not_count() {
    let mut world = World::new();
    let mut with_id = commit("topic", 0, 1);
    with_id.topics[0].topic_id = Uuid([1; 16]);
    world.commit(with_id);
    assert_eq!(fetch_by_id(&world, "topic", Uuid([1; 16]), 0), Offset(1));
    assert_eq!(fetch_by_id(&world, "topic", Uuid([2; 16]), 0), Offset(-1));
    assert_eq!(fetch(&world, "topic", 0), Offset(1));
}

#[test]
fn members_commit_in_their_generation_only() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let before = Generation(generation.0 - 1);
    let static_commit = Commit { group_instance_id: Some("x".into()), ..by(&members[0], generation) };
    for (commit, error) in [
        (by(&members[0], generation), ErrorCode::None),
        (by(&members[0], before), ErrorCode::IllegalGeneration),
        (by(&"ghost".into(), generation), ErrorCode::UnknownMemberId),
        (static_commit, ErrorCode::UnknownMemberId),
        (commit("topic", 0, 9), ErrorCode::UnknownMemberId),
    ] {
        assert_eq!(only_error(&world.commit(commit)), error);
    }
}

#[test]
fn between_join_and_sync_a_commit_has_to_wait() {
    let mut world = World::new();
    let (member, token) = world.join_as_new("a");
    world.pass(Duration::from_millis(1));
    let generation = world.joined(token).generation;
    assert_eq!(only_error(&world.commit(by(&member, generation))), ErrorCode::RebalanceInProgress);
}

#[test]
fn members_may_commit_what_they_have_done_while_the_group_rebalances() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    world.join(&Join { member_id: members[0].clone(), ..join("a") });
    assert_eq!(only_error(&world.commit(by(&members[1], generation))), ErrorCode::None);
}

#[test]
fn a_commit_is_a_sign_of_life() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    for _ in 0..5 {
        world.pass(Duration::from_secs(9));
        world.commit(by(&members[0], generation));
    }
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::None);
}

#[test]
fn a_fenced_static_member_does_not_commit() {
    let mut world = World::new();
    let named = Join { group_instance_id: Some("one".into()), ..join("a") };
    let first = world.join(&named);
    let second = world.join(&Join { fresh_id: Uuid([7; 16]), ..named });
    let old = world.joined(first).member_id.clone();
    assert_eq!(world.joined(first).error, ErrorCode::FencedInstanceId);
    assert!(!world.joins.contains_key(&second));
    let commit = Commit { group_instance_id: Some("one".into()), ..by(&old, Generation(1)) };
    assert_eq!(only_error(&world.commit(commit)), ErrorCode::FencedInstanceId);
}

#[test]
fn a_member_of_no_group_is_told_in_words_it_knows() {
    let mut world = World::new();
    let new = by(&"a".into(), Generation(1));
    let old = Commit { knows_group_id_not_found: false, ..new.clone() };
    assert_eq!(only_error(&world.commit(new)), ErrorCode::GroupIdNotFound);
    assert_eq!(only_error(&world.commit(old)), ErrorCode::IllegalGeneration);
}

#[test]
fn a_note_that_is_too_long_is_refused_alone() {
    let mut world = World::new();
    let mut commit = commit("topic", 0, 5);
    let mut long = commit.topics[0].partitions[0].clone();
    (long.partition, long.metadata) = (1, "ä".repeat(4097).into());
    let mut just = long.clone();
    (just.partition, just.metadata) = (2, "ä".repeat(4096).into());
    commit.topics[0].partitions.extend([long, just]);
    let errors: Vec<_> = world.commit(commit)[0].partitions.iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::OffsetMetadataTooLarge, ErrorCode::None]);
    assert_eq!(fetch(&world, "topic", 1), Offset(-1));
}

#[test]
fn a_group_id_that_no_record_can_hold_is_refused() {
    let mut world = World::new();
    let group = |length: usize| "g".repeat(length).as_str().into();
    let just = world.commit(Commit { group_id: group(32_767), ..commit("topic", 0, 5) });
    assert_eq!(only_error(&just), ErrorCode::None);
    assert!(world.log.iter().all(|record| record.encode().is_ok()));
    let long = world.commit(Commit { group_id: group(32_768), ..commit("topic", 0, 5) });
    assert_eq!(only_error(&long), ErrorCode::InvalidGroupId);
    let token = world.join(&Join { group_id: group(32_768), ..join("a") });
    assert_eq!(world.joined(token).error, ErrorCode::InvalidGroupId);
}

#[test]
fn offsets_of_topics_that_are_consumed_are_not_deleted() {
    let mut world = World::new();
    assert_eq!(delete(&mut world, "topic"), Err(ErrorCode::GroupIdNotFound));
    world.commit(commit("topic", 0, 5));
    world.commit(commit("other", 0, 5));
    let (members, _) = world.stable(&["a"]);
    assert_eq!(delete(&mut world, "topic"), Ok(ErrorCode::GroupSubscribedToTopic));
    assert_eq!(delete(&mut world, "other"), Ok(ErrorCode::None));
    assert_eq!((fetch(&world, "topic", 0), fetch(&world, "other", 0)), (Offset(5), Offset(-1)));
    world.leave(&[(&members[0], None)]);
    assert_eq!(delete(&mut world, "topic"), Ok(ErrorCode::None));
    assert_eq!(fetch(&world, "topic", 0), Offset(-1));
}

#[test]
fn of_a_group_that_is_not_one_of_consumers_no_offset_is_deleted_while_it_has_members() {
    let mut world = World::new();
    world.join(&Join { protocol_type: "connect".into(), member_id_required: false, ..join("a") });
    assert_eq!(delete(&mut world, "topic"), Err(ErrorCode::NonEmptyGroup));
}

#[test]
fn only_an_empty_group_is_deleted_and_its_offsets_go_with_it() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a"]);
    let erase = |world: &mut World, group_id: &str| {
        let outcome = world.groups.handle_delete(group_id.into());
        world.settle(outcome).expect("the append goes well").error
    };
    assert_eq!(erase(&mut world, "ghost"), ErrorCode::GroupIdNotFound);
    assert_eq!(erase(&mut world, GROUP), ErrorCode::NonEmptyGroup);
    world.leave(&[(&members[0], None)]);
    world.commit(commit("topic", 0, 5));
    assert_eq!(erase(&mut world, GROUP), ErrorCode::None);
    assert_eq!((world.state(), fetch(&world, "topic", 0)), (GroupState::Dead, Offset(-1)));
    assert!(matches!(
        &world.log[world.log.len() - 2..],
        [
            CoordinatorRecord::OffsetCommit { value: None, .. },
            CoordinatorRecord::GroupMetadata { value: None, .. }
        ]
    ));
}

#[test]
fn the_offsets_of_deleted_partitions_are_forgotten() {
    let mut world = World::new();
    world.commit(commit("topic", 0, 5));
    world.commit(commit("topic", 1, 5));
    let outcome = world.groups.handle_partitions_deleted(&[TopicPartition::new("topic", 0)]);
    world.settle(outcome);
    assert_eq!((fetch(&world, "topic", 0), fetch(&world, "topic", 1)), (Offset(-1), Offset(5)));
}

#[test]
fn a_simple_groups_offsets_expire_by_their_own_time_and_the_group_with_the_last() {
    let mut world = World::new();
    world.commit(commit("topic", 0, 5));
    world.pass(DAY);
    world.commit(commit("topic", 1, 5));
    world.pass(6 * DAY);
    expire(&mut world);
    assert_eq!((fetch(&world, "topic", 0), fetch(&world, "topic", 1)), (Offset(-1), Offset(5)));
    world.pass(DAY);
    expire(&mut world);
    assert_eq!(world.state(), GroupState::Dead);
}

#[test]
fn the_offsets_of_a_group_that_had_members_expire_after_it_became_empty() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    world.commit(by(&members[0], generation));
    for _ in 0..8 * 24 * 60 {
        world.pass(Duration::from_secs(9));
        world.heartbeat(&members[0], generation);
    }
    world.leave(&[(&members[0], None)]);
    world.pass(6 * DAY);
    expire(&mut world);
    assert_eq!(fetch(&world, "topic", 0), Offset(9));
    world.pass(DAY);
    expire(&mut world);
    assert_eq!(world.state(), GroupState::Dead);
}

#[test]
fn a_stable_group_loses_only_what_it_no_longer_consumes() {
    let mut world = World::new();
    world.commit(commit("topic", 0, 5));
    world.commit(commit("left", 0, 5));
    let (_, _) = world.stable(&["a"]);
    let outcome = world.groups.handle_expiry(Timestamp(world.at.wall.0 + 8 * 24 * 60 * 60 * 1000));
    world.settle(outcome);
    assert_eq!((fetch(&world, "topic", 0), fetch(&world, "left", 0)), (Offset(5), Offset(-1)));
}

#[test]
fn nothing_expires_while_the_group_rebalances() {
    let mut world = World::new();
    world.commit(commit("left", 0, 5));
    let (members, _) = world.stable(&["a", "b"]);
    world.join(&Join { member_id: members[0].clone(), ..join("a") });
    let outcome = world.groups.handle_expiry(Timestamp(world.at.wall.0 + 8 * 24 * 60 * 60 * 1000));
    assert!(outcome.records.is_empty());
}

#[test]
fn a_commit_with_a_retention_of_its_own_expires_by_it() {
    let mut world = World::new();
    world.commit(Commit { retention: Some(Duration::from_mins(1)), ..commit("topic", 0, 5) });
    world.pass(Duration::from_secs(59));
    expire(&mut world);
    assert_eq!(fetch(&world, "topic", 0), Offset(5));
    world.pass(Duration::from_secs(1));
    expire(&mut world);
    assert_eq!(fetch(&world, "topic", 0), Offset(-1));
}

#[test]
fn a_group_that_awaits_a_member_is_not_deleted() {
    let mut world = World::new();
    world.join(&join("a"));
    expire(&mut world);
    assert_eq!(world.state(), GroupState::Empty);
    world.pass(Duration::from_secs(10));
    expire(&mut world);
    assert_eq!(world.state(), GroupState::Dead);
}

#[test]
fn a_topic_is_named_as_it_was_asked_for() {
    let world = World::new();
    let topics = Some(vec![partitions("x", &[3, 1])]);
    let fetched = world.groups.fetch_offsets(&FetchOffsets { group_id: GROUP.into(), topics });
    assert_eq!(fetched[0].topic, TopicName::from("x"));
    assert_eq!(fetched[0].partitions.iter().map(|p| p.partition).collect::<Vec<_>>(), [3, 1]);
}
