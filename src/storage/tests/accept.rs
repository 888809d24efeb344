//! What a leader accepts, refuses and changes; what a follower takes over.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use bytes::Bytes;
use common::*;
use model::{ErrorCode, LeaderEpoch, Limits, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use protocol::batch::{Batch, BatchBuilder, Codec, TimestampType, set_base_offset};
use storage::{
    AppendError, CleanupPolicy, LogConfig, Origin, RejectedRecord, RejectedRecords, RejectionCause,
};

fn refused(config: LogConfig, bytes: &[u8]) -> AppendError {
    let mut node = Node::new(config);
    let error = node.log.append_as_leader(bytes, LeaderEpoch(0), NOW, Origin::Client).unwrap_err();
    assert_eq!(node.log.log_end(), Offset(0), "nothing is appended");
    error
}

fn code(config: LogConfig, bytes: &[u8]) -> ErrorCode {
    ErrorCode::from(&refused(config, bytes))
}

/// The batch with one byte of its header set, and its CRC made to fit.
fn with_byte(batch: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut batch = batch.to_vec();
    batch[at] = byte;
    let crc = crc32c::crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

#[test]
fn what_is_not_a_batch_is_corrupt() {
    let batch = records(2);
    assert_eq!(code(LogConfig::default(), b""), ErrorCode::CorruptMessage);
    assert_eq!(code(LogConfig::default(), &batch[..batch.len() - 1]), ErrorCode::CorruptMessage);
    let mut changed = batch.to_vec();
    changed[70] ^= 1;
    assert_eq!(code(LogConfig::default(), &changed), ErrorCode::CorruptMessage);
    assert_eq!(code(LogConfig::default(), &with_byte(&batch, 16, 1)), ErrorCode::UnsupportedForMessageFormat);
    assert_eq!(code(LogConfig::default(), &with_byte(&batch, 22, 6)), ErrorCode::UnsupportedCompressionType);
}

#[test]
fn what_no_client_may_write_is_an_invalid_record() {
    let batch = records(2);
    let control = with_byte(&batch, 22, 0x20);
    let more_records = with_byte(&batch, 60, 3);
    let no_records = with_byte(&with_byte(&batch, 60, 0), 26, 0xff);
    let transactional_without_producer = with_byte(&batch, 22, 0x10);
    let mut not_at_zero = batch.to_vec();
    set_base_offset(&mut not_at_zero, Offset(5));
    let without_sequence = produced(7, 0, -1, 1).to_vec();
    for bytes in
        [control, more_records, no_records, transactional_without_producer, not_at_zero, without_sequence]
    {
        assert_eq!(code(LogConfig::default(), &bytes), ErrorCode::InvalidRecord);
    }
}

/// The batch that claims so many records.
fn claiming(batch: &[u8], count: i32) -> Vec<u8> {
    let mut batch = batch.to_vec();
    batch[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    batch[57..60].copy_from_slice(&count.to_be_bytes()[..3]);
    with_byte(&batch, 60, count.to_be_bytes()[3])
}

#[test]
fn a_batch_has_the_records_that_it_claims() {
    for count in [2, i32::MAX] {
        assert_eq!(code(LogConfig::default(), &claiming(&records(1), count)), ErrorCode::InvalidRecord);
    }
    assert_eq!(code(LogConfig::default(), &claiming(&records(2), 1)), ErrorCode::InvalidRecord);
    let mut compressed = BatchBuilder::new().codec(Codec::Lz4);
    for value in 0..100 {
        compressed.append(None, Some(&[value]), &[]);
    }
    assert_eq!(
        code(LogConfig::default(), &claiming(&compressed.build(), i32::MAX)),
        ErrorCode::InvalidRecord
    );
}

#[test]
fn records_that_are_not_compressed_are_whole_and_one_offset_after_the_other() {
    let batch = records(2);
    let (first, delta, size_of_second) = (61, 64, 61 + 1 + usize::from(batch[61] >> 1));
    let wrong = [(first, batch[first] + 2), (delta, 2), (size_of_second, batch[size_of_second] - 2)];
    for (at, byte) in wrong {
        assert_eq!(
            code(LogConfig::default(), &with_byte(&batch, at, byte)),
            ErrorCode::InvalidRecord,
            "byte {at}"
        );
    }
}

#[test]
fn sizes_have_their_limits() {
    let batch = records(50);
    let small = LogConfig { message_bytes_max: batch.len() - 1, ..LogConfig::default() };
    assert_eq!(code(small, &batch), ErrorCode::MessageTooLarge);
    let small = LogConfig { segment_bytes: batch.len() as u64 - 1, ..LogConfig::default() };
    assert_eq!(code(small, &batch), ErrorCode::RecordListTooLarge);
    let exact = LogConfig {
        message_bytes_max: batch.len(),
        segment_bytes: batch.len() as u64,
        ..LogConfig::default()
    };
    append(&mut Node::new(exact).log, &batch);
}

#[test]
fn timestamps_have_their_bounds() {
    let bounded =
        LogConfig { timestamp_before_max_ms: 1000, timestamp_after_max_ms: 500, ..LogConfig::default() };
    for ms in [-1001, 501] {
        let batch = records_at(1, Timestamp(NOW.0 + ms));
        assert_eq!(code(bounded.clone(), &batch), ErrorCode::InvalidTimestamp);
    }
    let mut node = Node::new(bounded.clone());
    for ms in [-1000, 500] {
        append(&mut node.log, &records_at(1, Timestamp(NOW.0 + ms)));
    }
    append(&mut node.log, &records_at(1, Timestamp::NONE));
    let mut old_inside = BatchBuilder::new();
    old_inside.append_at(0, NOW, None, None, &[]);
    old_inside.append_at(1, Timestamp(NOW.0 - 1001), None, None, &[]);
    assert_eq!(code(bounded, &old_inside.build()), ErrorCode::InvalidTimestamp);
    let log_append_time = with_byte(&records(1), 22, 8);
    assert_eq!(code(LogConfig::default(), &log_append_time), ErrorCode::InvalidTimestamp);
}

#[test]
fn with_log_append_time_the_broker_sets_the_time() {
    let config = LogConfig { timestamp_type: TimestampType::LogAppendTime, ..LogConfig::default() };
    let mut node = Node::new(config);
    let long_ago = records_at(3, Timestamp(5));
    let appended = append(&mut node.log, &long_ago);
    assert_eq!(appended.log_append_time, Some(NOW));
    let read = bytes_of(&node.log.read(Offset(0), 1 << 20, Offset(3), true).unwrap());
    let batch = Batch::parse(&read).unwrap();
    batch.verify_crc().unwrap();
    let times: Vec<_> =
        batch.records(1 << 20).unwrap().iter().map(|record| record.unwrap().timestamp).collect();
    assert_eq!(times, [NOW; 3]);
    let found = node.log.offset_for_timestamp(NOW).unwrap().run().unwrap().unwrap();
    assert_eq!((found.offset, found.timestamp), (Offset(0), NOW));
}

#[test]
fn a_compacted_topic_wants_keys() {
    let compacted =
        LogConfig { cleanup: CleanupPolicy { delete: false, compact: true }, ..LogConfig::default() };
    append(&mut Node::new(compacted.clone()).log, &records(2));
    for codec in [Codec::None, Codec::Lz4] {
        let mut builder = BatchBuilder::new().timestamp(NOW).codec(codec);
        builder.append(Some(b"key"), None, &[]);
        builder.append(None, Some(b"value"), &[]);
        assert_eq!(code(compacted.clone(), &builder.build()), ErrorCode::InvalidRecord);
    }
}

#[test]
fn each_record_that_is_refused_is_named_with_its_cause() {
    let config = LogConfig {
        cleanup: CleanupPolicy { delete: false, compact: true },
        timestamp_before_max_ms: 1000,
        timestamp_after_max_ms: 500,
        ..LogConfig::default()
    };
    let mut builder = BatchBuilder::new();
    for (delta, ms, key) in [(0, 0, Some(&b"key"[..])), (1, 501, Some(b"key")), (2, 0, None)] {
        builder.append_at(delta, Timestamp(NOW.0 + ms), key, None, &[]);
    }
    let error = refused(config, &builder.build());
    assert_eq!(ErrorCode::from(&error), ErrorCode::InvalidTimestamp);
    let AppendError::RejectedRecords(RejectedRecords { count: 2, first }) = error else {
        panic!("{error}");
    };
    let (oldest, newest) = (Timestamp(NOW.0 - 1000), Timestamp(NOW.0 + 500));
    let late = RejectionCause::Timestamp { timestamp: Timestamp(NOW.0 + 501), oldest, newest };
    let expected = [(1, late), (2, RejectionCause::NoKey)];
    assert_eq!(first, expected.map(|(index, cause)| RejectedRecord { index, cause }));
}

#[test]
fn of_very_many_refused_records_only_the_first_are_named() {
    let compacted =
        LogConfig { cleanup: CleanupPolicy { delete: false, compact: true }, ..LogConfig::default() };
    let mut builder = BatchBuilder::new().codec(Codec::Zstd).timestamp(NOW);
    for _ in 0..5000 {
        builder.append(None, None, &[]);
    }
    let AppendError::RejectedRecords(rejected) = refused(compacted, &builder.build()) else {
        panic!("it was refused for something else");
    };
    assert_eq!((rejected.count, rejected.first.len()), (5000, Limits::REJECTED_RECORDS_NAMED));
}

#[test]
fn records_that_their_codec_did_not_make_are_not_worth_a_retry() {
    let compacted =
        LogConfig { cleanup: CleanupPolicy { delete: false, compact: true }, ..LogConfig::default() };
    assert_eq!(code(compacted, &with_byte(&records(2), 22, 1)), ErrorCode::InvalidRecord);
}

fn sample(codec: Codec) -> Bytes {
    let producer = (ProducerId(4), ProducerEpoch(1), Sequence(8));
    let mut builder = BatchBuilder::new().codec(codec).producer(producer.0, producer.1, producer.2);
    builder.append_at(0, NOW, Some(b"a"), Some(&[7; 300]), &[(b"h", Some(b"1")), (b"h", None)]);
    builder.append_at(1, Timestamp(NOW.0 - 10), None, None, &[]);
    builder.build()
}

#[test]
fn another_codec_of_the_topic_is_applied_and_nothing_else_changes() {
    for (topic, sent) in [
        (Codec::Zstd, Codec::None),
        (Codec::None, Codec::Gzip),
        (Codec::Snappy, Codec::Lz4),
        (Codec::Lz4, Codec::Lz4),
    ] {
        let mut node = Node::new(LogConfig { compression: Some(topic), ..LogConfig::default() });
        let sent = sample(sent);
        append(&mut node.log, &sent);
        let read = bytes_of(&node.log.read(Offset(0), 1 << 20, Offset(2), true).unwrap());
        let (stored, sent) = (Batch::parse(&read).unwrap(), Batch::parse(&sent).unwrap());
        stored.verify_crc().unwrap();
        assert_eq!(stored.header.attributes.codec(), Ok(topic));
        assert_eq!(stored.header.max_timestamp, sent.header.max_timestamp);
        assert_eq!(stored.header.producer_id, sent.header.producer_id);
        assert_eq!(stored.header.base_sequence, sent.header.base_sequence);
        let (stored, sent) = (stored.records(1 << 20).unwrap(), sent.records(1 << 20).unwrap());
        assert!(stored.iter().eq(sent.iter()));
    }
}

#[test]
fn duplicates_are_answered_with_the_original_also_after_a_kill() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(10));
    for n in 0..5 {
        append(&mut node.log, &produced(9, 0, n * 2, 2));
    }
    let mut node = node.kill();
    for n in 0..5i32 {
        let again = append(&mut node.log, &produced(9, 0, n * 2, 2));
        let first = Offset(10 + i64::from(n) * 2);
        assert_eq!(again.duplicate_of, Some((first, first.plus(1))));
        assert_eq!((again.base_offset, again.log_append_time), (first, Some(NOW)));
    }
    assert_eq!(node.log.log_end(), Offset(20));
    let gap = node.log.append_as_leader(&produced(9, 0, 11, 1), LeaderEpoch(1), NOW, Origin::Client);
    assert!(matches!(gap, Err(AppendError::OutOfOrderSequence { last: Sequence(9), .. })));
}

#[test]
fn two_batches_of_one_producer_in_one_append_follow_each_other() {
    let mut node = Node::new(LogConfig::default());
    let two = [produced(9, 0, 0, 2), produced(9, 0, 2, 3)].concat();
    assert_eq!(append(&mut node.log, &two).last_offset, Offset(4));
    let gap = [produced(9, 0, 5, 1), produced(9, 0, 7, 1)].concat();
    let refused = node.log.append_as_leader(&gap, LeaderEpoch(1), NOW, Origin::Client);
    assert!(matches!(refused, Err(AppendError::OutOfOrderSequence { .. })));
    assert_eq!(node.log.log_end(), Offset(5));
}

#[test]
fn the_metadata_log_takes_control_batches_and_a_coordinator_does_not() {
    let mut builder = BatchBuilder::new().timestamp(NOW).control();
    builder.append(Some(&[0, 0, 0, 2]), Some(b"leader change"), &[]);
    let control = builder.build();
    let mut node = Node::new(LogConfig { message_bytes_max: 10, ..LogConfig::default() });
    assert!(node.log.append_as_leader(&control, LeaderEpoch(0), NOW, Origin::Coordinator).is_err());
    node.log.append_as_leader(&control, LeaderEpoch(0), NOW, Origin::Raft).unwrap();
    assert_eq!(node.log.log_end(), Offset(1));
}

#[test]
fn a_follower_takes_over_offsets_epochs_and_gaps() {
    let mut leader = Node::without_tail(small_segments());
    for _ in 0..12 {
        append(&mut leader.log, &records(2));
    }
    let mut fetched = Vec::new();
    let mut from = Offset(0);
    while from < leader.log.log_end() {
        let slice = bytes_of(&leader.log.read(from, 1 << 20, leader.log.log_end(), true).unwrap());
        fetched.extend_from_slice(&slice);
        from = Batch::parse(&slice[slice.len() - records(2).len()..]).unwrap().header.next_offset();
    }
    let mut follower = Node::without_tail(small_segments());
    let cut = &fetched[..fetched.len() - 1];
    assert_eq!(follower.log.append_as_follower(cut, Origin::Client, NOW).unwrap().last_offset, Offset(21));
    assert_eq!(all_offsets(&follower.log), all_offsets(&leader.log)[..11]);
    assert_eq!(follower.log.latest_epoch(), Some(LeaderEpoch(1)));
    let again = follower.log.append_as_follower(cut, Origin::Client, NOW);
    assert!(matches!(again, Err(AppendError::OffsetsOutOfOrder { .. })));
    let mut behind_a_gap = records(1).to_vec();
    set_base_offset(&mut behind_a_gap, Offset(1 << 33));
    let appended = follower.log.append_as_follower(&behind_a_gap, Origin::Client, NOW).unwrap();
    assert_eq!(appended.base_offset, Offset(1 << 33));
    let read = follower.log.read(Offset(22), 1 << 20, follower.log.log_end(), true).unwrap();
    assert_eq!(offsets_of(&read), [(1 << 33, 1 << 33)]);
    flush(&mut follower.log);
    follower.checkpoint(Offset(0));
    let node = follower.kill();
    assert_eq!(node.log.log_end(), Offset((1 << 33) + 1));
}

#[test]
fn who_is_not_the_leader_any_more_appends_nothing() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(1));
    node.log.assign_epoch(LeaderEpoch(4), Offset(1)).unwrap();
    let old = node.log.append_as_leader(&records(1), LeaderEpoch(3), NOW, Origin::Client).unwrap_err();
    assert_eq!(ErrorCode::from(&old), ErrorCode::NotLeaderOrFollower);
    let mut copied = records(1).to_vec();
    set_base_offset(&mut copied, Offset(1));
    protocol::batch::set_leader_epoch(&mut copied, LeaderEpoch(3));
    assert!(matches!(
        node.log.append_as_follower(&copied, Origin::Client, NOW),
        Err(AppendError::FencedLeaderEpoch { .. })
    ));
    assert_eq!(node.log.log_end(), Offset(1));
}
