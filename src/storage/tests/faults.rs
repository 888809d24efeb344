//! A disk that fails, and one that is full.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Wake, Waker};

use common::*;
use env::Disk;
use model::{ErrorCode, LeaderEpoch, Limits, Offset, Timestamp, Uuid};
use sim::{Kind, SimDisk};
use storage::{AppendError, CheckpointJob, LogConfig, Origin, StorageError};

const RESERVE: u64 = Limits::DISK_RESERVE_BYTES;

fn try_append(node: &mut Node, now: Timestamp, origin: Origin) -> Result<Offset, AppendError> {
    let appended = node.log.append_as_leader(&records(2), LeaderEpoch(1), now, origin)?;
    Ok(appended.base_offset)
}

fn is_offline(result: Result<Offset, AppendError>) -> bool {
    matches!(result, Err(AppendError::Storage(StorageError::Offline { .. })))
}

#[test]
fn a_failed_write_takes_the_folder_offline() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(2));
    node.disk.fail(Kind::Write, FOLDER, 0, 1);
    assert!(is_offline(try_append(&mut node, NOW, Origin::Client)));
    assert!(is_offline(try_append(&mut node, NOW, Origin::Coordinator)), "it is not tried again");
    let error = node.log.read(Offset(0), 100, Offset(2), true).err().unwrap();
    assert_eq!(ErrorCode::from(&error), ErrorCode::KafkaStorageError);
    let offline = node.folder.offline().unwrap().to_string();
    assert!(offline.contains("topic-0") && offline.contains("check the disk"), "{offline}");
    let node = node.kill();
    assert_eq!(all_offsets(&node.log), [(0, 1)], "the next process finds what was there before");
}

#[test]
fn who_waits_for_a_folder_to_fail_hears_of_it_at_once() {
    struct Woken(AtomicBool);
    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let mut node = Node::new(LogConfig::default());
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(woken.clone());
    let cx = Context::from_waker(&waker);
    assert!(node.folder.poll_offline(&cx).is_pending());
    node.disk.fail(Kind::Write, FOLDER, 0, 1);
    assert!(is_offline(try_append(&mut node, NOW, Origin::Client)));
    assert!(woken.0.load(Ordering::Relaxed));
    assert!(node.folder.poll_offline(&cx).is_ready());
}

#[test]
fn a_failed_flush_is_final() {
    let mut node = Node::new(LogConfig::default());
    append(&mut node.log, &records(2));
    let job = node.log.flush_job().unwrap();
    let failed = node.log.flush_done(&job, Err(io::Error::other("no"))).unwrap_err();
    assert!(matches!(failed, StorageError::Offline { .. }));
    assert_eq!(node.log.flushed_end(), Offset(0));
    assert!(node.log.flush_done(&job, Ok(())).is_err(), "a later success proves nothing");
    assert_eq!(node.log.flushed_end(), Offset(0));
}

#[test]
fn a_flush_that_could_not_open_something_is_asked_again() {
    for opened in 0..3 {
        let mut node = Node::new(LogConfig::default());
        append(&mut node.log, &records(2));
        node.disk.fail(Kind::Open, FOLDER, opened, 1);
        let job = node.log.flush_job().unwrap();
        let result = job.files.iter().try_for_each(|file| file.sync());
        assert!(result.is_err(), "a flush opens more than {opened}");
        let error = node.log.flush_done(&job, result).unwrap_err();
        assert!(matches!(error, StorageError::Io { .. }), "{error}");
        assert_eq!(node.log.flushed_end(), Offset(0));
        append(&mut node.log, &records(2));
        assert_eq!(flush(&mut node.log), Offset(4));
        let node = node.power_loss();
        assert_eq!(all_offsets(&node.log), [(0, 1), (2, 3)], "{opened}");
        assert_eq!(node.log.epochs(), [(LeaderEpoch(1), Offset(0))], "{opened}");
    }
}

#[test]
fn too_many_open_files_never_take_a_folder_offline() {
    for after in 0..60 {
        let mut node = Node::without_tail(small_segments());
        node.disk.fail(Kind::Open, FOLDER, after, 3);
        for _ in 0..12 {
            let _ = try_append(&mut node, NOW, Origin::Client);
            let _ = node.log.read(Offset(0), 100, node.log.log_end(), true);
            if let Some(job) = node.log.flush_job() {
                let result = job.files.iter().try_for_each(|file| file.sync());
                let _ = node.log.flush_done(&job, result);
            }
        }
        assert!(node.folder.offline().is_none(), "after {after}");
        node.disk.heal();
        append(&mut node.log, &records(2));
        let end = flush(&mut node.log);
        assert_eq!(node.power_loss().log.log_end(), end, "after {after}");
    }
}

/// A log of twelve batches, all on disk, in which the next opening but `after` fails.
fn hindered(after: u64) -> Node {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..12 {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node.checkpoint(Offset(24));
    node.disk.fail(Kind::Open, FOLDER, after, 1);
    node
}

#[test]
fn a_cut_that_was_hindered_is_done_when_it_is_asked_for_again() {
    for (after, is_asked_again) in (0..20).flat_map(|after| [(after, true), (after, false)]) {
        let mut node = hindered(after);
        let result = node.log.truncate_to(Offset(7), NOW);
        assert!(result.as_ref().err().is_none_or(StorageError::passes), "after {after}: {result:?}");
        node.disk.heal();
        if is_asked_again {
            node.log.truncate_to(Offset(7), NOW).unwrap();
            assert_eq!(node.log.log_end(), Offset(6), "after {after}");
        }
        let from = node.log.log_end().0;
        assert!(from == 6 || result.is_err() && !is_asked_again, "after {after}");
        append(&mut node.log, &records(2));
        flush(&mut node.log);
        let expected: Vec<_> = (0..=from / 2).map(|n| (n * 2, n * 2 + 1)).collect();
        assert_eq!(all_offsets(&node.power_loss().log), expected, "after {after}, again: {is_asked_again}");
    }
}

#[test]
fn a_log_whose_new_beginning_was_hindered_can_be_used_and_begun_again() {
    for after in 0..20 {
        let mut node = hindered(after);
        let result = node.log.truncate_fully_and_start_at(Offset(8), NOW);
        assert!(result.as_ref().err().is_none_or(StorageError::passes), "after {after}: {result:?}");
        node.disk.heal();
        append(&mut node.log, &records(2));
        node.log.truncate_fully_and_start_at(Offset(8), NOW).unwrap();
        append(&mut node.log, &records(2));
        flush(&mut node.log);
        assert_eq!(all_offsets(&node.power_loss().log), [(8, 9)], "after {after}");
    }
}

#[test]
fn a_recovery_point_that_was_not_lowered_is_lowered_by_the_next_cut() {
    let mut node = hindered(0);
    node.log.truncate_to(Offset(7), NOW).unwrap_err();
    node.log.truncate_to(Offset(7), NOW).unwrap();
    let path = Path::new(FOLDER).join("recovery-point-offset-checkpoint");
    assert_eq!(node.disk.read(&path, 1000).unwrap(), b"0\n1\ntopic 0 6\n");
}

#[test]
fn a_log_made_anew_inherits_nothing_though_its_name_was_not_forgotten_at_once() {
    let mut node = hindered(0);
    node.disk.heal();
    node.log.delete().unwrap().remove_files().unwrap();
    let anew = |node: &Node| {
        node.folder.open_log(&topic_partition(), Uuid([6; 16]), node.config.clone(), NOW).map(drop)
    };
    node.disk.fail(Kind::Open, FOLDER, 0, 1);
    anew(&node).unwrap_err();
    anew(&node).unwrap();
    for name in ["recovery-point-offset-checkpoint", "replication-offset-checkpoint"] {
        assert_eq!(node.disk.read(&Path::new(FOLDER).join(name), 1000).unwrap(), b"0\n0\n", "{name}");
    }
}

#[test]
fn what_a_follower_appends_goes_on_where_it_was_hindered() {
    let mut leader = Node::without_tail(LogConfig::default());
    for _ in 0..12 {
        append(&mut leader.log, &records(2));
    }
    let fetched = |from| bytes_of(&leader.log.read(from, 10_000, Offset(24), true).unwrap());
    for (after, free) in (0..20).map(|after| (after, u64::MAX)).chain((0..40).map(|n| (99, n * 40))) {
        let mut node = full_without_reserve(small_segments(), 1, free);
        node.disk.fail(Kind::Open, FOLDER, after, 1);
        for _ in 0..2 {
            let bytes = fetched(node.log.log_end());
            if let Err(error) = node.log.append_as_follower(&bytes, Origin::Raft, NOW) {
                assert!(matches!(&error, AppendError::Storage(error) if error.passes()), "{error}");
                node.disk.set_capacity(u64::MAX);
            }
        }
        node.disk.heal();
        flush(&mut node.log);
        assert_eq!(all_offsets(&node.power_loss().log), all_offsets(&leader.log), "{after}, {free} bytes");
    }
}

#[test]
fn a_failed_read_takes_the_folder_offline() {
    let mut node = Node::without_tail(small_segments());
    for _ in 0..10 {
        append(&mut node.log, &records(2));
    }
    node.disk.fail(Kind::Read, FOLDER, 0, 1);
    assert!(node.log.read(Offset(0), 100, Offset(20), true).is_err());
    assert!(node.folder.offline().is_some());
}

#[test]
fn other_folders_are_not_concerned() {
    let disk = SimDisk::new(1);
    let mut node = Node::on(disk.clone(), LogConfig::default(), 0);
    disk.fail(Kind::Write, "/other", 0, u64::MAX);
    append(&mut node.log, &records(2));
    assert!(node.folder.offline().is_none());
}

/// A node whose disk has a reserve and `free` bytes beside it.
fn almost_full(free: u64) -> Node {
    let mut node = Node::new(LogConfig::default());
    let capacity = 1 << 30;
    node.disk.set_capacity(capacity);
    node.folder.maintain().unwrap();
    append(&mut node.log, &records(2));
    flush(&mut node.log);
    let used = capacity - node.folder.free_bytes().unwrap();
    node.disk.set_capacity(used + free);
    node
}

#[test]
fn a_full_disk_refuses_clients_and_lets_the_broker_go_on() {
    let mut node = almost_full(10);
    let refused = try_append(&mut node, NOW, Origin::Client).unwrap_err();
    assert!(matches!(refused, AppendError::Storage(StorageError::DiskFull { .. })), "{refused}");
    assert_eq!(ErrorCode::from(&refused), ErrorCode::KafkaStorageError);
    assert!(node.folder.is_full() && node.folder.offline().is_none());
    assert_eq!(all_offsets(&node.log), [(0, 1)], "nothing half-written is visible");
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(2));
    assert_eq!(try_append(&mut node, NOW, Origin::Raft).unwrap(), Offset(4));
    assert!(try_append(&mut node, NOW, Origin::Client).is_err(), "the reserve is not for clients");
    node.checkpoint(Offset(6));
    assert_eq!(flush(&mut node.log), Offset(6));
}

#[test]
fn commits_leave_half_of_the_reserve_to_what_heals_a_full_disk() {
    let mut node = almost_full(10);
    assert!(try_append(&mut node, NOW, Origin::Client).is_err());
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(2));
    let filler = node.disk.open(&Path::new(FOLDER).join("filler"), env::Open::Create).unwrap();
    let free = node.folder.free_bytes().unwrap();
    filler.write_at(&[std::io::IoSlice::new(&vec![0; (free - RESERVE / 2 + 1) as usize])], 0).unwrap();
    let refused = try_append(&mut node, NOW, Origin::Coordinator).unwrap_err();
    assert!(matches!(refused, AppendError::Storage(StorageError::DiskFull { .. })), "{refused}");
    assert_eq!(try_append(&mut node, NOW, Origin::Raft).unwrap(), Offset(4));
    node.disk.set_capacity(u64::MAX);
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(6));
}

#[test]
fn writing_goes_on_by_itself_when_space_is_free_again() {
    let mut node = almost_full(10);
    for _ in 0..2 {
        assert!(try_append(&mut node, NOW, Origin::Client).is_err());
    }
    node.disk.set_capacity(10 * RESERVE);
    let soon = Timestamp(NOW.0 + 100);
    let later = Timestamp(NOW.0 + 1500);
    assert!(try_append(&mut node, soon, Origin::Client).is_err(), "it is looked for once a second");
    assert_eq!(try_append(&mut node, later, Origin::Client).unwrap(), Offset(2));
    assert!(!node.folder.is_full());
    assert!(node.disk.exists(&Path::new(FOLDER).join(".reserve")).unwrap());
}

/// A node whose disk has `free` bytes, and never had space for a reserve.
fn full_without_reserve(config: LogConfig, batches: usize, free: u64) -> Node {
    let mut node = Node::new(config);
    for _ in 0..batches {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node.disk.set_capacity(1 << 30);
    let used = (1 << 30) - node.folder.free_bytes().unwrap();
    node.disk.set_capacity(used.saturating_add(free));
    node
}

#[test]
fn a_segment_that_could_not_be_begun_leaves_nothing_behind() {
    let logs = |node: &Node| node.names().iter().filter(|name| name.contains(".log")).count();
    for free in 0..40 {
        let mut node = full_without_reserve(small_segments(), 5, free);
        let before = (logs(&node), node.log.segment_count());
        let result = try_append(&mut node, NOW, Origin::Raft);
        assert!(result.is_err() && node.folder.offline().is_none(), "{free} bytes: {result:?}");
        assert_eq!(logs(&node), node.log.segment_count(), "{free} bytes, {before:?} before");
        node.disk.set_capacity(u64::MAX);
        append(&mut node.log, &records(2));
        flush(&mut node.log);
        node.checkpoint(Offset(12));
        assert_eq!(node.kill().log.log_end(), Offset(12), "{free} bytes");
    }
}

#[test]
fn an_epoch_that_could_not_be_written_is_written_with_its_first_records() {
    let mut node = full_without_reserve(LogConfig::default(), 1, 0);
    for _ in 0..2 {
        assert!(node.log.append_as_leader(&records(2), LeaderEpoch(2), NOW, Origin::Raft).is_err());
    }
    node.disk.set_capacity(u64::MAX);
    node.log.append_as_leader(&records(2), LeaderEpoch(2), NOW, Origin::Raft).unwrap();
    flush(&mut node.log);
    assert_eq!(node.file("leader-epoch-checkpoint"), b"0\n2\n1 0\n2 2\n");
}

#[test]
fn retention_goes_on_where_nothing_can_be_written_any_more() {
    let config = LogConfig { retention_ms: 1000, ..small_segments() };
    let mut node = full_without_reserve(config, 20, 0);
    let before = node.log.size_bytes();
    let later = Timestamp(NOW.0 + 5000);
    while node.log.maintain(later, Offset(40)).unwrap().remove_files().unwrap() {}
    assert!(node.log.size_bytes() < before, "space comes back");
    assert!(node.folder.offline().is_none());
}

#[test]
fn a_snapshot_beside_the_log_waits_for_space_and_leaves_the_reserve_alone() {
    let node = almost_full(1000);
    let write = |bytes: &[u8]| node.log.write_beside_where_space_is("snapshot", bytes, NOW);
    assert!(matches!(write(&[1; 1001]), Err(StorageError::DiskFull { .. })));
    assert!(!node.folder.is_full(), "clients are still served");
    assert!(!node.names().iter().any(|name| name.starts_with("snapshot")));
    write(&[1; 900]).unwrap();
}

#[test]
fn no_reserve_is_written_while_space_is_ample() {
    let node = Node::new(LogConfig::default());
    node.folder.maintain().unwrap();
    assert!(!node.disk.exists(&Path::new(FOLDER).join(".reserve")).unwrap());
}

#[test]
fn a_node_starts_on_a_full_disk() {
    let node = almost_full(0);
    let mut node = node.kill();
    assert_eq!(all_offsets(&node.log), [(0, 1)]);
    assert!(try_append(&mut node, NOW, Origin::Client).is_err());
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(2));
    let node = node.restart();
    assert_eq!(all_offsets(&node.log), [(0, 1), (2, 3)]);
}

#[test]
fn a_node_that_starts_after_the_reserve_was_taken_keeps_what_is_left_from_clients() {
    let mut node = almost_full(10);
    assert!(try_append(&mut node, NOW, Origin::Client).is_err());
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(2));
    let mut node = node.kill();
    assert!(node.folder.is_full());
    assert!(try_append(&mut node, NOW, Origin::Client).is_err(), "the reserve is not for clients");
    assert_eq!(try_append(&mut node, NOW, Origin::Coordinator).unwrap(), Offset(4));
    node.disk.set_capacity(u64::MAX);
    let later = Timestamp(NOW.0 + 1500);
    assert_eq!(try_append(&mut node, later, Origin::Client).unwrap(), Offset(6));
}

#[test]
fn a_small_file_beside_the_log_may_use_the_reserve() {
    let node = almost_full(0);
    node.log.write_beside("quorum-state", b"{}").unwrap();
    let path = Path::new(FOLDER).join(node.log.topic_partition().to_string()).join("quorum-state");
    assert_eq!(node.disk.read(&path, 10).unwrap(), b"{}");
    assert!(node.folder.is_full());
}

/// What a failed flush leaves, a process that is started again without a reboot, flushes that succeed, and a power cut.
fn after_a_lost_flush(seed: u64, config: &LogConfig, flushes_that_succeed: u64) -> (Offset, Node) {
    let mut node = Node::on(SimDisk::new(seed), config.clone(), 0);
    append(&mut node.log, &records(2));
    flush(&mut node.log);
    node.checkpoint(Offset(2));
    for _ in 0..5 {
        append(&mut node.log, &records_at(2, Timestamp(NOW.0 + 10)));
    }
    node.disk.fail(Kind::Sync, FOLDER, flushes_that_succeed, u64::MAX);
    let job = node.log.flush_job().unwrap();
    let result = job.files.iter().try_for_each(|file| file.sync());
    let _ = node.log.flush_done(&job, result);
    node.disk.heal();
    let mut node = node.kill();
    let flushed = flush(&mut node.log);
    node.checkpoint(flushed);
    (flushed, node.power_loss())
}

#[test]
fn what_a_failed_flush_left_in_memory_counts_only_after_it_was_written_again() {
    for (seed, successes) in (0..15).flat_map(|seed| (0..6).map(move |successes| (seed, successes))) {
        let (flushed, node) = after_a_lost_flush(seed, &LogConfig::default(), successes);
        assert_eq!(node.log.log_end(), flushed, "seed {seed}, {successes}");
        let expected: Vec<_> = (0..flushed.0 / 2).map(|n| (n * 2, n * 2 + 1)).collect();
        assert_eq!(all_offsets(&node.log), expected, "seed {seed}, {successes}");
        assert_eq!(node.log.epochs(), [(LeaderEpoch(1), Offset(0))], "seed {seed}, {successes}");
    }
}

#[test]
fn segments_that_a_failed_flush_left_keep_their_latest_timestamps() {
    for (seed, successes) in (0..15).flat_map(|seed| (0..8).map(move |successes| (seed, successes))) {
        let (flushed, node) = after_a_lost_flush(seed, &small_segments(), successes);
        let expected: Vec<_> = (0..flushed.0 / 2).map(|n| (n * 2, n * 2 + 1)).collect();
        assert_eq!(all_offsets(&node.log), expected, "seed {seed}, {successes}");
        let latest = node.log.max_timestamp().unwrap().run().unwrap().unwrap();
        assert_eq!(latest.timestamp, Timestamp(NOW.0 + 10), "seed {seed}, {successes}");
    }
}

#[test]
fn an_epoch_whose_name_was_not_on_disk_is_not_lost() {
    for seed in 0..100 {
        let config = LogConfig { index_interval_bytes: 1, ..LogConfig::default() };
        let mut node = Node::on(SimDisk::new(seed), config, 0);
        append(&mut node.log, &records(2));
        flush(&mut node.log);
        node.checkpoint(Offset(2));
        node.log.append_as_leader(&records(2), LeaderEpoch(2), NOW, Origin::Client).unwrap();
        // The first file is the epochs' one: its text is on disk, and it is renamed; then the process is killed.
        node.disk.fail(Kind::Sync, FOLDER, 1, u64::MAX);
        let job = node.log.flush_job().unwrap();
        job.files[0].sync().unwrap_err();
        node.disk.heal();
        let mut node = node.kill();
        for _ in 0..2 {
            append(&mut node.log, &records(2));
        }
        let flushed = flush(&mut node.log);
        node.checkpoint(flushed);
        let node = node.power_loss();
        let epochs = [(LeaderEpoch(1), Offset(0)), (LeaderEpoch(2), Offset(2))];
        assert_eq!(node.log.epochs(), epochs, "seed {seed}");
    }
}

#[test]
fn whatever_operation_fails_nothing_flushed_is_lost() {
    for kind in [Kind::Read, Kind::Write, Kind::Sync, Kind::Name, Kind::Open] {
        for after in 0..40 {
            let mut node = Node::without_tail(small_segments());
            node.disk.fail(kind, FOLDER, after, 1);
            let mut flushed = Offset(0);
            for n in 0..12 {
                let Ok(_) = try_append(&mut node, NOW, Origin::Client) else { break };
                let Some(job) = node.log.flush_job() else { break };
                let result = job.files.iter().try_for_each(|file| file.sync());
                let Ok(end) = node.log.flush_done(&job, result) else { break };
                flushed = end;
                if n % 5 == 4 {
                    let row = node.log.checkpoint(end).and_then(CheckpointJob::run);
                    let _ = row.and_then(|row| node.folder.checkpoint(&[row]));
                }
            }
            node.disk.heal();
            let node = node.power_loss();
            assert!(node.log.log_end() >= flushed, "{kind:?} after {after}: {flushed}");
            let expected: Vec<_> = (0..node.log.log_end().0 / 2).map(|n| (n * 2, n * 2 + 1)).collect();
            assert_eq!(all_offsets(&node.log), expected, "{kind:?} after {after}");
        }
    }
}
