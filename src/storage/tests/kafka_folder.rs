//! A folder that Apache Kafka wrote is opened and gone on with; what is written anew is what Kafka wrote.
#![allow(clippy::unwrap_used, reason = "a failure is a failed test")]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use common::{FOLDER, all_offsets, append, produced, records};
use env::{Disk, Open};
use model::{BrokerEpoch, LeaderEpoch, Offset, Timestamp, TopicPartition};
use sim::SimDisk;
use storage::{Log, LogConfig, LogFolder, TailBudget};

/// Some seconds after the last record.
const SOON: Timestamp = Timestamp(1_796_035_500_000);

fn kafkas_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka")
}

fn copy(disk: &SimDisk, from: &Path, to: &Path) {
    disk.create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(disk, &entry.path(), &to);
        } else {
            let bytes = std::fs::read(entry.path()).unwrap();
            let file = disk.open(&to, Open::Truncate).unwrap();
            file.write_at(&[std::io::IoSlice::new(&bytes)], 0).unwrap();
        }
    }
}

fn disk_of_kafka() -> SimDisk {
    let disk = SimDisk::new(1);
    copy(&disk, &kafkas_folder(), Path::new(FOLDER));
    disk
}

fn plain() -> TopicPartition {
    TopicPartition::new("plain", 0)
}

fn path(name: &str) -> PathBuf {
    Path::new(FOLDER).join("plain-0").join(name)
}

fn open(disk: &SimDisk) -> (LogFolder, Log) {
    let folder = Path::new(FOLDER);
    let identity = LogFolder::read_meta(disk, folder).unwrap().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let folder = LogFolder::open(disk, folder, &identity, TailBudget::new(0)).unwrap();
    let found = folder.partitions().unwrap();
    assert_eq!(found.len(), 1);
    let config = LogConfig { index_interval_bytes: 512, segment_ms: 1500, ..LogConfig::default() };
    let log = folder.open_log(&plain(), found[0].topic_id.unwrap(), config, SOON).unwrap();
    (folder, log)
}

fn expected() -> Vec<(i64, i64)> {
    (0..36).map(|n| (n * 5, n * 5 + 4)).collect()
}

#[test]
fn it_is_read_whole_with_its_producers() {
    let (folder, log) = open(&disk_of_kafka());
    assert!(folder.was_clean());
    assert_eq!(folder.last_broker_epoch(), Some(BrokerEpoch(23)));
    assert_eq!(folder.high_watermark(&plain()), Some(Offset(180)));
    assert_eq!((log.segment_count(), log.log_end(), log.flushed_end()), (3, Offset(180), Offset(180)));
    assert_eq!(all_offsets(&log), expected());
    assert_eq!(log.latest_epoch(), Some(LeaderEpoch(0)));
    let sequences: Vec<_> = log.producers().iter().map(|p| (p.producer_id.0, p.last_sequence().0)).collect();
    assert_eq!(sequences, [(0, 59), (1, 59), (2, 59)]);
}

#[test]
fn it_is_gone_on_with() {
    let (_, mut log) = open(&disk_of_kafka());
    let duplicate =
        log.append_as_leader(&produced(2, 0, 55, 5), LeaderEpoch(0), SOON, storage::Origin::Client).unwrap();
    assert_eq!(duplicate.duplicate_of, Some((Offset(175), Offset(179))));
    assert_eq!(append(&mut log, &records(3)).base_offset, Offset(180));
}

#[test]
fn after_a_kill_the_files_that_kafka_allocated_ahead_are_understood() {
    let disk = disk_of_kafka();
    disk.remove_file(&Path::new(FOLDER).join(".kafka_cleanshutdown")).unwrap();
    disk.remove_file(&path("00000000000000000180.snapshot")).unwrap();
    for name in ["00000000000000000120.index", "00000000000000000120.timeindex"] {
        let file = disk.open(&path(name), Open::Write).unwrap();
        file.set_len(10 << 20).unwrap();
    }
    let (folder, log) = open(&disk);
    assert!(!folder.was_clean());
    assert_eq!(all_offsets(&log), expected());
    assert_eq!(log.producers().len(), 3);
}

#[test]
fn indexes_and_snapshots_that_are_made_anew_are_kafkas_byte_for_byte() {
    let disk = disk_of_kafka();
    let names = [
        "00000000000000000000.index",
        "00000000000000000000.timeindex",
        "00000000000000000120.index",
        "00000000000000000120.timeindex",
        "00000000000000000180.snapshot",
        "leader-epoch-checkpoint",
    ];
    let read = |name: &str| disk.read(&path(name), 1 << 20).unwrap();
    let kafkas: Vec<_> = names.iter().map(|name| read(name)).collect();
    for name in names.iter().skip(2) {
        disk.remove_file(&path(name)).unwrap();
    }
    let (_, mut log) = open(&disk);
    log.close().unwrap();
    let ours: Vec<_> = names.iter().map(|name| read(name)).collect();
    assert_eq!(ours, kafkas);
}

#[test]
fn records_are_found_by_time() {
    let (_, log) = open(&disk_of_kafka());
    let latest = log.max_timestamp().unwrap().run().unwrap().unwrap();
    assert!(latest.offset >= Offset(120));
    let first = log.offset_for_timestamp(Timestamp(0)).unwrap().run().unwrap().unwrap();
    assert_eq!(first.offset, Offset(0));
    let again = log.offset_for_timestamp(latest.timestamp).unwrap().run().unwrap().unwrap();
    assert_eq!(again, latest);
    assert!(log.offset_for_timestamp(Timestamp(latest.timestamp.0 + 1)).unwrap().is_empty());
}
