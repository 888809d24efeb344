//! Append, read, roll, flush and restart of one log.

mod common;

use common::*;
use model::{LeaderEpoch, Offset};
use storage::{LogConfig, ReadError, Slice};

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
