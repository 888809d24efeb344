//! The sync phase and sessions: assignments, silence, refusals.

use std::time::Duration;

use bytes::Bytes;
use coordinator::{CoordinatorRecord, Generation, GroupState, Join, Sync};
use model::ErrorCode;

use crate::harness::{World, join, sync};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn everybody_gets_what_the_leader_assigned() {
    let mut world = World::new();
    let (a, first) = world.join_as_new("a");
    let (b, _) = world.join_as_new("b");
    world.pass(Duration::from_millis(1));
    let generation = world.joined(first).generation;
    let follower = world.sync(&sync(&b, generation));
    assert!(!world.syncs.contains_key(&follower));
    let assignments = vec![(b.clone(), Bytes::from("work")), ("ghost".into(), Bytes::from("lost"))];
    let leader = world.sync(&Sync { assignments, ..sync(&a, generation) });
    assert_eq!(
        (world.synced(follower).error, &world.synced(follower).assignment[..]),
        (ErrorCode::None, &b"work"[..])
    );
    assert_eq!(
        (world.synced(leader).error, &world.synced(leader).assignment[..]),
        (ErrorCode::None, &b""[..])
    );
    assert_eq!(world.synced(leader).protocol_name.as_deref(), Some("range"));
    assert_eq!(world.state(), GroupState::Stable);
}

#[test]
fn the_generation_is_written_with_its_assignments() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    let Some(CoordinatorRecord::GroupMetadata { value: Some(value), .. }) = world.log.last() else {
        panic!("{:?}", world.log);
    };
    assert_eq!((value.generation, value.protocol.as_deref()), (generation, Some("range")));
    assert_eq!(value.leader.as_ref(), Some(&members[0]));
    assert_eq!(value.members[0].assignment, format!("for {}", members[0]));
    assert_eq!(&*value.members[0].client_host, "/127.0.0.1");
}

#[test]
fn a_stable_group_repeats_the_assignment() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let token = world.sync(&sync(&members[1], generation));
    assert_eq!(world.synced(token).assignment, format!("for {}", members[1]));
}

#[test]
fn what_does_not_fit_the_generation_is_refused() {
    let mut world = World::new();
    let token = world.sync(&sync(&"a".into(), Generation(1)));
    assert_eq!(world.synced(token).error, ErrorCode::UnknownMemberId, "no such group");
    let (members, generation) = world.stable(&["a"]);
    let good = sync(&members[0], generation);
    for (refused, error) in [
        (Sync { group_id: "".into(), ..good.clone() }, ErrorCode::InvalidGroupId),
        (Sync { member_id: "ghost".into(), ..good.clone() }, ErrorCode::UnknownMemberId),
        (Sync { group_instance_id: Some("x".into()), ..good.clone() }, ErrorCode::UnknownMemberId),
        (Sync { generation: Generation(generation.0 + 1), ..good.clone() }, ErrorCode::IllegalGeneration),
        (
            Sync { protocol_type: Some("connect".into()), ..good.clone() },
            ErrorCode::InconsistentGroupProtocol,
        ),
        (Sync { protocol_name: Some("sticky".into()), ..good.clone() }, ErrorCode::InconsistentGroupProtocol),
    ] {
        let token = world.sync(&refused);
        assert_eq!(world.synced(token).error, error);
    }
    let token = world.sync(&Sync { protocol_type: None, protocol_name: None, ..good });
    assert_eq!(world.synced(token).error, ErrorCode::None, "older clients do not say");
}

#[test]
fn during_the_join_phase_sync_says_to_join() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    world.join(&Join { member_id: members[0].clone(), ..join("a") });
    let token = world.sync(&sync(&members[1], generation));
    assert_eq!(world.synced(token).error, ErrorCode::RebalanceInProgress);
}

#[test]
fn who_does_not_sync_in_time_is_out() {
    let mut world = World::new();
    let (a, first) = world.join_as_new("a");
    let (b, _) = world.join_as_new("b");
    world.pass(Duration::from_millis(1));
    let generation = world.joined(first).generation;
    let waiting = world.sync(&sync(&b, generation));
    for _ in 0..12 {
        world.heartbeat(&a, generation);
        world.pass(5 * SECOND);
    }
    assert_eq!(world.synced(waiting).error, ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(&a, generation), ErrorCode::UnknownMemberId);
    assert_eq!(world.heartbeat(&b, generation), ErrorCode::RebalanceInProgress);
}

#[test]
fn an_assignment_that_cannot_be_written_makes_everybody_join_again() {
    let mut world = World::new();
    let (a, first) = world.join_as_new("a");
    world.pass(Duration::from_millis(1));
    world.fail_append = Some(ErrorCode::CoordinatorNotAvailable);
    let token = world.sync(&sync(&a, world.joined(first).generation));
    assert_eq!(world.synced(token).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn a_silent_member_is_out_when_its_session_ends() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    world.pass(6 * SECOND);
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::None);
    world.pass(5 * SECOND);
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(&members[1], generation), ErrorCode::UnknownMemberId);
    assert_eq!(world.heartbeat(&members[0], Generation(generation.0 - 1)), ErrorCode::IllegalGeneration);
}

#[test]
fn a_group_whose_last_member_is_out_is_empty_and_says_so_in_the_log() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    world.pass(10 * SECOND);
    assert_eq!(world.state(), GroupState::Empty);
    let Some(CoordinatorRecord::GroupMetadata { value: Some(value), .. }) = world.log.last() else {
        panic!("{:?}", world.log);
    };
    assert_eq!((value.generation.0, value.members.len()), (generation.0 + 1, 0));
    assert_eq!((&*value.protocol_type, &value.protocol, &value.leader), ("consumer", &None, &None));
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::UnknownMemberId);
}
