//! Members that leave, and what the others see of it.

use std::time::Duration;

use coordinator::{GroupState, Join};
use model::{ErrorCode, MemberId};

use crate::harness::{World, join};

#[test]
fn the_others_go_on_without_a_member_that_leaves() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let reply = world.leave(&[(&members[1], None)]);
    assert_eq!((reply.error, reply.members[0].1), (ErrorCode::None, ErrorCode::None));
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::RebalanceInProgress);
    assert_eq!(world.heartbeat(&members[1], generation), ErrorCode::UnknownMemberId);
}

#[test]
fn the_last_one_to_leave_leaves_the_group_empty() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a"]);
    world.leave(&[(&members[0], None)]);
    assert_eq!(world.state(), GroupState::Empty);
}

#[test]
fn an_administrator_takes_static_members_out_by_name() {
    let mut world = World::new();
    world.join(&Join { group_instance_id: Some("one".into()), ..join("a") });
    world.pass(Duration::from_millis(1));
    let nobody = MemberId::default();
    let reply = world.leave(&[(&nobody, Some("one")), (&nobody, Some("two")), (&nobody, None)]);
    let errors: Vec<_> = reply.members.iter().map(|(_, error)| *error).collect();
    assert_eq!(errors, [ErrorCode::None, ErrorCode::UnknownMemberId, ErrorCode::UnknownMemberId]);
    assert_eq!(world.state(), GroupState::Empty);
}

#[test]
fn a_static_member_with_a_wrong_id_is_fenced() {
    let mut world = World::new();
    world.join(&Join { group_instance_id: Some("one".into()), ..join("a") });
    let reply = world.leave(&[(&"other".into(), Some("one"))]);
    assert_eq!(reply.members[0].1, ErrorCode::FencedInstanceId);
}

#[test]
fn a_pending_member_may_leave() {
    let mut world = World::new();
    let token = world.join(&join("a"));
    let member = world.joined(token).member_id.clone();
    assert_eq!(world.leave(&[(&member, None)]).members[0].1, ErrorCode::None);
    let token = world.join(&Join { member_id: member, ..join("a") });
    assert_eq!(world.joined(token).error, ErrorCode::UnknownMemberId);
}

#[test]
fn a_member_that_leaves_while_it_waits_is_answered() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a", "b"]);
    let waiting = world.join(&Join { member_id: members[0].clone(), ..join("a") });
    world.leave(&[(&members[0], None)]);
    assert_eq!(world.joined(waiting).error, ErrorCode::UnknownMemberId);
}

#[test]
fn nobody_leaves_a_group_that_does_not_exist() {
    let mut world = World::new();
    let reply = world.leave(&[(&"a".into(), None)]);
    assert_eq!((reply.error, reply.members[0].1), (ErrorCode::None, ErrorCode::UnknownMemberId));
}
