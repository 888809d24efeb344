//! What becomes of a log folder and its logs: retention, leftovers, deletion, identity.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use common::*;
use env::{Disk, Open};
use model::{BrokerEpoch, ClusterId, NodeId, Offset, Timestamp, TopicPartition, Uuid};
use sim::{Kind, SimDisk};
use storage::{CleanupPolicy, FolderError, LogConfig, LogFolder, MetaProperties, StorageError, TailBudget};

const DAY_MS: i64 = 86_400_000;

fn later(ms: i64) -> Timestamp {
    Timestamp(NOW.0 + ms)
}

fn filled(config: LogConfig, batches: usize) -> Node {
    let mut node = Node::without_tail(config);
    for _ in 0..batches {
        append(&mut node.log, &records(2));
    }
    flush(&mut node.log);
    node
}

#[test]
fn old_segments_are_deleted_but_never_above_the_high_watermark() {
    let mut node = filled(LogConfig { retention_ms: DAY_MS, ..small_segments() }, 20);
    assert_eq!(node.log.maintain(later(DAY_MS), Offset(40)).unwrap().segments_deleted, 0);
    let maintained = node.log.maintain(later(DAY_MS + 1), Offset(21)).unwrap();
    assert!(maintained.segments_deleted > 0 && maintained.log_start_moved);
    let start = node.log.log_start();
    assert!(start > Offset(0) && start <= Offset(21));
    assert_eq!(all_offsets(&node.log).first().map(|batch| batch.0), Some(start.0));
    while node.log.maintain(later(DAY_MS + 1), Offset(40)).unwrap().remove_files().unwrap() {}
    assert_eq!((node.log.log_start(), node.log.segment_count()), (Offset(40), 1));
    assert_eq!(append(&mut node.log, &records(1)).base_offset, Offset(40));
    let node = node.restart();
    assert_eq!(all_offsets(&node.log), [(40, 40)]);
}

#[test]
fn a_folder_that_is_removed_or_replaced_under_the_node_is_offline() {
    let remove = |disk: &SimDisk| disk.remove_dir_all(Path::new(FOLDER)).unwrap();
    let replace = |disk: &SimDisk| {
        remove(disk);
        disk.create_dir_all(Path::new(FOLDER)).unwrap();
        let other = "cluster.id=c\nnode.id=1\ndirectory.id=CQkJCQkJCQkJCQkJCQkJCQ\nversion=1\n";
        env::write_atomic(disk, &Path::new(FOLDER).join("meta.properties"), other.as_bytes()).unwrap();
    };
    for change in [&remove as &dyn Fn(&SimDisk), &replace] {
        let mut node = filled(LogConfig::default(), 1);
        node.checkpoint(Offset(2));
        change(&node.disk);
        let error = node.folder.checkpoint(&[]).unwrap_err();
        assert!(matches!(error, StorageError::Offline { .. }), "{error}");
        assert!(node.folder.offline().is_some() && node.log.check().is_err());
    }
}

#[test]
fn a_folder_that_could_not_be_opened_is_offline_and_touches_nothing() {
    let disk = SimDisk::new(1);
    disk.fail(Kind::Name, FOLDER, 0, u64::MAX);
    let (shared, path): (Arc<dyn Disk>, _) = (Arc::new(disk.clone()), Path::new(FOLDER));
    let error = LogFolder::open(shared.clone(), path, &identity(), TailBudget::new(0)).err().unwrap();
    assert!(matches!(error, FolderError::Io { .. }));
    disk.heal();
    let folder = LogFolder::offline_from_start(shared, path, &identity(), &error);
    assert!(matches!(folder.offline(), Some(StorageError::Offline { .. })));
    assert!(folder.open_log(&topic_partition(), topic_id(), LogConfig::default(), NOW).is_err());
    assert!(folder.partitions().is_err() && folder.maintain().is_err());
    assert!(folder.checkpoint(&[]).is_err() && folder.close(&[], BrokerEpoch(1)).is_err());
    assert_eq!(disk.list(Path::new("/")).unwrap(), []);
}

#[test]
fn a_log_keeps_as_much_as_retention_bytes_says() {
    let mut node = filled(LogConfig { retention_bytes: 1300, ..small_segments() }, 40);
    while node.log.maintain(NOW, Offset(80)).unwrap().remove_files().unwrap() {}
    let size = node.log.size_bytes();
    assert!((1300..1300 + 600).contains(&size), "{size}");
}

#[test]
fn a_compacted_log_loses_only_what_lies_below_its_start() {
    let cleanup = CleanupPolicy { delete: false, compact: true };
    let config = LogConfig { cleanup, retention_ms: 1, retention_bytes: 1, ..small_segments() };
    let mut node = filled(config, 20);
    assert_eq!(node.log.maintain(later(DAY_MS), Offset(40)).unwrap().segments_deleted, 0);
    node.log.advance_log_start(Offset(15)).unwrap();
    assert!(node.log.maintain(later(DAY_MS), Offset(40)).unwrap().segments_deleted > 0);
    assert_eq!(node.log.log_start(), Offset(15));
    let beyond = node.log.advance_log_start(Offset(41));
    assert!(matches!(beyond, Err(StorageError::OutOfRange { .. })));
}

#[test]
fn segments_roll_by_the_time_of_their_records() {
    let config = LogConfig { segment_ms: 1000, ..LogConfig::default() };
    let mut node = Node::new(config);
    for ms in [0, 1000, 1001, 1500, 2002] {
        append(&mut node.log, &records_at(1, later(ms)));
    }
    assert_eq!(node.log.segment_count(), 3);
}

#[test]
fn a_full_index_closes_its_segment() {
    let config = LogConfig { segment_index_bytes: 36, index_interval_bytes: 1, ..LogConfig::default() };
    let mut node = Node::new(config);
    for ms in 0..20 {
        append(&mut node.log, &records_at(1, later(ms)));
    }
    assert!(node.log.segment_count() > 3);
    assert_eq!(all_offsets(&node.log).len(), 20);
}

fn put(node: &Node, name: &str, bytes: &[u8]) {
    let path = Path::new(FOLDER).join("topic-0").join(name);
    node.disk.open(&path, Open::Truncate).unwrap().write_at(&[IoSlice::new(bytes)], 0).unwrap();
}

#[test]
fn what_cut_off_steps_left_is_cleared_away() {
    let node = filled(small_segments(), 4);
    let before = all_offsets(&node.log);
    for name in [
        "00000000000000000000.log.deleted",
        "00000000000000000000.index.deleted",
        "00000000000000000000.log.cleaned",
        "00000000000000000077.index",
        "00000000000000000077.timeindex",
        "leader-epoch-checkpoint.9.tmp",
        "partition.metadata.tmp",
        "00000000000000000077.snapshot.tmp",
    ] {
        put(&node, name, b"rest");
    }
    put(&node, "somebody-elses-file", b"stays");
    let node = node.kill();
    assert_eq!(all_offsets(&node.log), before);
    let names = node.names();
    assert!(names.contains(&"somebody-elses-file".to_owned()));
    assert!(
        !names.iter().any(|name| name.contains("77") || name.contains("deleted") || name.contains("cleaned"))
    );
    assert!(
        !names.iter().any(|name| name.contains(".tmp") && !name.starts_with("leader-epoch")),
        "{names:?}"
    );
}

#[test]
fn a_compaction_that_was_cut_off_while_it_swapped_is_ended() {
    let mut node = filled(small_segments(), 24);
    node.log.close().unwrap();
    let names = node.names();
    let logs: Vec<_> = names.iter().filter(|name| name.contains(".log")).collect();
    assert!(logs.len() > 2);
    let second = node.file(logs[1]);
    let two = [node.file(logs[0]), second].concat();
    put(&node, "00000000000000000000.log.swap", &two);
    put(&node, "00000000000000000000.index.swap", b"");
    put(&node, "00000000000000000000.timeindex.swap", b"");
    let before = all_offsets(&node.log);
    let count = node.log.segment_count();
    let node = node.kill();
    assert_eq!(all_offsets(&node.log), before);
    assert_eq!(node.log.segment_count(), count - 1);
}

#[test]
fn a_deleted_log_leaves_nothing_and_can_be_made_again() {
    let mut node = filled(small_segments(), 4);
    append(&mut node.log, &records(1));
    let job = node.log.flush_job().unwrap();
    node.log.delete().unwrap().remove_files().unwrap();
    assert!(job.files.iter().try_for_each(|file| file.sync()).is_ok(), "a flush does not miss the folder");
    assert!(node.folder.partitions().unwrap().is_empty());
    let other = Uuid([6; 16]);
    let log = node.folder.open_log(&topic_partition(), other, small_segments(), NOW).unwrap();
    assert_eq!((log.log_end(), log.topic_id()), (Offset(0), other));
    assert!(node.folder.offline().is_none());
}

#[test]
fn upkeep_and_a_deletion_may_remove_the_same_files() {
    let mut node = filled(small_segments(), 4);
    let deleted = node.log.delete().unwrap();
    node.folder.maintain().unwrap();
    deleted.remove_files().unwrap();
    assert!(node.folder.offline().is_none());
}

#[test]
fn a_deletion_that_was_cut_off_is_ended_by_maintenance() {
    let node = filled(small_segments(), 4);
    let deleted = Path::new(FOLDER).join("topic-0.05050505050505050505050505050505-delete");
    node.disk.rename(&Path::new(FOLDER).join("topic-0"), &deleted).unwrap();
    assert!(node.folder.partitions().unwrap().is_empty());
    while node.folder.maintain().unwrap() {}
    assert!(!node.disk.exists(&deleted).unwrap());
}

#[test]
fn a_folder_of_another_topic_of_that_name_is_not_opened() {
    let node = filled(small_segments(), 1).restart();
    let other = node.folder.open_log(&topic_partition(), Uuid([9; 16]), small_segments(), NOW);
    assert!(matches!(other, Err(StorageError::InconsistentTopicId { .. })));
}

fn open_as(disk: &SimDisk, identity: &MetaProperties) -> Result<LogFolder, FolderError> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    LogFolder::open(disk, Path::new(FOLDER), identity, TailBudget::new(0))
}

#[test]
fn a_folder_belongs_to_one_process_one_node_and_one_cluster() {
    let disk = SimDisk::new(1);
    let first = open_as(&disk, &identity()).unwrap();
    assert!(matches!(open_as(&disk, &identity()), Err(FolderError::Locked { .. })));
    drop(first);
    let other_node = MetaProperties { node_id: NodeId(2), ..identity() };
    assert!(matches!(open_as(&disk, &other_node), Err(FolderError::OtherNode { found: NodeId(1), .. })));
    let other_cluster = MetaProperties { cluster_id: ClusterId::from("other"), ..identity() };
    assert!(matches!(open_as(&disk, &other_cluster), Err(FolderError::OtherCluster { .. })));
    let again = MetaProperties { directory_id: Some(Uuid([8; 16])), ..identity() };
    let folder = open_as(&disk, &again).unwrap();
    assert_eq!(Some(folder.directory_id()), identity().directory_id, "the folder keeps its id");
}

#[test]
fn what_is_written_behind_a_cut_does_not_count_as_committed_after_a_power_cut() {
    let cuts: [fn(&mut Node); 3] = [
        |node| node.log.truncate_to(Offset(2), NOW).unwrap(),
        |node| node.log.truncate_fully_and_start_at(Offset(2), NOW).unwrap(),
        |node| node.folder.lower_checkpoints(&topic_partition(), Offset(2)).unwrap(),
    ];
    for cut in cuts {
        let mut node = filled(small_segments(), 3);
        flush(&mut node.log);
        let gathered = node.log.checkpoint(Offset(6)).unwrap().run().unwrap();
        node.folder.checkpoint(std::slice::from_ref(&gathered)).unwrap();
        cut(&mut node);
        node.folder.checkpoint(&[gathered]).unwrap();
        let folder = open_folder(&node.disk.power_loss(), 0);
        assert!(folder.high_watermark(&topic_partition()) <= Some(Offset(2)));
    }
}

#[test]
fn a_crash_while_logs_are_opened_is_not_a_clean_stop() {
    let mut node = filled(small_segments(), 2);
    node.log.close().unwrap();
    let row = node.log.checkpoint(Offset(4)).unwrap().run().unwrap();
    node.folder.close(&[row], BrokerEpoch(9)).unwrap();
    let disk = node.disk.power_loss();
    let folder = open_folder(&disk, 0);
    assert!(folder.was_clean());
    assert_eq!(folder.last_broker_epoch(), Some(BrokerEpoch(9)));
    let folder = open_folder(&disk.power_loss(), 0);
    assert!(!folder.was_clean());
}

#[test]
fn what_a_checkpoint_writes_later_is_not_written_over_what_came_meanwhile() {
    let meanwhile: [fn(&mut Node); 4] = [
        |node| _ = append(&mut node.log, &records(2)),
        |node| (0..10).for_each(|_| _ = append(&mut node.log, &records(2))),
        |node| node.log.truncate_to(Offset(2), NOW).unwrap(),
        |node| {
            node.log.delete().unwrap().remove_files().unwrap();
            node.log = node.folder.open_log(&topic_partition(), topic_id(), small_segments(), NOW).unwrap();
        },
    ];
    for change in meanwhile {
        let mut node = filled(small_segments(), 3);
        let job = node.log.checkpoint(Offset(6)).unwrap();
        change(&mut node);
        let row = job.run().unwrap();
        append(&mut node.log, &records(2));
        node.folder.checkpoint(&[row]).unwrap();
        flush(&mut node.log);
        let offsets = all_offsets(&node.log);
        let killed = node.kill();
        assert_eq!(all_offsets(&killed.log), offsets);
        let restarted = killed.restart();
        assert_eq!(all_offsets(&restarted.log), offsets);
    }
}

#[test]
fn what_retention_removes_later_is_not_what_was_made_meanwhile() {
    let meanwhile: [fn(&mut Node); 2] = [
        |node| node.log.truncate_fully_and_start_at(Offset(0), NOW).unwrap(),
        |node| {
            node.log.delete().unwrap().remove_files().unwrap();
            node.log = node.folder.open_log(&topic_partition(), topic_id(), small_segments(), NOW).unwrap();
        },
    ];
    for change in meanwhile {
        let mut node = filled(small_segments(), 20);
        node.log.advance_log_start(Offset(30)).unwrap();
        let maintained = node.log.maintain(NOW, Offset(40)).unwrap();
        assert!(maintained.segments_deleted > 0);
        change(&mut node);
        append(&mut node.log, &records(2));
        flush(&mut node.log);
        maintained.remove_files().unwrap();
        assert_eq!(all_offsets(&node.power_loss().log), [(0, 1)]);
    }
}

#[test]
fn stray_folders_and_other_names_are_no_partitions() {
    let node = Node::new(LogConfig::default());
    for name in ["a-0.05050505050505050505050505050505-stray", "lost+found", "b-1"] {
        node.disk.create_dir_all(&Path::new(FOLDER).join(name)).unwrap();
    }
    let found = node.folder.partitions().unwrap();
    let names: Vec<_> = found.iter().map(|log| (log.topic_partition.clone(), log.topic_id)).collect();
    assert_eq!(names, [(TopicPartition::new("b", 1), None), (topic_partition(), Some(topic_id()))]);
}

#[test]
fn a_log_that_is_made_again_inherits_nothing_from_the_checkpoints() {
    let mut node = filled(small_segments(), 10);
    node.log.advance_log_start(Offset(6)).unwrap();
    node.checkpoint(Offset(20));
    node.log.delete().unwrap().remove_files().unwrap();
    node.log = node.folder.open_log(&topic_partition(), topic_id(), small_segments(), NOW).unwrap();
    assert_eq!(node.folder.high_watermark(&topic_partition()), None);
    append(&mut node.log, &records(3));
    let node = node.kill();
    assert_eq!((node.log.log_start(), node.log.log_end()), (Offset(0), Offset(3)));
    assert_eq!(node.log.flushed_end(), Offset(0));
}
