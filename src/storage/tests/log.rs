//! Append, read, roll, flush and restart of one log.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::path::Path;

use common::*;
use env::Disk;
use model::{LeaderEpoch, Offset, Timestamp};
use sim::Kind;
use storage::{LogConfig, Origin, ReadError, Slice};

#[test]
fn what_is_appended_is_read_with_its_offsets() {
    let mut node = Node::new(LogConfig::default());
    let first = append(&mut node.log, &records(3));
    let second = append(&mut node.log, &records(2));
    assert_eq!((first.base_offset, first.last_offset), (Offset(0), Offset(2)));
    assert_eq!((second.base_offset, second.last_offset), (Offset(3), Offset(4)));
    let slice = node.log.read(Offset(1), 1 << 20, Offset(5), true).unwrap();
    assert!(matches!(slice, Slice::Cached(_)));
    assert_eq!(offsets_of(&slice), [(0, 2), (3, 4)]);
    assert!(node.log.read(Offset(5), 1 << 20, Offset(5), true).unwrap().is_empty());
    for outside in [Offset(-1), Offset(6)] {
        let refused = node.log.read(outside, 1 << 20, Offset(5), true);
        assert!(matches!(refused, Err(ReadError::OutOfRange { .. })));
    }
}

#[test]
fn segments_roll_by_size_and_are_read_through() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..20 {
        append(&mut node.log, &records(2));
    }
    assert!(node.log.segment_count() > 3);
    let expected: Vec<_> = (0..20).map(|n| (n * 2, n * 2 + 1)).collect();
    assert_eq!(all_offsets(&node.log), expected);
    let up_to_seven = node.log.read(Offset(0), 1 << 20, Offset(3), true).unwrap();
    assert_eq!(offsets_of(&up_to_seven), [(0, 1)], "a batch that reaches to the end is not given");
}

#[test]
fn a_log_is_the_same_after_a_stop_in_order() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    let before = all_offsets(&node.log);
    let node = node.restart();
    assert!(node.folder.was_clean());
    assert_eq!(all_offsets(&node.log), before);
    assert_eq!(node.log.flushed_end(), Offset(20));
    assert_eq!(node.log.latest_epoch(), Some(LeaderEpoch(1)));
}

#[test]
fn a_log_that_nobody_wrote_to_is_closed_without_a_write_or_a_flush() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    let mut node = node.restart();
    for kind in [Kind::Write, Kind::Sync] {
        node.disk.fail(kind, Path::new(FOLDER).join("topic-0"), 0, u64::MAX);
    }
    node.log.close().unwrap();
}

#[test]
fn a_kill_loses_nothing_and_what_was_kept_is_flushed_before_it_counts() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node.checkpoint(Offset(20));
    append(&mut node.log, &records(5));
    let mut node = node.kill();
    assert!(!node.folder.was_clean());
    assert_eq!((node.log.log_end(), node.log.flushed_end()), (Offset(25), Offset(20)));
    assert_eq!(flush(&mut node.log), Offset(25));
    assert_eq!(node.folder.high_watermark(&topic_partition()), Some(Offset(20)));
}

#[test]
fn a_power_cut_takes_only_what_was_not_flushed() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    assert_eq!(flush(&mut node.log), Offset(20));
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    let node = node.power_loss();
    assert!(node.log.log_end() >= Offset(20));
    let expected: Vec<_> = (0..node.log.log_end().0 / 2).map(|n| (n * 2, n * 2 + 1)).collect();
    assert_eq!(all_offsets(&node.log), expected);
    assert_eq!(node.log.topic_id(), topic_id());
}

#[test]
fn after_a_kill_only_what_lies_behind_the_recovery_point_is_read() {
    let mut node = Node::without_tail(LogConfig { index_interval_bytes: 100, ..LogConfig::default() });
    for _ in 0..30 {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node.checkpoint(Offset(60));
    append(&mut node.log, &records(2));
    let log = Path::new(FOLDER).join("topic-0/00000000000000000000.log");
    node.disk.rot(&log, 500).unwrap();
    let node = node.kill();
    assert_eq!(node.log.log_end(), Offset(62), "what was flushed is not looked at");
    node.disk.rot(&log, 500).unwrap();
    assert_eq!(all_offsets(&node.log).len(), 31);
}

#[test]
fn what_rotted_behind_the_recovery_point_is_cut_off_with_what_follows() {
    let mut node = Node::without_tail(LogConfig::default());
    for _ in 0..30 {
        append(&mut node.log, &records(2));
    }
    let size = records(2).len() as u64;
    let log = Path::new(FOLDER).join("topic-0/00000000000000000000.log");
    node.disk.rot(&log, 10 * size + 70).unwrap();
    let mut node = node.kill();
    assert_eq!(node.log.log_end(), Offset(20));
    assert_eq!(append(&mut node.log, &records(1)).base_offset, Offset(20));
}

#[test]
fn closed_segments_are_read_and_searched_also_when_their_indexes_are_not_in_memory() {
    let mut node = Node::without_tail(small_segments());
    for n in 0..40 {
        append(&mut node.log, &records_at(2, Timestamp(NOW.0 + n)));
    }
    let before = all_offsets(&node.log);
    let flushed = flush(&mut node.log);
    node.log.maintain(NOW, flushed).unwrap().remove_files().unwrap();
    for n in (0..40).rev() {
        let found = node.log.offset_for_timestamp(Timestamp(NOW.0 + n)).unwrap().run().unwrap().unwrap();
        assert_eq!((found.offset, found.timestamp), (Offset(2 * n), Timestamp(NOW.0 + n)));
    }
    assert_eq!(all_offsets(&node.log), before);
    node.log.maintain(NOW, flushed).unwrap().remove_files().unwrap();
    for name in node.names().iter().filter(|name| name.contains("index")) {
        node.disk.remove_file(&Path::new(FOLDER).join("topic-0").join(name)).unwrap();
    }
    assert_eq!(all_offsets(&node.log), before, "an index that is missing is made anew");
    node.log.maintain(NOW, flushed).unwrap().remove_files().unwrap();
    assert!(node.names().contains(&"00000000000000000000.timeindex".to_owned()));
    assert_eq!(node.log.max_timestamp().unwrap().run().unwrap().map(|found| found.offset), Some(Offset(78)));
}

#[test]
fn a_search_by_time_sees_the_log_of_its_moment() {
    let mut node = Node::without_tail(small_segments());
    for n in 0..4 {
        append(&mut node.log, &records_at(2, Timestamp(NOW.0 + n)));
    }
    let (latest, later) =
        (node.log.max_timestamp().unwrap(), node.log.offset_for_timestamp(Timestamp(NOW.0 + 9)).unwrap());
    for n in 4..20 {
        append(&mut node.log, &records_at(2, Timestamp(NOW.0 + n)));
    }
    assert_eq!(latest.run().unwrap().map(|found| found.offset), Some(Offset(6)));
    assert!(later.is_empty() && later.run().unwrap().is_none());
}

#[test]
fn a_search_by_time_passes_over_segments_that_are_deleted_meanwhile() {
    let mut node = Node::without_tail(small_segments());
    for n in 0..40 {
        append(&mut node.log, &records_at(2, Timestamp(NOW.0 + n)));
    }
    let flushed = flush(&mut node.log);
    node.log.maintain(NOW, flushed).unwrap().remove_files().unwrap();
    let search = node.log.offset_for_timestamp(NOW).unwrap();
    node.log.set_config(LogConfig { retention_bytes: 600, ..small_segments() });
    while node.log.maintain(NOW, flushed).unwrap().remove_files().unwrap() {}
    assert!(node.log.log_start() > Offset(0));
    assert_eq!(search.run().unwrap().map(|found| found.offset), Some(node.log.log_start()));
    node.log.check().unwrap();
}

#[test]
fn an_epoch_is_on_disk_when_its_flush_job_is_done_also_without_a_record() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(2));
    flush(&mut node.log);
    node.log.assign_epoch(LeaderEpoch(5), Offset(2)).unwrap();
    assert_eq!(node.file("leader-epoch-checkpoint"), b"0\n1\n1 0\n", "not before");
    assert_eq!(flush(&mut node.log), Offset(2));
    assert_eq!(node.file("leader-epoch-checkpoint"), b"0\n2\n1 0\n5 2\n");
    assert_eq!(node.log.epoch_end(LeaderEpoch(1)), Some((LeaderEpoch(1), Offset(2))));
    assert_eq!(node.log.epoch_end(LeaderEpoch(6)), None);
}

#[test]
fn an_epoch_that_begins_is_known_at_once_and_on_disk_before_its_first_record_counts() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(2));
    flush(&mut node.log);
    node.log.begin_epoch(LeaderEpoch(5), Offset(2)).unwrap();
    assert_eq!(node.log.epoch_end(LeaderEpoch(5)), Some((LeaderEpoch(5), Offset(2))));
    assert!(node.log.flush_job().is_none(), "nothing has to be flushed for it");
    node.log.append_as_leader(&records(1), LeaderEpoch(5), NOW, Origin::Client).unwrap();
    assert_eq!(flush(&mut node.log), Offset(3));
    assert_eq!(node.file("leader-epoch-checkpoint"), b"0\n2\n1 0\n5 2\n");
}

#[test]
fn a_flush_that_began_before_a_truncation_proves_nothing() {
    let mut node = Node::new(LogConfig::default());
    for _ in 0..3 {
        append(&mut node.log, &records(2));
    }
    let job = node.log.flush_job().unwrap();
    node.log.truncate_to(Offset(2), NOW).unwrap();
    append(&mut node.log, &records(4));
    assert_eq!(node.log.flush_done(&job, Ok(())).unwrap(), Offset(0));
    assert_eq!(flush(&mut node.log), Offset(6));
}

#[test]
fn a_log_can_be_handed_to_another_thread() {
    fn check<T: Send>(_: &T) {}
    check(&Node::new(LogConfig::default()).log);
}
