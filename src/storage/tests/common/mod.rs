//! A node's log folder on a simulated disk, and batches to put into it.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part; a failure is a failed test")]

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use env::Disk;
use model::{
    BrokerEpoch, LeaderEpoch, NodeId, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp, TopicPartition,
    Uuid,
};
use protocol::batch::{BatchBuilder, batches};
use sim::SimDisk;
use storage::{Appended, Log, LogConfig, LogFolder, MetaProperties, Origin, Slice, TailBudget};

pub(crate) const NOW: Timestamp = Timestamp(1_700_000_000_000);
pub(crate) const FOLDER: &str = "/data";

pub(crate) fn identity() -> MetaProperties {
    MetaProperties { cluster_id: "cluster".into(), node_id: NodeId(1), directory_id: Some(Uuid([3; 16])) }
}

pub(crate) fn topic_partition() -> TopicPartition {
    TopicPartition::new("topic", 0)
}

pub(crate) fn topic_id() -> Uuid {
    Uuid([5; 16])
}

/// A log folder with one log. The tail keeps `tail_bytes`.
pub(crate) struct Node {
    pub(crate) disk: SimDisk,
    pub(crate) folder: LogFolder,
    pub(crate) log: Log,
    pub(crate) config: LogConfig,
    pub(crate) tail_bytes: usize,
}

impl Node {
    pub(crate) fn new(config: LogConfig) -> Self {
        Self::on(SimDisk::new(1), config, 1 << 20)
    }

    /// Without a tail: everything is read from files.
    pub(crate) fn without_tail(config: LogConfig) -> Self {
        Self::on(SimDisk::new(1), config, 0)
    }

    pub(crate) fn on(disk: SimDisk, config: LogConfig, tail_bytes: usize) -> Self {
        let folder = open_folder(&disk, tail_bytes);
        let log = folder.open_log(&topic_partition(), topic_id(), config.clone(), NOW).unwrap();
        Self { disk, folder, log, config, tail_bytes }
    }

    pub(crate) fn checkpoint(&mut self, high_watermark: Offset) {
        let row = self.log.checkpoint(high_watermark).unwrap().run().unwrap();
        self.folder.checkpoint(&[row]).unwrap();
    }

    /// Stops in order and starts again.
    pub(crate) fn restart(mut self) -> Self {
        self.log.close().unwrap();
        let row = self.log.checkpoint(self.log.log_end()).unwrap().run().unwrap();
        let (disk, config, tail_bytes) = (self.disk, self.config, self.tail_bytes);
        drop(self.log);
        self.folder.close(&[row], BrokerEpoch(7)).unwrap();
        drop(self.folder);
        Self::on(disk, config, tail_bytes)
    }

    /// The process dies, the operating system lives.
    pub(crate) fn kill(self) -> Self {
        let disk = self.disk.kill();
        Self::on(disk, self.config, self.tail_bytes)
    }

    pub(crate) fn power_loss(self) -> Self {
        let disk = self.disk.power_loss();
        Self::on(disk, self.config, self.tail_bytes)
    }

    pub(crate) fn file(&self, name: &str) -> Vec<u8> {
        self.disk.read(&Path::new(FOLDER).join("topic-0").join(name), 1 << 20).unwrap()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let entries = self.disk.list(&Path::new(FOLDER).join("topic-0")).unwrap();
        entries.into_iter().map(|entry| entry.name).collect()
    }
}

pub(crate) fn open_folder(disk: &SimDisk, tail_bytes: usize) -> LogFolder {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    LogFolder::open(disk, Path::new(FOLDER), &identity(), TailBudget::new(tail_bytes)).unwrap()
}

pub(crate) fn small_segments() -> LogConfig {
    LogConfig { segment_bytes: 600, index_interval_bytes: 100, ..LogConfig::default() }
}

/// A client's batch of `count` records of `NOW`.
pub(crate) fn records(count: usize) -> Bytes {
    records_at(count, NOW)
}

pub(crate) fn records_at(count: usize, timestamp: Timestamp) -> Bytes {
    let mut builder = BatchBuilder::new().timestamp(timestamp);
    for n in 0..count {
        builder.append(Some(format!("key-{n}").as_bytes()), Some(b"value"), &[]);
    }
    builder.build()
}

pub(crate) fn produced(producer_id: i64, epoch: i16, sequence: i32, count: usize) -> Bytes {
    let mut builder = BatchBuilder::new().timestamp(NOW).producer(
        ProducerId(producer_id),
        ProducerEpoch(epoch),
        Sequence(sequence),
    );
    for _ in 0..count {
        builder.append(Some(b"key"), Some(b"value"), &[]);
    }
    builder.build()
}

pub(crate) fn append(log: &mut Log, bytes: &[u8]) -> Appended {
    let epoch = log.latest_epoch().unwrap_or(LeaderEpoch(1)).max(LeaderEpoch(1));
    log.append_as_leader(bytes, epoch, NOW, Origin::Client).unwrap()
}

pub(crate) fn flush(log: &mut Log) -> Offset {
    match log.flush_job() {
        Some(job) => {
            let result = job.files.iter().try_for_each(|file| file.sync());
            log.flush_done(&job, result).unwrap()
        }
        None => log.flushed_end(),
    }
}

pub(crate) fn bytes_of(slice: &Slice) -> Vec<u8> {
    match slice {
        Slice::Empty => Vec::new(),
        Slice::Cached(bytes) => bytes.to_vec(),
        Slice::File(range) => {
            let mut bytes = vec![0; range.length];
            let mut filled = 0;
            while filled < bytes.len() {
                match range.file.read_at(&mut bytes[filled..], range.position + filled as u64).unwrap() {
                    0 => break,
                    n => filled += n,
                }
            }
            bytes.truncate(filled);
            bytes
        }
    }
}

/// First and last offset of each whole batch of a slice.
pub(crate) fn offsets_of(slice: &Slice) -> Vec<(i64, i64)> {
    let bytes = bytes_of(slice);
    batches(&bytes)
        .map_while(Result::ok)
        .map(|batch| {
            batch.verify_crc().unwrap();
            (batch.header.base_offset.0, batch.header.last_offset().0)
        })
        .collect()
}

/// All batches from the log start on, read in small steps.
pub(crate) fn all_offsets(log: &Log) -> Vec<(i64, i64)> {
    let mut all = Vec::new();
    let mut from = log.log_start();
    while from < log.log_end() {
        let read = offsets_of(&log.read(from, 200, log.log_end(), true).unwrap());
        let last = read.last().expect("at least one batch is read");
        from = Offset(last.1 + 1);
        all.extend(read);
    }
    all
}
