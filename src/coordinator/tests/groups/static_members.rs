//! Static members (KIP-345): they come back under their name.

use std::time::Duration;

use bytes::Bytes;
use coordinator::{CoordinatorRecord, GroupState, Heartbeat, Join, Sync};
use model::{ErrorCode, MemberId};

use crate::harness::{GROUP, World, join, protocol, sync};

fn named(client: &str, instance: &str) -> Join {
    Join { group_instance_id: Some(instance.into()), ..join(client) }
}

/// A stable group of two static members: `one` leads.
fn stable(world: &mut World) -> (MemberId, MemberId) {
    let first = world.join(&named("a", "one"));
    let second = world.join(&named("b", "two"));
    world.pass(Duration::from_millis(1));
    let (one, two) = (world.joined(first).member_id.clone(), world.joined(second).member_id.clone());
    let generation = world.joined(first).generation;
    assert_eq!(world.joined(first).leader, one);
    let assignments = vec![(one.clone(), Bytes::from("1")), (two.clone(), Bytes::from("2"))];
    world.sync(&Sync { assignments, ..sync(&one, generation) });
    world.sync(&sync(&two, generation));
    (one, two)
}

#[test]
fn a_static_member_needs_no_second_join() {
    let mut world = World::new();
    let token = world.join(&named("a", "one"));
    world.pass(Duration::from_millis(1));
    assert_eq!(world.joined(token).error, ErrorCode::None);
    assert!(world.joined(token).member_id.as_str().starts_with("one-"));
}

#[test]
fn one_that_comes_back_keeps_its_assignment_without_a_rebalance() {
    let mut world = World::new();
    let (_, two) = stable(&mut world);
    let token = world.join(&named("c", "two"));
    let reply = world.joined(token).clone();
    assert_eq!((reply.error, world.state()), (ErrorCode::None, GroupState::Stable));
    assert_ne!(reply.member_id, two);
    let synced = world.sync(&sync(&reply.member_id, reply.generation));
    assert_eq!(world.synced(synced).assignment, "2");
    let Some(CoordinatorRecord::GroupMetadata { value: Some(value), .. }) = world.log.last() else {
        panic!("{:?}", world.log);
    };
    assert!(value.members.iter().any(|m| m.member_id == reply.member_id && m.assignment == "2"));
}

#[test]
fn its_old_id_is_fenced() {
    let mut world = World::new();
    let (_, two) = stable(&mut world);
    let token = world.join(&named("c", "two"));
    let generation = world.joined(token).generation;
    let heartbeat = Heartbeat {
        group_id: GROUP.into(),
        generation,
        member_id: two.clone(),
        group_instance_id: Some("two".into()),
    };
    assert_eq!(world.groups.handle_heartbeat(&heartbeat, world.at).reply, ErrorCode::FencedInstanceId);
    let synced = world.sync(&Sync { group_instance_id: Some("two".into()), ..sync(&two, generation) });
    assert_eq!(world.synced(synced).error, ErrorCode::FencedInstanceId);
    let joined = world.join(&Join { member_id: two, ..named("b", "two") });
    assert_eq!(world.joined(joined).error, ErrorCode::FencedInstanceId);
}

#[test]
fn a_leader_that_comes_back_is_told_to_assign_nothing() {
    let mut world = World::new();
    stable(&mut world);
    let token = world.join(&named("c", "one"));
    let reply = world.joined(token);
    assert!(reply.skip_assignment);
    assert_eq!((&reply.leader, reply.members.len()), (&reply.member_id, 2));
}

#[test]
fn an_old_leader_that_comes_back_does_not_learn_that_it_leads() {
    let mut world = World::new();
    let (one, _) = stable(&mut world);
    let token = world.join(&Join { skip_assignment: false, ..named("c", "one") });
    let reply = world.joined(token);
    assert!(!reply.skip_assignment);
    assert_eq!((&reply.leader, reply.members.len()), (&one, 0));
}

#[test]
fn one_that_changes_the_chosen_protocol_starts_a_rebalance() {
    let mut world = World::new();
    let both = vec![protocol("range", &[]), protocol("sticky", &[])];
    let first = world.join(&Join { protocols: both.clone(), ..named("a", "one") });
    let second = world.join(&Join { protocols: both.clone(), ..named("b", "two") });
    world.pass(Duration::from_millis(1));
    let one = world.joined(first).member_id.clone();
    let two = world.joined(second).member_id.clone();
    world.sync(&sync(&two, world.joined(first).generation));
    world.sync(&sync(&one, world.joined(first).generation));
    assert_eq!(world.state(), GroupState::Stable);
    world.join(&Join { protocols: vec![protocol("sticky", &[])], ..named("c", "two") });
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn one_that_comes_back_before_the_assignment_starts_a_rebalance() {
    let mut world = World::new();
    let first = world.join(&named("a", "one"));
    let second = world.join(&named("b", "two"));
    world.pass(Duration::from_millis(1));
    let generation = world.joined(first).generation;
    let two = world.joined(second).member_id.clone();
    let waiting = world.sync(&sync(&two, generation));
    world.join(&named("c", "two"));
    assert_eq!(world.synced(waiting).error, ErrorCode::FencedInstanceId);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_waiting_join_of_the_old_id_is_fenced() {
    let mut world = World::new();
    let (_, two) = stable(&mut world);
    let changed = vec![protocol("range", &["other"])];
    let waiting = world.join(&Join { member_id: two.clone(), protocols: changed, ..named("b", "two") });
    world.join(&named("c", "two"));
    assert_eq!(
        (world.joined(waiting).error, &world.joined(waiting).member_id),
        (ErrorCode::FencedInstanceId, &two)
    );
}

#[test]
fn one_that_misses_a_rebalance_stays_until_its_session_ends() {
    let mut world = World::new();
    let (one, two) = stable(&mut world);
    let token =
        world.join(&Join { member_id: one, session_timeout: Duration::from_secs(200), ..named("a", "one") });
    let generation = world.groups.describe(&GROUP.into());
    assert_eq!(generation.members.len(), 2);
    world.pass(Duration::from_secs(9));
    assert!(!world.joins.contains_key(&token), "its session is not over");
    world.pass(Duration::from_secs(1));
    let members: Vec<_> = world.joined(token).members.iter().map(|m| m.member_id.clone()).collect();
    assert!(!members.contains(&two));
}

#[test]
fn a_return_that_cannot_be_written_ends_in_a_rebalance() {
    let mut world = World::new();
    stable(&mut world);
    world.fail_append = Some(ErrorCode::CoordinatorNotAvailable);
    let token = world.join(&named("c", "two"));
    assert_eq!(world.joined(token).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}
