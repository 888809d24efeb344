//! Brokers that come, go, fall silent and stop.

mod world;

use std::time::Duration;

use controller::{BrokerError, ConnectionId, Heartbeat};
use model::{BrokerEpoch, ClusterId, ErrorCode, NodeId, Offset};
use world::{Start, World, millis};

const SESSION: Duration = Duration::from_secs(9);

#[test]
fn a_broker_whose_connection_closed_is_fenced_if_it_does_not_come_back() {
    let mut world = World::new(3, None);
    world.topic(&[2, 1, 3], &[]);
    world.silence(2);
    world.close_connection(2);
    world.pass(millis(200));
    assert_eq!(world.state().0, 2, "it may still come back");
    world.pass(millis(100));
    assert!(world.is_fenced(2));
    assert_eq!(world.state(), (1, vec![1, 3], vec![]));
}

#[test]
fn a_connection_that_was_reset_moves_no_leader() {
    let mut world = World::new(3, None);
    world.topic(&[2, 1, 3], &[]);
    let before = world.partition();
    world.silence(2);
    world.close_connection(2);
    world.pass(millis(200));
    world.reconnect(2);
    world.pass(millis(500));
    assert_eq!(world.partition(), before);
}

#[test]
fn the_end_of_a_connection_that_was_left_already_says_nothing() {
    let mut world = World::new(2, None);
    let old = world.heartbeat_of(2);
    world.silence(2);
    world.reconnect(2);
    world.say(&old).expect("a heartbeat that was on its way");
    world.controller.handle_connection_closed(old.id, old.epoch, Some(old.connection), world.now);
    world.pass(millis(1_000));
    assert!(!world.is_fenced(2));
}

#[test]
fn the_leader_that_this_node_followed_is_fenced_soon_after_it_is_gone() {
    let mut world = World::new(3, None);
    world.topic(&[2, 1, 3], &[]);
    world.silence(2);
    world.fail_over(None);
    let gone = world.heartbeat_of(2);
    world.controller.handle_connection_closed(gone.id, gone.epoch, None, world.now);
    world.pass(millis(300));
    assert_eq!(world.state().0, 1);
}

#[test]
fn a_silent_broker_is_fenced_after_its_session() {
    let mut world = World::new(3, None);
    world.topic(&[2, 1, 3], &[]);
    world.silence(2);
    world.pass(millis(8_900));
    assert!(!world.is_fenced(2));
    world.pass(millis(200));
    assert!(world.is_fenced(2));
    assert_eq!(world.state().0, 1);
}

#[test]
fn brokers_that_are_gone_together_are_fenced_together() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[]);
    let epoch = world.partition().leader_epoch;
    world.kill(&[1, 2]);
    assert_eq!(world.state(), (3, vec![3], vec![]));
    assert_eq!(world.partition().leader_epoch.0, epoch.0 + 1, "the second was never elected");
}

#[test]
fn a_controller_that_slept_gives_all_brokers_their_time_anew() {
    let mut world = World::new(2, None);
    world.now = world.now.plus(Duration::from_mins(1));
    world.tick();
    assert!(!world.is_fenced(2));
    world.silence(2);
    world.pass(SESSION + millis(100));
    assert!(world.is_fenced(2), "silence counts from then on");
    assert!(!world.is_fenced(1));
}

#[test]
fn another_cluster_and_a_second_process_are_refused() {
    let mut world = World::new(2, None);
    let mut other = world.registration(2, Start::Killed);
    other.cluster_id = ClusterId::from("other");
    let error = world.register(&other).expect_err("refused");
    assert_eq!(ErrorCode::from(&error), ErrorCode::InconsistentClusterId);
    let second = world.registration(2, Start::Killed);
    let error = world.register(&second).expect_err("refused");
    assert_eq!(ErrorCode::from(&error), ErrorCode::DuplicateBrokerRegistration);
    world.kill(&[2]);
    assert!(world.register(&second).is_ok(), "the first one's session has ended");
}

#[test]
fn who_holds_the_log_folder_registers_at_once_with_a_controller_that_has_heard_of_nobody() {
    let mut world = World::new(2, None);
    world.fail_over(None);
    let elsewhere = world.registration(2, Start::EmptyDisk);
    assert_eq!(world.register(&elsewhere), Err(BrokerError::Duplicate));
    let mut world = World::new(2, None);
    world.fail_over(None);
    world.start(2, Start::Killed);
}

#[test]
fn a_stopping_broker_is_replaced_at_once() {
    let mut world = World::new(2, None);
    world.topic(&[2, 1], &[]);
    let stop = Heartbeat { want_shut_down: true, ..world.heartbeat_of(2) };
    world.say(&stop).expect("its epoch");
    world.start(2, Start::Clean);
}

#[test]
fn an_old_epoch_is_stale() {
    let mut world = World::new(1, None);
    let old = Heartbeat { epoch: BrokerEpoch(-7), ..world.heartbeat_of(1) };
    let error = world.say(&old).expect_err("stale");
    assert_eq!(ErrorCode::from(&error), ErrorCode::StaleBrokerEpoch);
}

#[test]
fn a_controlled_shutdown_moves_leaders_and_ends_when_all_know_it() {
    let mut world = World::new(3, None);
    world.topic(&[2, 1, 3], &[]);
    world.silence(2);
    let behind = world.heartbeat_of(3);
    world.silence(3);
    let reply = world.say(&Heartbeat { want_shut_down: true, ..world.heartbeat_of(2) });
    assert!(!reply.expect("its epoch").should_shut_down);
    assert_eq!(world.state(), (1, vec![1, 3], vec![]));
    assert!(world.set_isr(&[1, 2, 3]).is_err(), "it does not come back");

    world.heartbeat(1).expect("its epoch");
    world.say(&behind).expect("its epoch");
    let stop = Heartbeat { want_shut_down: true, ..world.heartbeat_of(2) };
    assert!(!world.say(&stop).expect("its epoch").should_shut_down, "the third does not know yet");
    world.heartbeat(3).expect("its epoch");
    assert!(world.say(&stop).expect("its epoch").should_shut_down);
    assert!(world.is_fenced(2));
}

#[test]
fn a_shutdown_goes_on_with_the_next_controller() {
    let mut world = World::new(2, None);
    world.topic(&[2, 1], &[]);
    world.say(&Heartbeat { want_shut_down: true, ..world.heartbeat_of(2) }).expect("its epoch");
    world.fail_over(None);
    world.heartbeat(1).expect("its epoch");
    let reply = world.say(&Heartbeat { want_shut_down: true, ..world.heartbeat_of(2) });
    assert!(reply.expect("its epoch").should_shut_down, "it leads nothing");
}

#[test]
fn a_single_broker_may_stop_and_leads_again() {
    let mut world = World::new(1, None);
    world.topic(&[1], &[]);
    let stop = Heartbeat { want_shut_down: true, ..world.heartbeat_of(1) };
    world.say(&stop).expect("its epoch");
    assert!(world.say(&stop).expect("its epoch").should_shut_down);
    assert_eq!(world.state(), (-1, vec![], vec![1]));
    world.start(1, Start::Clean);
    assert_eq!(world.state(), (1, vec![1], vec![]));
}

#[test]
fn after_a_power_cut_of_all_whoever_comes_first_leads() {
    let mut world = World::new(3, None);
    world.topic(&[1, 2, 3], &[("min.insync.replicas", "2")]);
    world.kill(&[1, 2, 3]);
    assert_eq!(world.state(), (-1, vec![], vec![1, 2, 3]));
    world.start(3, Start::Killed);
    assert_eq!(world.state(), (3, vec![3], vec![1, 2]));
    world.start(1, Start::KilledUnflushed);
    assert_eq!(world.state(), (3, vec![3], vec![2]), "who may have lost records is not eligible");
}

#[test]
fn an_unregistered_broker_is_in_no_isr() {
    let mut world = World::new(2, None);
    world.topic(&[1, 2], &[("min.insync.replicas", "2")]);
    let decision = world.controller.unregister_broker(model::NodeId(2));
    world.commit(decision).expect("registered");
    assert_eq!(world.state(), (1, vec![1], vec![]));
    let decision = world.controller.unregister_broker(model::NodeId(2));
    let error = world.commit(decision).expect_err("gone");
    assert_eq!(ErrorCode::from(&error), ErrorCode::BrokerIdNotRegistered);
}

#[test]
fn a_failed_folder_takes_its_replicas_out() {
    let mut world = World::new(2, None);
    let mut registration = world.registration(3, Start::Killed);
    registration.directories.push(model::Uuid([77; 16]));
    world.register(&registration).expect("registered");
    world.heartbeat(3).expect("its epoch");
    world.topic(&[3, 1], &[]);
    let of = world.of();
    let assign = world.assign(3, world.disk(3), of);
    assert_eq!(assign, Ok(()));
    let failed = Heartbeat { offline_directories: vec![world.disk(3)], ..world.heartbeat_of(3) };
    world.say(&failed).expect("its epoch");
    assert_eq!(world.state(), (1, vec![1], vec![]));
    assert!(!world.is_fenced(3), "its other folder works");
    assert_eq!(failed.metadata_offset, Offset(world.controller.image().end().0 - 3));
}

#[test]
fn the_broker_in_the_controllers_own_process_is_not_fenced_for_its_silence() {
    let mut world = World::new(2, None);
    let here = Heartbeat { connection: ConnectionId::LOCAL, ..world.heartbeat_of(1) };
    world.fail_over(None);
    world.say(&here).expect("its epoch");
    world.silence(1);
    world.silence(2);
    world.pass(millis(20_000));
    assert!(!world.is_fenced(1) && world.is_fenced(2));
}

#[test]
fn an_alter_partition_of_a_connection_that_was_left_is_not_taken() {
    let mut world = World::new(2, None);
    let (id, epoch) = (NodeId(2), world.epoch(2));
    let mut takes = |connection| world.controller.takes_changes_from(id, epoch, ConnectionId(connection));
    assert!(takes(10) && takes(10) && takes(11));
    assert!(!takes(10), "it was given up before the one on connection 11");
    assert!(takes(11));
}
