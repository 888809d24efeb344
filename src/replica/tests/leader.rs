//! What a leader does, told step by step.

mod bench;

use std::time::Duration;

use bench::Bench;
use model::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, Offset};
use replica::{EpochEnd, FetchError, FetchRequest, Position, ProduceError};

const LAG_MAX: Duration = Duration::from_secs(30);

/// Leads epoch 2 with ten records of epoch 1, which all replicas have.
fn leader() -> Bench {
    let mut bench = Bench::new(&[1]);
    bench.led_by(1, 2);
    bench.fetched_by(2, 10);
    bench.fetched_by(3, 10);
    assert_eq!(bench.done(), ["epoch 2 begins at 10", "flush", "committed 10"]);
    bench
}

/// The third has left the ISR.
fn leader_of_two() -> Bench {
    let mut bench = leader();
    bench.metadata(|state| state.isr = vec![NodeId(1), NodeId(2)]);
    bench
}

#[test]
fn a_new_leader_notes_where_its_epoch_begins_though_it_has_no_records() {
    let mut bench = Bench::new(&[1, 1]);
    bench.led_by(1, 4);
    assert_eq!(bench.done(), ["epoch 4 begins at 20", "flush"]);
}

#[test]
fn records_are_committed_when_all_in_sync_replicas_hold_them_safely() {
    let mut bench = leader();
    bench.append();
    bench.fetched_by(2, 20);
    bench.fetched_by(3, 20);
    assert_eq!(bench.done(), [""; 0], "the leader itself has not flushed them");
    bench.flush();
    assert_eq!(bench.done(), ["committed 20"]);
}

#[test]
fn a_follower_counts_only_by_a_fetch_of_this_epoch() {
    let mut bench = leader();
    bench.append();
    bench.flush();
    bench.led_by(1, 3);
    bench.fetched_by(2, 20);
    assert_eq!(bench.done(), ["epoch 3 begins at 20", "flush"]);
    bench.fetched_by(3, 20);
    assert_eq!(bench.done(), ["committed 20"]);
}

#[test]
fn the_high_watermark_is_exposed_from_the_epochs_start() {
    let mut bench = Bench::new(&[1]);
    bench.led_by(1, 2);
    assert!(!bench.replica.is_exposed());
    bench.fetched_by(2, 10);
    bench.fetched_by(3, 10);
    assert!(bench.replica.is_exposed());
}

#[test]
fn under_min_isr_nothing_is_taken_and_nothing_committed() {
    let mut bench = leader();
    bench.metadata(|state| state.isr = vec![NodeId(1)]);
    let refused = ProduceError::NotEnoughReplicas { isr: 1, min_isr: 2 };
    assert_eq!(bench.replica.check_append(true), Err(refused));
    assert_eq!(bench.replica.check_append(false), Ok(LeaderEpoch(2)), "acks=1 asks for nobody");
    bench.append();
    bench.flush();
    assert_eq!(bench.replica.high_watermark(), Offset(10), "KAFKA-15583");
}

#[test]
fn min_isr_asks_for_no_more_than_there_are_replicas() {
    let mut bench = Bench::new(&[]);
    bench.state.replicas.truncate(1);
    bench.state.isr.truncate(1);
    bench.led_by(1, 1);
    bench.append();
    bench.flush();
    assert_eq!(bench.replica.high_watermark(), Offset(10));
}

#[test]
fn a_lower_min_isr_commits_what_waited_for_it() {
    let mut bench = leader();
    bench.metadata(|state| state.isr = vec![NodeId(1)]);
    bench.append();
    bench.flush();
    bench.metadata(|state| state.min_isr = 1);
    assert_eq!(bench.replica.high_watermark(), Offset(10), "the two others are awaited: they may join again");
    bench.pass(LAG_MAX);
    assert_eq!(bench.replica.high_watermark(), Offset(20));
}

#[test]
fn committed_records_are_not_acknowledged_where_too_few_are_in_sync_by_then() {
    let mut bench = leader();
    let end = bench.append();
    assert_eq!(bench.replica.verdict(LeaderEpoch(2), end), None);
    bench.flush();
    bench.fetched_by(2, 20);
    bench.fetched_by(3, 20);
    assert_eq!(bench.replica.verdict(LeaderEpoch(2), end), Some(Ok(())));
    bench.metadata(|state| state.isr = vec![NodeId(1)]);
    let error = ProduceError::NotEnoughReplicasAfterAppend { isr: 1, min_isr: 2 };
    assert_eq!(bench.replica.verdict(LeaderEpoch(2), end), Some(Err(error)));
}

#[test]
fn who_waited_when_the_leader_changed_is_told_so_even_if_it_leads_again() {
    let mut bench = leader();
    let end = bench.append();
    bench.led_by(1, 3);
    assert_eq!(bench.replica.verdict(LeaderEpoch(2), end), None, "it led on: what it had appended is there");
    bench.led_by(2, 4);
    bench.led_by(1, 5);
    let gone = Some(Err(ProduceError::NotLeader));
    assert_eq!(bench.replica.verdict(LeaderEpoch(2), end), gone);
    assert!(bench.done().contains(&"leads no more".to_owned()));
}

#[test]
fn a_replica_that_lags_is_removed_and_holds_back_until_the_controller_has_done_so() {
    let mut bench = leader();
    bench.append();
    bench.flush();
    bench.pass(LAG_MAX / 2);
    bench.fetched_by(2, 20);
    assert_eq!(bench.done(), [""; 0]);
    bench.pass(LAG_MAX / 2);
    assert_eq!(bench.done(), ["ask for ISR [1, 2]"]);
    bench.altered(Ok(()));
    assert_eq!(bench.done(), [""; 0], "min ISR may have been raised before");
    bench.metadata(|state| state.isr = vec![NodeId(1), NodeId(2)]);
    assert_eq!(bench.done(), ["committed 20"], "KAFKA-13091");
}

#[test]
fn a_replica_that_has_everything_does_not_lag_however_long_it_is_silent() {
    let mut bench = leader();
    bench.pass(LAG_MAX * 10);
    assert_eq!(bench.done(), [""; 0]);
    assert_eq!(bench.replica.deadline(&bench.disk), None);
}

#[test]
fn a_replica_joins_once_it_has_all_that_is_committed_and_counts_from_then_on() {
    let mut bench = leader_of_two();
    bench.pass(LAG_MAX);
    bench.append();
    bench.flush();
    bench.fetched_by(2, 20);
    assert_eq!(bench.done(), ["committed 20"]);
    bench.fetched_by(3, 10);
    assert_eq!(bench.done(), [""; 0], "it lacks what is committed");
    bench.fetched_by(3, 20);
    assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"]);
    bench.append();
    bench.flush();
    bench.fetched_by(2, 30);
    assert_eq!(bench.done(), [""; 0], "the controller may have added it already");
    bench.altered(Ok(()));
    bench.fetched_by(3, 30);
    assert_eq!(bench.done(), ["committed 30"]);
}

#[test]
fn a_replica_below_the_epochs_start_does_not_join_though_it_has_all_that_is_known_to_be_committed() {
    let mut bench = Bench::new(&[1, 1]);
    bench.state.isr = vec![NodeId(1), NodeId(2)];
    bench.led_by(1, 2);
    bench.done();
    assert_eq!(bench.replica.high_watermark(), Offset(0), "the new leader does not know it yet");
    bench.fetched_by(3, 10);
    assert_eq!(bench.done(), [""; 0], "KAFKA-7128: the second may have had all 20");
    bench.fetched_by(3, 20);
    assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"]);
}

#[test]
fn a_replica_that_still_has_what_is_deleted_joins_once_it_has_deleted_it_too() {
    let mut bench = leader_of_two();
    bench.disk.advance_log_start(Offset(10));
    bench.fetched_by(3, 10);
    assert_eq!(bench.done(), [""; 0], "nothing tells any more whether it is the same");
    let mut fetch = bench.follower_fetch(3, 10);
    fetch.log_start = Offset(10);
    bench.replica.handle_follower_fetch(bench.now, &bench.disk, &fetch);
    bench.act();
    assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"]);
}

#[test]
fn a_replica_that_may_not_join_is_neither_asked_for_nor_waited_for() {
    let mut bench = leader_of_two();
    bench.metadata(|state| state.replicas[2].is_active = false);
    bench.append();
    bench.fetched_by(3, 20);
    bench.append();
    bench.flush();
    bench.fetched_by(2, 30);
    assert_eq!(bench.done(), ["committed 30"], "KAFKA-13916, KAFKA-15021");
    bench.metadata(|state| state.replicas[2].is_active = true);
    assert_eq!(bench.done(), [""; 0]);
    bench.fetched_by(3, 30);
    assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"]);
}

#[test]
fn a_replica_of_another_registration_than_the_metadata_knows_does_not_join() {
    let mut bench = leader_of_two();
    let mut fetch = bench.follower_fetch(3, 10);
    fetch.broker_epoch = Some(BrokerEpoch(200));
    bench.replica.handle_follower_fetch(bench.now, &bench.disk, &fetch);
    bench.act();
    assert_eq!(bench.done(), [""; 0], "it registered anew, and the metadata here is behind");
    bench.metadata(|state| state.replicas[2].epoch = Some(BrokerEpoch(200)));
    bench.replica.handle_follower_fetch(bench.now, &bench.disk, &fetch);
    bench.act();
    assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"], "KIP-903");
    let asked = bench.asked.clone().expect("it asked");
    let epochs: Vec<_> = asked.isr.iter().map(|member| member.broker_epoch.map(|epoch| epoch.0)).collect();
    assert_eq!(epochs, [Some(101), Some(102), Some(200)]);
    fetch.broker_epoch = Some(BrokerEpoch(103));
    let refused = bench.replica.check_follower_fetch(&bench.disk, &fetch);
    assert_eq!(refused, Err(FetchError::NotLeader), "a fetch of its earlier life");
}

#[test]
fn a_change_that_was_not_made_is_taken_back_and_not_asked_for_again_at_once() {
    for error in [ErrorCode::IneligibleReplica, ErrorCode::OperationNotAttempted] {
        let mut bench = leader_of_two();
        bench.fetched_by(3, 10);
        bench.append();
        bench.flush();
        bench.fetched_by(2, 20);
        assert_eq!(bench.done(), ["ask for ISR [1, 2, 3]"]);
        bench.metadata(|state| state.replicas[2].is_active = false);
        bench.state.partition_epoch.0 -= 1;
        bench.altered(Err(error));
        assert_eq!(bench.replica.high_watermark(), Offset(20));
    }
}

#[test]
fn a_change_that_may_have_been_made_stays_pending_until_metadata_says_so() {
    for error in [
        ErrorCode::FencedLeaderEpoch,
        ErrorCode::InvalidUpdateVersion,
        ErrorCode::UnknownTopicId,
        ErrorCode::InvalidRequest,
        ErrorCode::NewLeaderElected,
    ] {
        let mut bench = leader_of_two();
        bench.fetched_by(3, 10);
        bench.done();
        bench.altered(Err(error));
        bench.append();
        bench.flush();
        bench.fetched_by(2, 20);
        bench.pass(LAG_MAX);
        assert_eq!(bench.done(), [""; 0], "{error:?}: neither asked again nor forgotten");
        bench.metadata(|state| state.isr = vec![NodeId(1), NodeId(2)]);
        assert_eq!(bench.done(), ["committed 20"], "{error:?}");
    }
}

#[test]
fn a_change_that_failed_for_now_is_asked_for_again_whole() {
    for error in [ErrorCode::NotController, ErrorCode::StaleBrokerEpoch, ErrorCode::UnknownServerError] {
        let mut bench = leader_of_two();
        bench.fetched_by(3, 10);
        let first = bench.asked.clone().expect("it asked");
        bench.altered(Err(error));
        let again_at = bench.replica.deadline(&bench.disk).expect("KAFKA-14010");
        bench.pass(again_at.since(bench.now));
        let second = bench.asked.clone().expect("it asked");
        assert_eq!((&first.isr, first.id < second.id), (&second.isr, true), "KAFKA-15353");
        bench.done();
        bench.replica.handle_alter_partition_answer(
            bench.now,
            &bench.disk,
            first.id,
            Err(ErrorCode::IneligibleReplica),
        );
        bench.altered(Ok(()));
        assert_eq!(bench.replica.isr().map(Iterator::count), Some(3), "the first answer came too late");
    }
}

#[test]
fn an_answer_of_the_controller_counts_only_while_the_partition_is_what_it_was() {
    let mut bench = leader_of_two();
    bench.fetched_by(3, 10);
    bench.metadata(|state| state.isr = vec![NodeId(1), NodeId(2)]);
    bench.altered(Ok(()));
    assert_eq!(bench.replica.isr().map(Iterator::count), Some(2));
}

#[test]
fn a_fetch_is_checked_in_kafkas_order() {
    let mut bench = leader();
    let disk = bench.disk.clone();
    let mut fetch = bench.follower_fetch(2, 10);
    let check = |bench: &Bench, fetch: &_| bench.replica.check_follower_fetch(&disk, fetch);
    assert_eq!(check(&bench, &fetch), Ok(Position::Valid));

    fetch.request.leader_epoch = Some(LeaderEpoch(1));
    assert_eq!(check(&bench, &fetch), Err(FetchError::FencedLeaderEpoch));
    fetch.request.leader_epoch = Some(LeaderEpoch(3));
    assert_eq!(check(&bench, &fetch), Err(FetchError::UnknownLeaderEpoch));
    fetch.request.leader_epoch = Some(LeaderEpoch(2));
    fetch.replica = NodeId(4);
    assert_eq!(check(&bench, &fetch), Err(FetchError::UnknownLeaderEpoch), "KAFKA-13837");
    fetch.request.leader_epoch = None;
    assert_eq!(check(&bench, &fetch), Err(FetchError::NotLeader));

    bench.led_by(2, 3);
    fetch.request.leader_epoch = Some(LeaderEpoch(3));
    assert_eq!(check(&bench, &fetch), Err(FetchError::NotLeader), "KAFKA-14078");
    fetch.request.leader_epoch = Some(LeaderEpoch(2));
    assert_eq!(check(&bench, &fetch), Err(FetchError::FencedLeaderEpoch), "the epoch comes first");
}

#[test]
fn a_position_is_in_range_and_of_this_history_or_it_is_told_where_they_part() {
    let mut bench = Bench::new(&[1, 1, 3]);
    bench.led_by(1, 5);
    bench.disk.advance_log_start(Offset(10));
    let at = |offset: i64, epoch: Option<i32>| {
        let request = FetchRequest {
            leader_epoch: Some(LeaderEpoch(5)),
            offset: Offset(offset),
            last_fetched_epoch: epoch.map(LeaderEpoch),
        };
        bench.replica.check_fetch(&bench.disk, &request)
    };
    let out_of_range = Err(FetchError::OutOfRange { log_start: Offset(10), log_end: Offset(30) });
    let parts =
        |epoch, end| Ok(Position::Diverging(EpochEnd { epoch: LeaderEpoch(epoch), end: Offset(end) }));
    assert_eq!(at(20, Some(1)), Ok(Position::Valid));
    assert_eq!(at(30, Some(3)), Ok(Position::Valid));
    assert_eq!(at(5, Some(2)), out_of_range, "before divergence is looked at");
    assert_eq!(at(25, Some(1)), parts(1, 20), "it has more of epoch 1");
    assert_eq!(at(25, Some(2)), parts(1, 20), "epoch 2 is not known here");
    assert_eq!(at(30, Some(4)), parts(3, 30));
    assert_eq!(at(30, Some(6)), out_of_range, "newer than all");
    assert_eq!(at(31, None), out_of_range);
    assert_eq!(at(30, None), Ok(Position::Valid));
}

#[test]
fn a_diverging_fetch_says_nothing_about_the_follower() {
    let mut bench = leader();
    bench.append();
    bench.flush();
    bench.fetched_by(2, 20);
    let mut fetch = bench.follower_fetch(3, 25);
    fetch.request.last_fetched_epoch = Some(LeaderEpoch(1));
    bench.replica.handle_follower_fetch(bench.now, &bench.disk, &fetch);
    assert_eq!(bench.replica.high_watermark(), Offset(10));
}

#[test]
fn a_replica_that_was_removed_and_added_again_counts_from_nothing() {
    let mut bench = leader();
    bench.append();
    bench.flush();
    bench.metadata(|state| {
        state.leader_epoch = LeaderEpoch(3);
        state.isr = vec![NodeId(1), NodeId(2)];
    });
    bench.fetched_by(2, 20);
    bench.done();
    bench.fetched_by(3, 0);
    assert_eq!(bench.done(), [""; 0], "removal raises the leader epoch: what its old log had is forgotten");
}

#[test]
fn metadata_of_before_its_registration_makes_no_leader() {
    let mut bench = Bench::new(&[1, 2]);
    bench.replica.handle_registered(BrokerEpoch(300));
    bench.led_by(1, 2);
    assert_eq!(bench.replica.leads(), None, "an earlier process led: followers may have what was lost here");
    bench.state.replicas[0].epoch = Some(BrokerEpoch(300));
    bench.led_by(1, 3);
    assert_eq!(bench.replica.leads(), Some(LeaderEpoch(3)));
}

#[test]
fn records_are_deleted_once_all_living_replicas_have_done_so() {
    let mut bench = leader();
    bench.disk.advance_log_start(Offset(5));
    assert_eq!(bench.replica.low_watermark(&bench.disk), Some(Offset(0)));
    for follower in [2, 3] {
        let mut fetch = bench.follower_fetch(follower, 10);
        fetch.log_start = Offset(5);
        bench.replica.handle_follower_fetch(bench.now, &bench.disk, &fetch);
    }
    assert_eq!(bench.replica.low_watermark(&bench.disk), Some(Offset(5)));
}
