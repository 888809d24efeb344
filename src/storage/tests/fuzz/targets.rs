//! What bytes on a disk go through in this room: a log folder that Kafka wrote, with one file exchanged. The target panics
//! only if the room is wrong. It is run by cargo-fuzz (`protocol-tests/fuzz`) and, over its corpus, by `cargo test`.

use std::io::IoSlice;
use std::path::Path;
use std::sync::Arc;

use env::{Disk, Open};
use model::{LeaderEpoch, Offset, Timestamp, TopicPartition};
use protocol::batch::{BatchBuilder, HEADER_BYTES};
use sim::SimDisk;
use storage::{Log, LogConfig, LogFolder, Maintained, MetaProperties, Origin, Slice, TailBudget};

const FOLDER: &str = "/data";
const CLEAN_SHUTDOWN: &str = ".kafka_cleanshutdown";
/// Some seconds after the last record.
const NOW: Timestamp = Timestamp(1_796_035_500_000);

/// The first byte of an input says what is done with the rest: its low bits name the file that the rest becomes.
const FILE_BITS: u8 = 0x1f;
/// The folder was not closed in order.
const UNCLEAN: u8 = 0x20;
/// The checksums inside the file are set right first, for a fuzzer does not find them.
const RIGHT_CHECKSUMS: u8 = 0x40;
/// There are no index files.
const NO_INDEXES: u8 = 0x80;

macro_rules! files {
    ($($name:literal)*) => { &[$(($name, include_bytes!(concat!("../kafka/", $name)))),*] };
}

/// Kafka's folder, in the order that inputs count in.
pub(crate) const FILES: &[(&str, &[u8])] = files!(
    "meta.properties" ".kafka_cleanshutdown" "recovery-point-offset-checkpoint" "log-start-offset-checkpoint"
    "replication-offset-checkpoint" "plain-0/leader-epoch-checkpoint" "plain-0/partition.metadata"
    "plain-0/00000000000000000000.log" "plain-0/00000000000000000000.index" "plain-0/00000000000000000000.timeindex"
    "plain-0/00000000000000000060.log" "plain-0/00000000000000000060.index" "plain-0/00000000000000000060.timeindex"
    "plain-0/00000000000000000060.snapshot" "plain-0/00000000000000000120.log"
    "plain-0/00000000000000000120.index" "plain-0/00000000000000000120.timeindex"
    "plain-0/00000000000000000120.snapshot" "plain-0/00000000000000000180.snapshot"
);

/// A folder with one file exchanged is refused with an error, or opened, read, gone on with and closed.
pub(crate) fn log_folder(input: &[u8]) {
    let Some((how, bytes)) = input.split_first() else { return };
    let disk = SimDisk::new(1);
    lay_out(&disk, *how, bytes);
    let folder = Path::new(FOLDER);
    let Ok(Some(identity)) = LogFolder::read_meta(&disk, folder) else { return };
    let Some(log) = open(&disk, &identity) else { return };
    use_log(log);
    // What it left behind is opened again, whatever it found.
    let again = open(&disk.kill(), &identity).expect("a folder that Ottla wrote to is opened again");
    read_all(&again);
}

fn lay_out(disk: &SimDisk, how: u8, bytes: &[u8]) {
    let folder = Path::new(FOLDER);
    disk.create_dir_all(&folder.join("plain-0")).expect("a disk with room");
    for (at, (name, kafkas)) in FILES.iter().enumerate() {
        let is_index = name.ends_with("index");
        if (how & UNCLEAN != 0 && *name == CLEAN_SHUTDOWN) || (how & NO_INDEXES != 0 && is_index) {
            continue;
        }
        let is_exchanged = at == usize::from(how & FILE_BITS) % FILES.len();
        let mut content = if is_exchanged { bytes.to_vec() } else { kafkas.to_vec() };
        if is_exchanged && how & RIGHT_CHECKSUMS != 0 {
            set_checksums(name, &mut content);
        }
        let file = disk.open(&folder.join(name), Open::Truncate).expect("a disk that works");
        file.write_at(&[IoSlice::new(&content)], 0).expect("a disk with room");
    }
}

fn set_checksums(name: &str, bytes: &mut [u8]) {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("snapshot") => set_crc(bytes, 2),
        Some("log") => set_crcs_of_batches(bytes),
        _ => {}
    }
}

fn set_crcs_of_batches(mut left: &mut [u8]) {
    while let Some(length) = left.get(8..).and_then(|rest| rest.first_chunk()) {
        let size = usize::try_from(i32::from_be_bytes(*length)).unwrap_or_default().saturating_add(12);
        let Some((batch, rest)) = left.split_at_mut_checked(size) else { break };
        if size >= HEADER_BYTES {
            set_crc(batch, 17);
        }
        left = rest;
    }
}

/// A checksum at `at` covers all that follows it.
fn set_crc(bytes: &mut [u8], at: usize) {
    if let Some((head, covered)) = bytes.split_at_mut_checked(at + 4) {
        head[at..].copy_from_slice(&crc32c::crc32c(covered).to_be_bytes());
    }
}

fn open(disk: &SimDisk, identity: &MetaProperties) -> Option<Log> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    let folder = LogFolder::open(disk, Path::new(FOLDER), identity, TailBudget::new(0)).ok()?;
    let found = folder.partitions().ok()?.pop()?;
    let config = LogConfig { index_interval_bytes: 512, segment_ms: 1500, ..LogConfig::default() };
    folder.open_log(&TopicPartition::new("plain", 0), found.topic_id?, config, NOW).ok()
}

fn use_log(mut log: Log) {
    read_all(&log);
    for search in [log.offset_for_timestamp(NOW), log.max_timestamp()] {
        let _ = search.and_then(|search| search.run());
    }
    let _ = log.maintain(NOW, log.log_end()).map(Maintained::remove_files);
    let mut batch = BatchBuilder::new().timestamp(NOW);
    batch.append(None, Some(b"value"), &[]);
    let end = log.log_end();
    if let Ok(appended) = log.append_as_leader(&batch.build(), LeaderEpoch(i32::MAX), NOW, Origin::Client) {
        assert_eq!((appended.base_offset, log.log_end()), (end, Offset(end.0 + 1)));
    }
    let _ = log.truncate_to(end, NOW);
    let _ = log.close();
}

fn read_all(log: &Log) {
    assert!(log.log_start() <= log.log_end(), "{} {}", log.log_start(), log.log_end());
    let mut from = log.log_start();
    while let Ok(slice) = log.read(from, 1000, log.log_end(), true) {
        let bytes = match &slice {
            Slice::Empty => break,
            Slice::Cached(bytes) => bytes.to_vec(),
            Slice::File(range) => {
                let mut bytes = vec![0; range.length];
                let Ok(_) = range.file.read_at(&mut bytes, range.position) else { break };
                bytes
            }
        };
        let last = protocol::batch::batches(&bytes)
            .map_while(Result::ok)
            .map(|batch| batch.header.last_offset())
            .last();
        match last {
            Some(last) if last >= from => from = Offset(last.0 + 1),
            _ => break,
        }
    }
}
