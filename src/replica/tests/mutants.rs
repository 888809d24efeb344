//! Known faults, each put back and caught by a scenario of its own that the true code passes.

mod simulation;

use std::time::Duration;

use model::NodeId;
use replica::{LogView, Mutant};
use simulation::controller::Controller;
use simulation::network::{Body, CONTROLLER, Message};
use simulation::outcome;
use simulation::steps::{LONG, millis};
use simulation::world::{Verdict, World};

const LACKS: &str = "may be elected and lacks the committed";
const SUPERSET: &str = "the controller on more";

/// The true code passes; with the fault the scenario ends with this violation.
fn catches(mutant: Mutant, violation: &str, scenario: impl Fn(Option<Mutant>)) {
    scenario(None);
    fails(violation, || scenario(Some(mutant)));
}

fn fails(violation: &str, scenario: impl Fn()) {
    let found = outcome(scenario);
    let found = found.expect_err("the scenario does not notice the fault");
    assert!(found.contains(violation), "noticed for another reason: {found}");
}

#[test]
fn the_high_watermark_waits_for_all_in_sync_replicas() {
    catches(Mutant::HighWatermarkBeyondIsr, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.drop_all(Message::is_fetch);
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn a_leader_counts_only_what_it_has_flushed() {
    catches(Mutant::LeaderCountsUnflushed, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.hold_flushes(0);
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn a_follower_acknowledges_only_what_is_flushed() {
    catches(Mutant::FetchBeforeFlush, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.hold_flushes(1);
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn a_follower_that_restarts_does_not_cut_to_its_high_watermark() {
    catches(Mutant::TruncateToHighWatermark, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.append_many(0, 1);
        let is_committed = |world: &World| world.watermark(0) == world.end(0);
        assert!(world.run_until(LONG, is_committed));
        world.kill(1);
        world.start(1);
        world.settle();
    });
}

#[test]
fn a_log_that_diverges_is_cut_before_it_grows() {
    catches(Mutant::NoTruncation, "two truths are committed", |mutant| {
        let mut world = World::three(mutant, 1);
        world.with_a_lost_leader();
        world.append_many(1, 12);
        world.run_for(millis(200));
        world.network.heal();
        world.settle();
    });
}

#[test]
fn a_leader_without_records_tells_where_older_epochs_end() {
    catches(Mutant::NoEpochEntry, "it does not settle", |mutant| {
        let mut world = World::three(mutant, 1);
        world.with_a_tail_on_the_first();
        assert!(world.append(1, false));
        world.run_for(millis(50));
        world.lead(0);
        world.no_rule();
        world.settle();
    });
}

#[test]
fn a_replica_below_the_epochs_start_does_not_join() {
    catches(Mutant::ExpandBelowEpochStart, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.kill(2);
        assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2] && world.knows_isr(0, 2)));
        world.append_many(0, 1);
        let is_committed = |world: &World| world.watermark(0) == world.end(0);
        assert!(world.run_until(LONG, is_committed));
        // The second does not know yet what the first had committed.
        world.kill(0);
        assert!(world.run_until(LONG, |world| world.leads(1)));
        assert!(world.watermark(1) < world.end(1));
        world.hold_all(|message| message.is_answer() && !is_empty(message));
        world.start(2);
        world.run_for(Duration::from_secs(2));
    });
}

fn is_empty(message: &Message) -> bool {
    matches!(&message.body, Body::Fetched { answer, .. } if answer.batches.is_empty())
}

#[test]
fn a_replica_that_the_controller_may_have_added_counts() {
    catches(Mutant::ExpandWithoutMaximal, SUPERSET, |mutant| {
        let mut world = World::three(mutant, 1);
        world.third_lags();
        world.drop_all(Message::is_altered);
        world.nodes[0].metadata_lag = 2_000_000;
        world.network.heal();
        assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2, 3]));
        world.settle();
    });
}

#[test]
fn a_replica_that_the_controller_has_not_yet_removed_counts() {
    catches(Mutant::ShrinkAtOnce, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.part(0, 2);
        world.append_many(0, 1);
        world.drop_all(Message::is_alter);
        world.run_for(Duration::from_secs(5));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn a_replica_that_left_counts_until_the_leader_knows_of_what_was_decided_before() {
    catches(Mutant::ShrinkBeforeMetadata, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.control(|controller| controller.set_min_isr(1));
        world.kill(2);
        assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2] && world.knows_isr(0, 2)));
        // Min ISR is raised, and the leader does not hear of it before its request is answered.
        world.nodes[0].metadata_lag = 10_000_000;
        world.control(|controller| controller.set_min_isr(2));
        world.part(0, 1);
        world.append_many(0, 1);
        assert!(world.run_until(LONG, |world| world.in_sync() == [1]));
        world.run_for(millis(500));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn an_answer_of_the_controller_about_an_older_state_counts_for_nothing() {
    catches(Mutant::StaleAlterPartition, SUPERSET, |mutant| {
        let mut world = World::three(mutant, 1);
        world.hold_all(Message::is_altered);
        world.third_lags();
        world.network.heal();
        assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2, 3] && world.knows_isr(0, 3)));
        world.release(|message| {
            matches!(&message.body, Body::Altered { answer: Ok(altered), .. } if altered.isr.len() == 2)
        });
        world.run_for(millis(200));
    });
}

#[test]
fn a_change_that_may_have_been_made_is_not_taken_back() {
    catches(Mutant::RollBackOnUnknown, SUPERSET, |mutant| {
        let mut world = World::three(mutant, 1);
        world.third_lags();
        world.drop_all(|message| matches!(&message.body, Body::Altered { answer: Ok(_), .. }));
        world.nodes[0].metadata_lag = 2_000_000;
        world.network.heal();
        world.run_for(Duration::from_secs(1));
        world.no_rule();
        world.settle();
    });
}

// The third is to join, and nobody hears of it for a while.
fn join_unheard(mutant: Option<Mutant>) {
    let mut world = World::three(mutant, 1);
    world.third_lags();
    world.drop_all(Message::is_alter);
    world.network.heal();
    world.run_for(Duration::from_secs(1));
    world.no_rule();
    world.settle();
}

#[test]
fn a_change_that_nobody_heard_of_is_asked_for_again() {
    catches(Mutant::NoAlterPartitionRetry, "it does not settle", join_unheard);
}

#[test]
fn a_change_that_is_asked_for_again_is_the_same() {
    catches(Mutant::EmptyIsrOnRetry, "it does not settle", join_unheard);
}

#[test]
fn a_replica_that_lost_its_disk_while_it_was_to_join_does_not() {
    catches(Mutant::FreshEpochsOnRetry, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.third_lags();
        world.drop_all(Message::is_alter);
        world.network.heal();
        world.run_for(millis(600));
        world.replace_disk(2);
        world.drop_all(|message| message.is_alter() || (message.is_answer() && message.to == 2));
        world.start(2);
        world.run_for(Duration::from_secs(1));
        world.drop_all(|message| message.is_answer() && message.to == 2);
        world.run_for(Duration::from_secs(1));
        assert_eq!(world.in_sync(), [1, 2]);
    });
}

#[test]
fn a_delayed_request_does_not_bring_back_a_replica_that_lost_its_disk() {
    catches(Mutant::StaleBrokerEpoch, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.third_lags();
        world.hold_all(Message::is_alter);
        world.network.heal();
        world.run_for(millis(300));
        world.replace_disk(2);
        world.part(0, 2);
        world.start(2);
        world.run_for(Duration::from_secs(1));
        world.release(|_| true);
        world.run_for(millis(50));
        assert_eq!(world.in_sync(), [1, 2]);
    });
}

#[test]
fn under_min_isr_nothing_is_committed() {
    catches(Mutant::HighWatermarkUnderMinIsr, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.kill(1);
        world.kill(2);
        assert!(world.run_until(LONG, |world| world.in_sync() == [1] && world.knows_isr(0, 1)));
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn what_only_waited_for_a_replica_that_left_is_committed() {
    catches(Mutant::NoRecomputeOnShrink, "not committed", |mutant| {
        let mut world = World::three(mutant, 1);
        world.control(|controller| controller.set_min_isr(1));
        world.kill(1);
        world.kill(2);
        world.append_many(0, 1);
        assert!(world.run_until(LONG, |world| world.knows_isr(0, 1)));
        world.run_for(millis(50));
        assert_eq!(world.watermark(0), world.end(0), "not committed");
    });
}

#[test]
fn nothing_waits_for_a_replica_that_may_not_join() {
    catches(Mutant::WaitForIneligible, "it waits", |mutant| {
        let mut world = World::three(mutant, 1);
        world.network.cut(2, CONTROLLER);
        assert!(world.run_until(LONG, |world| world.in_sync() == [1, 2] && world.knows_isr(0, 2)));
        world.run_for(millis(300));
        world.part(0, 2);
        world.append_many(0, 1);
        world.run_for(millis(500));
        assert_eq!(world.watermark(0), world.end(0), "it waits");
    });
}

#[test]
fn what_followers_told_in_an_older_epoch_counts_for_nothing() {
    catches(Mutant::KeepFollowersOverEpochs, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.drop_all(|message| message.from == 1 || message.to == 1);
        world.append_many(0, 2);
        assert!(world.run_until(LONG, |world| world.end(2) == world.end(0)));
        world.run_for(millis(20));
        // The second leads for a while, without the first hearing of it, and the third cuts what the second lacks.
        world.network.cut(CONTROLLER, 0);
        world.no_rule();
        world.lead(1);
        assert!(world.run_until(LONG, |world| world.end(2) == world.end(1)));
        world.control(Controller::move_leader);
        world.network.heal();
        world.drop_all(|message| message.is_fetch() && message.from == 2);
        assert!(world.run_until(LONG, |world| world.leads(0)));
        assert!(world.run_until(LONG, |world| world.end(1) == world.end(0)));
        world.run_for(millis(200));
        assert!(world.watermark(0) < world.end(0));
    });
}

#[test]
fn a_diverging_fetch_acknowledges_nothing() {
    catches(Mutant::DivergingFetchCounts, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.with_a_tail_on_the_first();
        assert!(world.append(1, false));
        world.drop_all(|message| message.is_answer() && message.to == 0);
        world.run_for(Duration::from_secs(1));
        assert!(world.watermark(1) < world.end(1));
    });
}

#[test]
fn an_answer_that_says_where_logs_part_moves_no_high_watermark() {
    catches(Mutant::RaiseBeforeTruncating, "two truths are committed", |mutant| {
        let mut world = World::three(mutant, 1);
        world.with_a_lost_leader();
        world.append_many(1, 4);
        world.run_for(millis(300));
        world.network.heal();
        world.settle();
    });
}

#[test]
fn an_answer_counts_only_for_its_question() {
    catches(Mutant::StaleFetchAnswer, LACKS, |mutant| {
        let mut world = World::three(mutant, 1);
        world.with_a_lost_leader();
        // The first answer about the diverging logs is slow; the second comes in time.
        world.set_rule(|message| if message.is_diverging() { Verdict::Hold } else { Verdict::Pass });
        world.network.heal();
        world.run_for(Duration::from_secs(1));
        world.no_rule();
        world.append_many(1, 3);
        world.settle();
        world.release(|_| true);
        world.run_for(millis(50));
        world.settle();
    });
}

#[test]
fn a_leader_that_restarts_does_not_give_its_offsets_again() {
    catches(Mutant::LeadAgainAfterRestart, "is led by", |mutant| {
        let mut world = World::three(mutant, 1);
        world.hold_flushes(0);
        world.append_many(0, 1);
        assert!(world.run_until(LONG, |world| world.end(1) == world.end(0)));
        world.lose_power(0);
        world.start(0);
        world.release_flushes(0);
        world.settle();
    });
}

// Faults of the driver, which holds the log.

#[test]
fn a_flush_proves_nothing_about_what_was_written_after_a_truncation() {
    let scenario = |counts: bool| {
        let mut world = World::three(None, 1);
        world.nodes[0].disk.counts_across_truncations = counts;
        world.with_a_tail_on_the_first();
        world.append_many(1, 1);
        // A flush of the tail that is about to be cut begins, and takes long.
        world.hold_flushes(0);
        world.flush_unasked(0);
        world.no_rule();
        let goes_on = |world: &World| world.nodes[0].disk.latest_epoch() == Some(world.epoch());
        assert!(world.run_until(LONG, goes_on), "{}", world.describe());
        world.nodes[0].flush_micros = (100_000, 100_001);
        world.release_flushes(0);
        world.settle();
    };
    scenario(false);
    fails(LACKS, || scenario(true));
}

#[test]
fn epoch_entries_are_as_safe_as_the_records() {
    let scenario = |forgets: bool| {
        let mut world = World::new(1, 3, 3, None);
        world.nodes.iter_mut().for_each(|node| node.disk.forgets_epochs = forgets);
        world.settle();
        world.lead(0);
        world.append_many(0, 3);
        world.settle();
        world.lose_power(1);
        world.start(1);
        world.settle();
    };
    scenario(false);
    fails(LACKS, || scenario(true));
}

#[test]
fn a_request_that_was_given_up_is_not_carried_out_later() {
    let scenario = |fences: bool| {
        let mut world = World::three(None, 1);
        world.fences_connections = fences;
        world.third_lags();
        // The first request is slow. When it is asked again, the third is fenced: the leader takes it back.
        world.hold_all(Message::is_alter);
        world.network.heal();
        world.run_for(millis(300));
        let third = NodeId(3);
        let epoch = world.controller.brokers[&third].epoch;
        world.network.cut(2, CONTROLLER);
        world.network.cut(CONTROLLER, 2);
        world.control(|controller| controller.fence(third, epoch));
        world.no_rule();
        world.part(0, 2);
        world.run_for(Duration::from_secs(1));
        world.append_many(0, 1);
        world.run_for(Duration::from_secs(4));
        assert_eq!(world.watermark(0), world.end(0));
        world.control(|controller| controller.unfence(third, epoch));
        world.nodes[0].metadata_lag = 1_000_000;
        world.release(|_| true);
        world.run_for(millis(100));
        assert_eq!(world.in_sync(), [1, 2]);
    };
    scenario(true);
    fails(LACKS, || scenario(false));
}

#[test]
fn every_mutant_has_its_scenario() {
    let text = concat!(include_str!("mutants.rs"), include_str!("follower.rs"));
    for mutant in Mutant::ALL {
        assert!(text.contains(&format!("(Mutant::{mutant:?}")), "{mutant:?} has no scenario");
    }
}
