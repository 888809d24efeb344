//! Known faults, each put back and caught by a scenario of its own that the true code passes.
//!
//! Random histories find some of these within a seed or two and others not in hundreds, which is why each has
//! a name here.

mod simulation;

use std::time::Duration;

use quorum::{Mutant, RoleName};
use simulation::outcome;
use simulation::steps::{LONG, millis};
use simulation::world::{Verdict, World};

/// The true code passes; with the fault the scenario ends with this violation.
fn catches(mutant: Mutant, violation: &str, scenario: impl Fn(Option<Mutant>)) {
    scenario(None);
    let found = outcome(|| scenario(Some(mutant)));
    let found = found.expect_err("the scenario does not notice the fault");
    assert!(found.contains(violation), "noticed for another reason: {found}");
}

// A world in which a broken rule is noticed by the harm that it does.
fn harm_only(voters: usize, mutant: Option<Mutant>) -> World {
    let mut world = World::new(1, voters, 0, mutant);
    world.oracle.harm_only = true;
    world
}

#[test]
fn a_record_of_an_older_epoch_is_not_committed_by_counting() {
    catches(Mutant::CommitOlderEpoch, "without the committed", raft_figure_8);
}

// Raft, figure 8, with the first node's record of epoch 2 and the fifth's of epoch 3.
fn raft_figure_8(mutant: Option<Mutant>) {
    let mut world = harm_only(5, mutant);
    world.batches_most = 1;
    world.led_by_first(1);
    world.drop_all(|message| message.from == 0 && message.to >= 2);
    world.append_many(0, 1);
    let of_first = world.epoch(0);
    world.run_for(millis(50));
    assert_eq!(world.end(1), world.end(0), "the second has it, too");
    world.crash_hard(0);
    world.isolate(1);
    world.elect_but(4, |message| message.is_fetch() && message.to == 4);
    world.run_for(millis(50));
    world.crash_hard(4);

    world.network.heal();
    world.start(0);
    let next = model::LeaderEpoch(world.epoch(3).0 + 1);
    world.elect_but(0, move |message| message.brings(next));
    assert_eq!(world.epoch(0), next);
    world.run_for(millis(200));
    assert_eq!(world.quorum(2).log().last_epoch(), of_first, "the first's old record is on three disks");

    world.crash_hard(0);
    world.start(4);
    world.isolate(1);
    world.elect(4);
    world.network.heal();
    world.start(0);
    world.settle();
}

#[test]
fn a_flush_proves_nothing_about_what_was_written_after_a_truncation() {
    catches(Mutant::FlushAcrossTruncation, "on 1 disks", |mutant| {
        let mut world = harm_only(3, mutant);
        with_a_tail_on_the_first(&mut world);
        // A flush of the tail that is about to be cut begins, and takes long.
        world.hold_flushes(0);
        world.flush_unasked(0);
        world.elect_but(1, |message| message.is_fetch() && message.from == 2);
        world.crash(2);
        world.network.heal();
        let goes_on = |world: &World| world.quorum(0).log().last_epoch() == world.epoch(1);
        assert!(world.run_until(LONG, goes_on), "{}", world.describe());
        world.nodes[0].flush_micros = (100_000, 100_001);
        world.release_flushes(0);
        world.settle();
    });
}

#[test]
fn a_voter_that_hears_nothing_does_not_depose_the_leader() {
    catches(Mutant::NoPreVote, "the epoch changed", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        let epoch = world.epoch(0);
        world.no_rule();
        world.network.cut(0, 2);
        world.network.cut(1, 2);
        world.run_for(Duration::from_secs(5));
        assert_eq!(world.epoch(0), epoch, "the epoch changed");
        world.network.heal();
        world.run_for(Duration::from_secs(5));
        assert_eq!((world.epoch(0), world.epoch(2)), (epoch, epoch), "the epoch changed");
        assert_eq!(world.role(0), Some(RoleName::Leader));
    });
}

#[test]
fn a_follower_acknowledges_only_what_is_flushed() {
    catches(Mutant::FetchBeforeFlush, "on 1 disks", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        let before = world.watermark(0);
        world.hold_flushes(1);
        world.hold_flushes(2);
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert_eq!(world.watermark(0), before);
        world.release_flushes(1);
        world.settle();
    });
}

#[test]
fn a_leader_counts_only_what_it_has_flushed() {
    catches(Mutant::LeaderCountsUnflushed, "on 1 disks", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        let before = world.watermark(0);
        world.crash(2);
        world.hold_flushes(0);
        world.append_many(0, 1);
        world.run_for(millis(200));
        assert_eq!(world.watermark(0), before);
        world.release_flushes(0);
        world.settle();
    });
}

#[test]
fn a_vote_is_for_a_log_that_reaches_as_far() {
    catches(Mutant::VoteWithoutLogCheck, "without the committed", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        world.isolate(2);
        world.append_many(0, 1);
        world.settle();
        world.crash(0);
        world.network.heal();
        world.drop_all(|message| message.is_campaign() && message.from != 2);
        world.run_for(Duration::from_secs(3));
        world.no_rule();
        world.settle();
        assert_eq!(world.role(1), Some(RoleName::Leader));
    });
}

#[test]
fn an_answer_counts_only_for_its_question() {
    catches(Mutant::StaleAnswer, "below the high watermark", |mutant| {
        let mut world = harm_only(3, mutant);
        with_a_tail_on_the_first(&mut world);
        world.elect(1);
        world.settle();
        // The first answer about the diverging logs is slow; the second comes in time.
        world.set_rule(|message| if message.is_diverging() { Verdict::Hold } else { Verdict::Pass });
        world.network.heal();
        world.run_for(millis(350));
        world.no_rule();
        world.append_many(1, 3);
        world.settle();
        assert_eq!(world.watermark(0), world.end(1));
        world.release(|_| true);
        world.settle();
    });
}

// The first node leads, is cut off, and takes records that nobody else has.
fn with_a_tail_on_the_first(world: &mut World) {
    world.led_by_first(1);
    world.isolate(0);
    world.append_many(0, 6);
    world.run_for(millis(50));
}

#[test]
fn only_a_good_answer_moves_the_high_watermark() {
    catches(Mutant::FencedAnswerMovesHighWatermark, "below the high watermark", |mutant| {
        let mut world = harm_only(3, mutant);
        with_a_tail_on_the_first(&mut world);
        world.elect(1);
        world.settle();
        world.append_many(1, 3);
        world.settle();
        world.network.heal();
        world.settle();
    });
}

#[test]
fn a_diverging_fetch_acknowledges_nothing() {
    catches(Mutant::DivergingFetchCounts, "on 1 disks", |mutant| {
        let mut world = harm_only(3, mutant);
        with_a_tail_on_the_first(&mut world);
        world.elect_but(1, |message| message.is_fetch() && message.from == 2);
        world.crash(2);
        world.network.heal();
        world.settle();
    });
}

#[test]
fn a_vote_is_remembered_across_a_crash() {
    catches(Mutant::VoteNotPersisted, "voted twice", |mutant| {
        let mut world = harm_only(3, mutant);
        world.network.cut(0, 2);
        world.network.cut(2, 0);
        let is_middle = |message: &simulation::network::Message| message.is_campaign() && message.from == 1;
        world.set_rule(move |message| match message {
            _ if is_middle(message) => Verdict::Drop,
            _ if message.is_vote() => Verdict::Hold,
            _ => Verdict::Pass,
        });
        let both = |world: &World| [0, 2].iter().all(|at| world.role(*at) == Some(RoleName::Candidate));
        assert!(world.run_until(LONG, both), "{}", world.describe());
        assert_eq!(world.epoch(0), world.epoch(2));
        // The first gets the vote and never hears of it.
        world.release(|message| message.from == 0);
        world.network.cut(1, 0);
        world.run_for(millis(5));
        world.crash(1);
        world.start(1);
        world.release(|message| message.from == 2);
        world.run_for(millis(5));
        world.network.heal();
        world.no_rule();
        world.settle();
    });
}

#[test]
fn voters_do_not_send_each_other_back_to_a_dead_leader() {
    catches(Mutant::EchoOfDeadLeader, "it does not settle", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        world.no_rule();
        world.crash(0);
        world.settle();
    });
}

#[test]
fn a_leader_that_no_majority_fetches_from_resigns() {
    catches(Mutant::NoCheckQuorum, "it still leads", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        world.network.cut(1, 0);
        world.network.cut(2, 0);
        world.run_for(Duration::from_secs(1));
        assert_ne!(world.role(0), Some(RoleName::Leader), "it still leads");
    });
}

#[test]
fn voters_are_changed_one_at_a_time() {
    catches(Mutant::TwoVoterChanges, "without the committed", |mutant| {
        let mut world = harm_only(3, mutant);
        world.led_by_first(1);
        world.no_rule();
        world.isolate(0);
        let (second, third) = (world.nodes[1].key, world.nodes[2].key);
        world.remove_voter(0, second);
        world.remove_voter(0, third);
        world.run_for(Duration::from_secs(3));
        world.network.heal();
        world.settle();
    });
}
