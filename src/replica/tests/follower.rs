//! What a follower does, told step by step.

mod bench;

use std::time::Duration;

use bench::{Bench, batch, diverging, records, refused};
use model::{ErrorCode, LeaderEpoch, Offset};
use replica::{Action, Config, EpochEnd, FetchAnswer, LeaderOffsets, LogView, Mutant};

/// Follows node 2 in `epoch` with a log of these epochs, ten records each.
fn follower(epochs: &[i32], epoch: i32) -> Bench {
    let mut bench = Bench::new(epochs);
    bench.led_by(2, epoch);
    bench
}

/// The follower learns where its leader's log starts and ends.
fn told(bench: &mut Bench, log_start: i64, log_end: i64) {
    let offsets = LeaderOffsets { log_start: Offset(log_start), log_end: Offset(log_end) };
    bench.replica.handle_leader_offsets(bench.now, &bench.disk, bench.question, Some(offsets));
    bench.act();
}

#[test]
fn the_next_fetch_acknowledges_and_so_waits_for_the_flush() {
    let mut bench = follower(&[], 1);
    assert_eq!(bench.done(), ["fetch 0"]);
    bench.holds_flushes = true;
    bench.answer(records(&[batch(0, 10, 1), batch(10, 20, 1)], 0));
    assert_eq!(bench.done(), ["append 2", "flush"]);
    bench.flush();
    assert_eq!(bench.done(), ["fetch 20 after epoch 1"]);
}

#[test]
fn where_the_topic_caches_writes_the_next_fetch_waits_for_nothing() {
    let mut bench = follower(&[], 1);
    bench.disk.caches = true;
    bench.holds_flushes = true;
    bench.answer(records(&[batch(0, 10, 1)], 0));
    assert_eq!(bench.done(), ["fetch 0", "append 1", "fetch 10 after epoch 1"]);
}

#[test]
fn what_recovery_kept_is_flushed_before_anything_is_fetched() {
    let mut bench = Bench::new(&[1]);
    bench.disk.append(batch(10, 20, 1));
    bench.holds_flushes = true;
    bench.led_by(2, 2);
    assert_eq!(bench.done(), ["flush"]);
    bench.flush();
    assert_eq!(bench.done(), ["fetch 20 after epoch 1"]);
}

#[test]
fn the_high_watermark_follows_the_leaders_up_to_the_log_end() {
    let mut bench = follower(&[], 1);
    bench.answer(records(&[batch(0, 10, 1)], 7));
    assert_eq!(bench.replica.high_watermark(), Offset(7));
    bench.answer(records(&[], 25));
    assert_eq!(bench.replica.high_watermark(), Offset(10));
    bench.answer(records(&[], 3));
    assert_eq!(bench.replica.high_watermark(), Offset(10), "what was committed once is so for ever");
}

#[test]
fn a_log_is_cut_where_the_histories_part_not_at_the_high_watermark() {
    let mut bench = follower(&[1, 1], 3);
    assert_eq!(bench.done(), ["fetch 20 after epoch 1"], "KAFKA-1211: nothing is cut beforehand");
    bench.answer(diverging(1, 10, 10));
    assert_eq!(bench.done(), ["truncate to 10", "fetch 10 after epoch 1"]);
}

#[test]
fn an_answer_that_says_where_they_part_moves_no_high_watermark() {
    let mut bench = follower(&[1, 1], 3);
    bench.answer(diverging(1, 10, 20));
    assert_eq!(bench.replica.high_watermark(), Offset(0), "KAFKA-14704");
}

#[test]
fn an_epoch_that_only_the_leader_knows_is_asked_about_step_by_step() {
    // Back-to-back failovers (KAFKA-6361): the leader never saw epoch 3, this node never saw epoch 2.
    let mut bench = follower(&[1, 3], 4);
    bench.answer(diverging(2, 15, 0));
    assert_eq!(
        bench.done(),
        ["fetch 20 after epoch 3", "truncate to 10", "fetch 10 after epoch 1"],
        "the leader's epoch 2 is unknown here: the log up to epoch 1's end may agree"
    );
    bench.answer(diverging(1, 8, 0));
    assert_eq!(bench.disk.log_end(), Offset(0), "whole batches are cut");
}

#[test]
fn an_epoch_without_records_is_forgotten_though_no_record_is_cut() {
    let mut bench = Bench::new(&[1]);
    bench.led_by(1, 2);
    bench.led_by(2, 3);
    bench.done();
    bench.answer(diverging(1, 10, 0));
    assert_eq!(bench.done(), ["truncate to 10", "fetch 10 after epoch 1"], "KAFKA-10706");
}

#[test]
fn a_leader_that_tells_nonsense_is_not_asked_again_at_once() {
    let mut bench = follower(&[1], 2);
    bench.answer(diverging(1, 10, 0));
    assert_eq!(bench.done(), ["fetch 10 after epoch 1"]);
    bench.pass(Duration::from_secs(1));
    assert_eq!(bench.done(), ["fetch 10 after epoch 1"]);
}

#[test]
fn an_answer_counts_for_its_question_only() {
    let mut bench = follower(&[1], 2);
    let first = bench.fetch.expect("it fetches").id;
    bench.led_by(3, 3);
    bench.done();
    bench.answer_to(first, diverging(1, 0, 0));
    bench.answer_to(first, records(&[batch(10, 20, 2)], 20));
    assert_eq!(bench.done(), [""; 0], "KAFKA-18991, KAFKA-7786: it was asked of another leader");
    let second = bench.fetch.expect("it fetches").id;
    bench.answer_to(second, records(&[batch(10, 20, 3)], 10));
    bench.done();
    bench.answer_to(second, records(&[batch(10, 20, 3)], 10));
    assert_eq!(bench.done(), [""; 0], "KAFKA-13266: it was asked of another log end");
}

#[test]
fn an_empty_answer_forgets_no_epoch() {
    let mut bench = follower(&[1], 2);
    bench.answer(records(&[], 5));
    assert_eq!(bench.fetch.expect("it fetches").last_fetched_epoch, Some(LeaderEpoch(1)), "KAFKA-15510");
}

#[test]
fn batches_of_a_newer_epoch_than_the_leader_that_was_asked_are_not_appended() {
    let mut bench = follower(&[1], 2);
    bench.done();
    bench.answer(records(&[batch(10, 20, 2), batch(20, 30, 3)], 30));
    assert_eq!(bench.done(), ["append 1", "committed 20", "flush", "fetch 20 after epoch 2"], "KAFKA-18723");
    bench.answer(records(&[batch(20, 30, 3)], 30));
    assert_eq!(bench.done(), [""; 0]);
}

#[test]
fn the_fault_of_appending_a_newer_epoch_shows() {
    let mut bench = Bench::new(&[1]);
    bench.replica = bench.replica.with_mutant(Mutant::AppendNewerEpochs);
    bench.led_by(2, 2);
    bench.answer(records(&[batch(10, 20, 2), batch(20, 30, 3)], 30));
    assert_eq!(bench.disk.log_end(), Offset(30));
}

#[test]
fn batches_that_do_not_fit_behind_the_log_are_not_appended() {
    for wrong in [batch(5, 15, 2), batch(0, 10, 1), batch(10, 20, 0), batch(10, 10, 2)] {
        let mut bench = follower(&[1], 2);
        bench.answer(records(&[wrong], 30));
        assert_eq!(bench.disk.log_end(), Offset(10), "{wrong:?}");
    }
}

#[test]
fn a_gap_that_compaction_left_is_no_fault() {
    let mut bench = follower(&[1], 2);
    bench.answer(records(&[batch(15, 20, 2)], 0));
    assert_eq!(bench.disk.log_end(), Offset(20));
}

#[test]
fn a_log_that_starts_inside_a_batch_begins_with_that_batch() {
    let mut bench = follower(&[1], 2);
    bench.answer(refused(ErrorCode::OffsetOutOfRange));
    told(&mut bench, 105, 130);
    assert_eq!(bench.done(), ["fetch 10 after epoch 1", "list offsets", "restart at 105", "fetch 105"]);
    // Another leader may have deleted less.
    let mut answer = records(&[batch(100, 110, 2), batch(110, 120, 2)], 115);
    answer.log_start = 102;
    bench.answer(answer);
    assert_eq!(
        bench.done(),
        [
            "restart at 100",
            "append 2",
            "log starts at 102",
            "committed 115",
            "flush",
            "fetch 120 after epoch 2"
        ],
        "KAFKA-6975"
    );
}

#[test]
fn a_follower_below_the_leaders_start_begins_there() {
    let mut bench = follower(&[1], 2);
    bench.answer(refused(ErrorCode::OffsetOutOfRange));
    told(&mut bench, 50, 90);
    assert_eq!(bench.done(), ["fetch 10 after epoch 1", "list offsets", "restart at 50", "fetch 50"]);
    assert_eq!(bench.replica.high_watermark(), Offset(50));
}

#[test]
fn a_follower_above_a_leader_that_was_elected_uncleanly_is_cut() {
    let mut bench = follower(&[1, 1], 2);
    bench.answer(records(&[], 20));
    bench.answer(refused(ErrorCode::OffsetOutOfRange));
    bench.done();
    told(&mut bench, 0, 10);
    assert_eq!(bench.done(), ["truncate to 10", "fetch 10 after epoch 1"]);
    assert_eq!(bench.replica.high_watermark(), Offset(10));
}

#[test]
fn the_log_start_follows_the_leaders() {
    let mut bench = follower(&[1, 1], 2);
    bench.done();
    let mut answer = records(&[], 15);
    answer.log_start = 12;
    bench.answer(answer);
    assert_eq!(bench.done(), ["log starts at 12", "committed 15", "fetch 20 after epoch 1"]);
}

#[test]
fn a_fetch_that_failed_is_asked_again_after_a_pause() {
    for error in [ErrorCode::NotLeaderOrFollower, ErrorCode::UnknownLeaderEpoch, ErrorCode::FencedLeaderEpoch]
    {
        let mut bench = follower(&[1], 2);
        bench.done();
        bench.answer(refused(error));
        assert_eq!(bench.done(), [""; 0]);
        let again_at = bench.replica.deadline(&bench.disk).expect("it waits");
        bench.pass(again_at.since(bench.now));
        assert_eq!(bench.done(), ["fetch 10 after epoch 1"]);
    }
}

#[test]
fn nobody_is_asked_while_nobody_leads() {
    let mut bench = follower(&[1], 2);
    bench.done();
    bench.led_by(-1, 3);
    bench.pass(Duration::from_secs(10));
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(bench.replica.deadline(&bench.disk), None);
}

#[test]
fn a_deposed_leader_keeps_its_high_watermark_and_cuts_what_the_new_one_lacks() {
    let mut bench = Bench::new(&[1]);
    bench.led_by(1, 2);
    for follower in [2, 3] {
        bench.fetched_by(follower, 10);
    }
    bench.append();
    bench.led_by(2, 3);
    bench.done();
    bench.answer(diverging(1, 10, 10));
    assert_eq!(bench.done(), ["truncate to 10", "fetch 10 after epoch 1"]);
    assert_eq!(bench.replica.high_watermark(), Offset(10));
    assert_eq!(
        bench.disk.epoch_end(LeaderEpoch(1)),
        Some(EpochEnd { epoch: LeaderEpoch(1), end: Offset(10) })
    );
}

#[test]
fn older_metadata_counts_for_nothing() {
    let mut bench = follower(&[1], 5);
    bench.led_by(1, 4);
    assert_eq!(bench.replica.leads(), None);
}

#[test]
fn a_leader_that_does_not_know_yet_that_it_leads_is_asked_again_sooner() {
    let pause = |error| {
        let mut bench = follower(&[1], 2);
        bench.answer(refused(error));
        bench.replica.deadline(&bench.disk).expect("it waits").since(bench.now)
    };
    let config = Config::default();
    assert_eq!(pause(ErrorCode::UnknownLeaderEpoch), config.news_backoff);
    assert_eq!(pause(ErrorCode::NotLeaderOrFollower), config.news_backoff);
    assert_eq!(pause(ErrorCode::KafkaStorageError), config.fetch_backoff);
}

#[test]
fn what_could_not_be_appended_is_asked_for_again_after_a_pause() {
    let mut bench = follower(&[1], 2);
    bench.done();
    let range = batch(10, 20, 2).range();
    let answer = FetchAnswer {
        error: ErrorCode::None,
        high_watermark: Offset(20),
        log_start: Offset(0),
        diverging: None,
        batches: &[range],
    };
    let asked = bench.fetch.expect("it fetches").id;
    bench.replica.handle_fetch_answer(bench.now, &bench.disk, asked, &answer);
    assert_eq!(bench.replica.poll_action(), Some(Action::Append { count: 1 }));
    bench.replica.handle_append_failure(bench.now);
    assert_eq!((bench.replica.poll_action(), bench.replica.high_watermark()), (None, Offset(0)));
    bench.pass(Config::default().fetch_backoff);
    assert_eq!(bench.done(), ["fetch 10 after epoch 1"]);
}
