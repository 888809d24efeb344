//! Restarts and moves of the coordinator, and what is shown of groups.

use std::time::Duration;

use coordinator::{Config, GroupState, Groups, Join, List};
use model::ErrorCode;

use crate::harness::{GROUP, World, commit, join, sync};

/// The same machine after a restart.
fn reloaded(world: &World, config: Config) -> World {
    let mut after = World::with(config);
    after.at = world.at;
    for record in world.log.clone() {
        let (key, value) = record.encode().expect("it is short");
        let again = coordinator::CoordinatorRecord::decode(&key, value.as_deref()).expect("it was encoded");
        after.groups.replay(again);
    }
    after.groups.handle_loaded(after.at);
    after
}

#[test]
fn members_go_on_after_a_restart() {
    let mut world = World::new();
    let (members, generation) = world.stable(&["a", "b"]);
    let mut world = reloaded(&world, Config::default());
    assert_eq!(world.state(), GroupState::Stable);
    for member in &members {
        assert_eq!(world.heartbeat(member, generation), ErrorCode::None);
        let token = world.sync(&sync(member, generation));
        assert_eq!(world.synced(token).assignment, format!("for {member}"));
    }
}

#[test]
fn sessions_begin_anew_after_a_restart() {
    let mut world = World::new();
    world.stable(&["a"]);
    world.pass(Duration::from_secs(9));
    let mut world = reloaded(&world, Config::default());
    world.pass(Duration::from_secs(9));
    assert_eq!(world.state(), GroupState::Stable);
    world.pass(Duration::from_secs(1));
    assert_eq!(world.state(), GroupState::Empty);
}

#[test]
fn offsets_and_empty_groups_survive_a_restart() {
    let mut world = World::new();
    world.commit(commit("topic", 0, 5));
    let world = reloaded(&world, Config::default());
    assert_eq!(world.listed(), [GROUP]);
    let all = coordinator::FetchOffsets { group_id: GROUP.into(), topics: None };
    assert_eq!(world.groups.fetch_offsets(&all)[0].partitions[0].offset.0, 5);
}

#[test]
fn a_group_that_is_larger_than_now_allowed_rebalances() {
    let mut world = World::new();
    world.stable(&["a", "b"]);
    let world = reloaded(&world, Config { group_size_max: 1, ..Config::default() });
    assert_eq!(world.state(), GroupState::PreparingRebalance);
}

#[test]
fn groups_are_listed_by_state_and_type() {
    let mut world = World::new();
    world.stable(&["a"]);
    let list = |groups: &Groups, states: &[&str], types: &[&str]| {
        let owned = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        groups.list(&List { states: owned(states), types: owned(types) }).len()
    };
    assert_eq!(list(&world.groups, &[], &[]), 1);
    assert_eq!(list(&world.groups, &["stable", "Empty"], &["Classic"]), 1);
    assert_eq!(list(&world.groups, &["Empty"], &[]), 0);
    assert_eq!(list(&world.groups, &[], &["consumer"]), 0);
    assert_eq!(world.groups.list(&List::default())[0].group_type, "classic");
}

#[test]
fn only_a_stable_group_shows_what_its_members_do() {
    let mut world = World::new();
    let (members, _) = world.stable(&["a"]);
    let stable = world.groups.describe(&GROUP.into());
    assert_eq!((&*stable.protocol, &*stable.protocol_type), ("range", "consumer"));
    assert_eq!(stable.members[0].assignment, format!("for {}", members[0]));
    assert!(!stable.members[0].metadata.is_empty());
    world.join(&Join { member_id: members[0].clone(), protocols: join("b").protocols, ..join("a") });
    let preparing = world.groups.describe(&GROUP.into());
    assert_eq!((preparing.state, &*preparing.protocol), (GroupState::CompletingRebalance, ""));
    assert!(preparing.members[0].metadata.is_empty() && preparing.members[0].assignment.is_empty());
}

#[test]
fn a_group_that_does_not_exist_is_dead() {
    let world = World::new();
    let ghost = world.groups.describe(&"ghost".into());
    assert_eq!((ghost.state, ghost.error), (GroupState::Dead, ErrorCode::GroupIdNotFound));
    assert_eq!(ghost.error_message.as_deref(), Some("Group ghost not found."));
}
