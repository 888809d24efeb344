//! The join phase: who is let in, who leads, how long it waits.

use std::time::Duration;

use coordinator::{Config, CoordinatorRecord, Generation, GroupState, Join, Protocol};
use model::{ErrorCode, MemberId};

use crate::harness::{GROUP, World, join, protocol, sync};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_new_dynamic_member_is_first_told_its_id() {
    let mut world = World::new();
    let token = world.join(&join("client"));
    let reply = world.joined(token);
    assert_eq!(reply.error, ErrorCode::MemberIdRequired);
    assert!(reply.member_id.as_str().starts_with("client-"), "{}", reply.member_id);
    assert_eq!(reply.member_id.as_str().len(), "client-".len() + 36);
}

#[test]
fn a_new_group_is_written_down_empty() {
    let mut world = World::new();
    world.join(&join("client"));
    let [CoordinatorRecord::GroupMetadata { group_id, value: Some(value) }] = &world.log[..] else {
        panic!("{:?}", world.log);
    };
    assert_eq!(group_id.as_str(), GROUP);
    assert_eq!((&*value.protocol_type, value.generation, &value.protocol), ("", Generation(0), &None));
    assert!(value.members.is_empty());
}

#[test]
fn an_old_client_joins_at_once() {
    let mut world = World::new();
    let token = world.join(&Join { member_id_required: false, ..join("old") });
    world.pass(Duration::from_millis(1));
    let reply = world.joined(token);
    assert_eq!((reply.error, reply.generation), (ErrorCode::None, Generation(1)));
    assert_eq!(reply.leader, reply.member_id);
}

#[test]
fn only_the_leader_is_told_of_the_members() {
    let mut world = World::new();
    let (a, first) = world.join_as_new("a");
    let (b, second) = world.join_as_new("b");
    world.pass(Duration::from_millis(1));
    let (leader, follower) = (world.joined(first), world.joined(second));
    assert_eq!(leader.members.iter().map(|m| &m.member_id).collect::<Vec<_>>(), [&a, &b]);
    assert_eq!((follower.members.len(), &follower.leader), (0, &a));
    assert_eq!(leader.generation, follower.generation);
    assert_eq!(leader.protocol_name.as_deref(), Some("range"));
    assert_eq!(leader.protocol_type.as_deref(), Some("consumer"));
}

#[test]
fn the_initial_rebalance_is_extended_while_members_come() {
    let mut world = World::with(Config { initial_rebalance_delay: 3 * SECOND, ..Config::default() });
    let (_, first) = world.join_as_new("a");
    world.pass(2 * SECOND);
    let (_, second) = world.join_as_new("b");
    world.pass(2 * SECOND);
    assert!(!world.joins.contains_key(&first), "the delay begins anew");
    world.pass(2 * SECOND);
    assert_eq!(world.joined(first).generation, world.joined(second).generation);
}

#[test]
fn the_initial_rebalance_is_not_extended_beyond_the_rebalance_timeout() {
    let mut world = World::with(Config { initial_rebalance_delay: 3 * SECOND, ..Config::default() });
    let quick = |client| Join { rebalance_timeout: 7 * SECOND, member_id_required: false, ..join(client) };
    let first = world.join(&quick("a"));
    for client in ["b", "c", "d", "e", "f", "g"] {
        world.pass(SECOND);
        world.join(&quick(client));
    }
    world.pass(SECOND);
    assert_eq!(world.joined(first).members.len(), 7);
}

#[test]
fn a_second_member_waits_until_the_first_has_joined_again() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    let (_, second) = world.join_as_new("b");
    assert_eq!(world.heartbeat(&members[0], generation), ErrorCode::RebalanceInProgress);
    assert!(!world.joins.contains_key(&second));
    let first = world.join(&Join { member_id: members[0].clone(), ..join("a") });
    assert_eq!(world.joined(second).generation, Generation(generation.0 + 1));
    assert_eq!(world.joined(first).members.len(), 2);
}

#[test]
fn a_dynamic_member_that_does_not_join_in_time_is_out() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let token = world.join(&Join { member_id: members[0].clone(), ..join("a") });
    for _ in 0..12 {
        world.heartbeat(&members[1], generation);
        world.pass(5 * SECOND);
    }
    let reply = world.joined(token);
    assert_eq!(reply.members.iter().map(|m| &m.member_id).collect::<Vec<_>>(), [&members[0]]);
    assert_eq!(world.heartbeat(&members[1], generation), ErrorCode::UnknownMemberId);
}

#[test]
fn if_the_leader_does_not_join_in_time_another_member_leads() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a", "b"]);
    // Its session ends before the join phase does.
    let token = world.join(&Join {
        member_id: members[1].clone(),
        protocols: vec![protocol("range", &["other"])],
        ..join("b")
    });
    world.pass(11 * SECOND);
    assert_eq!(world.joined(token).leader, members[1]);
}

#[test]
fn a_follower_that_says_the_same_again_is_told_the_generation() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let token = world.join(&Join { member_id: members[1].clone(), ..join("b") });
    assert_eq!((world.joined(token).generation, world.state()), (generation, GroupState::Stable));
}

#[test]
fn a_leader_that_joins_again_starts_a_rebalance() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a", "b"]);
    world.join(&Join { member_id: members[0].clone(), ..join("a") });
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn joining_again_before_sync_repeats_the_answer() {
    let mut world = World::new();
    let (member, token) = world.join_as_new("a");
    world.pass(Duration::from_millis(1));
    let again = world.join(&Join { member_id: member, ..join("a") });
    assert_eq!(world.joined(again), world.joined(token));
}

#[test]
fn new_metadata_before_sync_makes_waiting_members_join_again() {
    let mut world = World::new();
    let (a, first) = world.join_as_new("a");
    let (b, _) = world.join_as_new("b");
    world.pass(Duration::from_millis(1));
    let waiting = world.sync(&sync(&b, world.joined(first).generation));
    world.join(&Join { member_id: a, protocols: vec![protocol("range", &["new"])], ..join("a") });
    assert_eq!(world.synced(waiting).error, ErrorCode::RebalanceInProgress);
}

#[test]
fn the_protocol_with_most_votes_that_all_support_is_chosen() {
    let mut world = World::new();
    let with = |client, names: &[&str]| Join {
        protocols: names.iter().map(|name| protocol(name, &[])).collect(),
        member_id_required: false,
        ..join(client)
    };
    let token = world.join(&with("a", &["sticky", "range", "roundrobin"]));
    world.join(&with("b", &["roundrobin", "range"]));
    world.join(&with("c", &["range", "roundrobin"]));
    world.pass(Duration::from_millis(1));
    assert_eq!(world.joined(token).protocol_name.as_deref(), Some("range"));
}

#[test]
fn members_without_a_common_protocol_or_type_are_refused() {
    let mut world = World::new();
    world.stable(&["a"]);
    for refused in [
        Join { protocols: vec![protocol("other", &[])], ..join("b") },
        Join { protocol_type: "connect".into(), ..join("b") },
        Join { protocols: Vec::new(), ..join("b") },
    ] {
        let token = world.join(&refused);
        assert_eq!(world.joined(token).error, ErrorCode::InconsistentGroupProtocol);
    }
}

#[test]
fn any_protocol_type_is_opaque() {
    let mut world = World::new();
    let protocols = vec![Protocol { name: "v1".into(), metadata: vec![0xff; 7].into() }];
    let token = world.join(&Join {
        protocol_type: "connect".into(),
        protocols,
        member_id_required: false,
        ..join("worker")
    });
    world.pass(Duration::from_millis(1));
    assert_eq!(world.joined(token).protocol_type.as_deref(), Some("connect"));
    assert_eq!(world.joined(token).members[0].metadata[..], [0xff; 7]);
}

#[test]
fn requests_that_cannot_be_right_are_refused() {
    let mut world = World::new();
    let short = Duration::from_millis(5_999);
    for (refused, error) in [
        (Join { group_id: "".into(), ..join("a") }, ErrorCode::InvalidGroupId),
        (Join { session_timeout: short, ..join("a") }, ErrorCode::InvalidSessionTimeout),
        (Join { session_timeout: 1801 * SECOND, ..join("a") }, ErrorCode::InvalidSessionTimeout),
        (Join { member_id: "ghost".into(), ..join("a") }, ErrorCode::UnknownMemberId),
        (Join { protocol_type: "".into(), ..join("a") }, ErrorCode::InconsistentGroupProtocol),
    ] {
        let token = world.join(&refused);
        assert_eq!(world.joined(token).error, error);
    }
    let huge = Protocol { name: "range".into(), metadata: vec![0; 2 << 20].into() };
    let many = vec![Protocol { name: "".into(), metadata: bytes::Bytes::new() }; 1 << 15];
    for protocols in [vec![huge], many] {
        let token = world.join(&Join { protocols, ..join("a") });
        assert_eq!(world.joined(token).error, ErrorCode::UnknownServerError);
    }
}

#[test]
fn an_unknown_member_of_a_known_group_is_refused() {
    let mut world = World::new();
    world.stable(&["a"]);
    let token = world.join(&Join { member_id: "ghost".into(), ..join("ghost") });
    assert_eq!(world.joined(token).error, ErrorCode::UnknownMemberId);
    assert_eq!(world.joined(token).member_id, MemberId::from("ghost"));
}

#[test]
fn a_full_group_takes_nobody() {
    let mut world = World::with(Config {
        group_size_max: 1,
        initial_rebalance_delay: Duration::ZERO,
        ..Config::default()
    });
    world.stable(&["a"]);
    let token = world.join(&join("b"));
    assert_eq!(world.joined(token).error, ErrorCode::GroupMaxSizeReached);
    assert_eq!(world.state(), GroupState::Stable);
}

#[test]
fn a_group_takes_no_more_metadata_than_it_may_hold() {
    let mut world = World::new();
    let large = |byte| vec![Protocol { name: "range".into(), metadata: vec![byte; (1 << 20) - 100].into() }];
    let joins: Vec<_> = (0..20)
        .map(|i| Join { member_id_required: false, protocols: large(i), ..join(&format!("client-{i}")) })
        .map(|join| world.join(&join))
        .collect();
    let refused = joins.iter().filter(|token| world.joins.contains_key(token));
    let errors: Vec<_> = refused.map(|token| world.joined(*token).error).collect();
    assert_eq!(errors, [ErrorCode::GroupMaxSizeReached; 4]);
    world.pass(Duration::from_millis(1));
    let member_id = world.joined(joins[0]).member_id.clone();
    let again = world.join(&Join { member_id, protocols: large(9), ..join("a") });
    assert!(!world.joins.contains_key(&again), "what a member had before makes room for what it has now");
}

#[test]
fn long_client_ids_leave_room_for_fewer_pending_members() {
    let mut world = World::new();
    let long = "x".repeat(30_000);
    let mut answers = (0..2000).map(|i| {
        let token = world.join(&join(&format!("{long}-{i}")));
        world.joined(token).error
    });
    let told = answers.by_ref().take_while(|error| *error == ErrorCode::MemberIdRequired).count();
    assert!((500..700).contains(&told), "{told}");
    assert_eq!(answers.next(), Some(ErrorCode::GroupMaxSizeReached));
}

#[test]
fn a_pending_member_that_does_not_come_back_holds_nobody_up() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a"]);
    world.join(&Join { session_timeout: 6 * SECOND, ..join("never") });
    let token = world.join(&Join { member_id: members[0].clone(), ..join("a") });
    world.pass(5 * SECOND);
    assert!(!world.joins.contains_key(&token));
    world.pass(SECOND);
    assert_eq!(world.joined(token).generation, Generation(generation.0 + 1));
}

#[test]
fn a_join_that_was_given_up_is_answered_too() {
    let mut world = World::with(Config { initial_rebalance_delay: SECOND, ..Config::default() });
    let (member, first) = world.join_as_new("a");
    let second = world.join(&Join { member_id: member, ..join("a") });
    assert_eq!(world.joined(first).error, ErrorCode::RebalanceInProgress);
    world.pass(SECOND);
    assert_eq!(world.joined(second).error, ErrorCode::None);
}

#[test]
fn a_group_whose_first_record_cannot_be_written_is_forgotten() {
    let mut world = World::new();
    world.fail_append = Some(ErrorCode::CoordinatorNotAvailable);
    let token = world.join(&Join { member_id_required: false, ..join("a") });
    assert_eq!(world.joined(token).error, ErrorCode::CoordinatorNotAvailable);
    assert_eq!(world.listed(), [""; 0]);
    world.pass(60 * SECOND);
}

#[test]
fn a_protocol_that_a_member_names_twice_counts_once() {
    let mut world = World::new();
    let twice = vec![protocol("range", &["topic"]); 2];
    let first = world.join(&Join { member_id_required: false, protocols: twice, ..join("a") });
    let second = world.join(&Join { member_id_required: false, ..join("b") });
    world.pass(Duration::from_millis(1));
    for token in [first, second] {
        assert_eq!(world.joined(token).error, ErrorCode::None);
        assert_eq!(world.joined(token).protocol_name.as_deref(), Some("range"));
    }
}
