//! What a partition does, told step by step.

mod simulation;

use std::time::Duration;

use model::{NodeId, Offset};
use replica::LogView;
use simulation::network::{CONTROLLER, Message};
use simulation::steps::{LONG, millis};
use simulation::world::World;

#[test]
fn all_replicas_lose_power_at_once_and_nothing_committed_is_lost() {
    let mut world = World::three(None, 5);
    let committed = world.oracle.committed_end();
    for at in 0..3 {
        world.append(0, false);
        world.lose_power(at);
    }
    (0..3).for_each(|at| world.start(at));
    world.settle();
    assert!(world.oracle.committed_end() >= committed);
}

#[test]
fn the_last_replica_standing_may_lose_power_and_lead_again() {
    // KIP-966: the others left below min ISR, and none of them may be preferred to it by what it committed alone.
    let mut world = World::three(None, 1);
    world.kill(1);
    world.kill(2);
    assert!(world.run_until(LONG, |world| world.in_sync() == [1]));
    world.append_many(0, 3);
    world.run_for(millis(100));
    world.lose_power(0);
    assert!(world.run_until(LONG, |world| world.leader().is_none()));
    (0..3).for_each(|at| world.start(at));
    world.settle();
}

#[test]
fn failovers_without_records_leave_no_divergence() {
    // KAFKA-6361: each of two leaders takes a record that the other never sees.
    let mut world = World::three(None, 1);
    world.with_a_tail_on_the_first();
    assert!(world.append(1, false));
    world.run_for(millis(50));
    world.lead(0);
    world.lead(1);
    world.no_rule();
    world.append_many(1, 1);
    world.settle();
}

#[test]
fn a_leader_that_was_elected_uncleanly_makes_the_others_cut() {
    let mut world = World::three(None, 1);
    world.control(|controller| controller.set_min_isr(1));
    world.kill(2);
    assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2]));
    world.append_many(0, 5);
    world.settle();
    world.kill(0);
    world.kill(1);
    world.start(2);
    world.run_for(Duration::from_secs(3));
    assert_eq!(world.leader(), None, "not unless it is allowed");
    world.controller.unclean = true;
    world.kill(2);
    world.start(2);
    assert!(world.run_until(LONG, |world| world.leads(2)));
    world.append_many(2, 1);
    world.start(0);
    world.start(1);
    world.settle();
    assert_eq!((world.end(0), world.watermark(0)), (world.end(2), world.end(2)));
}

#[test]
fn a_leader_that_is_cut_off_commits_nothing_and_loses_what_it_took() {
    let mut world = World::three(None, 1);
    world.with_a_lost_leader();
    assert!(world.watermark(0) < world.end(0));
    world.append_many(1, 2);
    world.network.heal();
    world.settle();
    assert_eq!(world.in_sync(), [1, 2, 3]);
}

#[test]
fn a_replica_that_was_removed_and_added_again_joins_only_with_all_records() {
    let mut world = World::three(None, 3);
    let all: Vec<NodeId> = world.controller.replicas.clone();
    world.control(|controller| controller.reassign(all[..2].to_vec()));
    world.control(|controller| controller.reassign(all.clone()));
    // It saw that it was removed; the leader learns of both at once.
    world.delete(2);
    world.drop_all(|message| message.is_answer() && message.to == 2);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.in_sync(), [1, 2]);
    world.no_rule();
    world.settle();
    assert_eq!(world.in_sync(), [1, 2, 3]);
}

#[test]
fn a_reassignment_to_other_nodes_brings_all_records_there() {
    let mut world = World::new(1, 5, 3, None);
    world.settle();
    world.lead(0);
    world.append_many(0, 5);
    world.control(|controller| controller.reassign(vec![NodeId(4), NodeId(5), NodeId(2)]));
    let is_done = |world: &World| world.controller.replicas.len() == 3 && world.is_quiet();
    assert!(world.run_until(LONG, is_done), "{}", world.describe());
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.end(0), Offset(0), "what was removed is deleted");
}

#[test]
fn a_leader_that_knows_more_than_a_late_controller_asks_again() {
    // KAFKA-14154: a controller that is behind refuses as NOT_CONTROLLER.
    let mut world = World::three(None, 1);
    world.third_lags();
    world.controller.partition_epoch.0 -= 1;
    world.network.heal();
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.in_sync(), [1, 2]);
    world.controller.partition_epoch.0 += 1;
    world.settle();
    assert_eq!(world.in_sync(), [1, 2, 3]);
}

#[test]
fn a_fenced_replica_that_still_fetches_joins_when_it_is_unfenced() {
    let mut world = World::three(None, 1);
    world.network.cut(2, CONTROLLER);
    assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2]));
    world.append_many(0, 2);
    world.run_for(Duration::from_secs(2));
    assert_eq!(world.in_sync(), [1, 2], "KAFKA-13916");
    world.network.heal();
    world.settle();
    assert_eq!(world.in_sync(), [1, 2, 3]);
}

#[test]
fn a_new_replica_starts_inside_the_batch_where_records_were_deleted() {
    // KAFKA-6975.
    let mut world = World::three(None, 1);
    world.kill(2);
    world.append_many(0, 4);
    let base = world.end(0);
    world.batch_of(0, 10);
    let is_committed = |world: &World| world.watermark(0) == world.end(0);
    assert!(world.run_until(LONG, is_committed));
    world.delete_records(0, base.plus(5));
    world.start(2);
    world.settle();
    assert_eq!(world.nodes[2].disk.log_start(), base.plus(5));
}

#[test]
fn nodes_are_restarted_one_after_the_other_and_no_acknowledged_record_is_lost() {
    let mut world = World::three(None, 1);
    for at in [0, 1, 2] {
        world.stop(at);
        let leads = |world: &World| world.leader().is_some_and(|leader| leader != at && world.leads(leader));
        assert!(world.run_until(LONG, leads));
        let leader = world.leader().expect("one leads");
        assert!(world.append(leader, true));
        world.run_for(millis(500));
        world.start(at);
        world.settle();
    }
    assert_eq!(world.oracle.acknowledged, 3);
}

#[test]
fn a_slow_answer_of_the_controller_stops_nothing_but_the_isr() {
    let mut world = World::three(None, 1);
    world.third_lags();
    world.hold_all(Message::is_alter);
    world.network.heal();
    world.run_for(millis(300));
    world.append_many(0, 3);
    let is_committed = |world: &World| world.watermark(0) == world.end(0);
    assert!(world.run_until(millis(500), is_committed), "all three have it");
    assert_eq!(world.in_sync(), [1, 2]);
}
