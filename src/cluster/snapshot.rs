//! Snapshots of the metadata log: `%020d-%010d.checkpoint`, named by end offset and epoch (KIP-630).
//!
//! ```text
//! control batch   SnapshotHeader, KRaftVersion, KRaftVoters
//! batches         the records of the image
//! control batch   SnapshotFooter
//! ```
//!
//! Offsets in the file count from 0. A snapshot without its footer is one that was cut, and is refused.
//!
//! Kafka: `RecordsSnapshotWriter`, `RecordsSnapshotReader`, `Snapshots`.

use std::io::IoSlice;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use env::{Disk, Open};
use model::{LeaderEpoch, Limits, Offset, Timestamp};
use protocol::batch::{self, BatchBuilder};
use protocol::records::metadata::MetadataRecord;
use protocol::records::{ControlRecord, SnapshotFooterRecord, SnapshotHeaderRecord};
use quorum::{SnapshotId, VoterSet};
use storage::{Log, StorageError};

use crate::convert;

/// Records of one batch of a snapshot: about as large as Kafka makes them.
const BATCH_BYTES: usize = 1 << 20;

/// What a snapshot says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Snapshot {
    pub(crate) kraft_version: i16,
    pub(crate) voters: VoterSet,
    pub(crate) records: Vec<MetadataRecord>,
}

/// The name of a snapshot's file.
pub(crate) fn name(id: SnapshotId) -> String {
    format!("{:020}-{:010}.checkpoint", id.end.0, id.epoch.0)
}

fn parse_name(name: &str) -> Option<SnapshotId> {
    let (end, epoch) = name.strip_suffix(".checkpoint")?.split_once('-')?;
    Some(SnapshotId { end: Offset(end.parse().ok()?), epoch: LeaderEpoch(epoch.parse().ok()?) })
}

/// The snapshots in a folder and their sizes in bytes, the oldest first. Half-written ones are not among them.
pub(crate) fn list(disk: &dyn Disk, folder: &Path) -> std::io::Result<Vec<(SnapshotId, u64)>> {
    let entries = disk.list(folder)?;
    let ids = entries.iter().filter_map(|entry| parse_name(&entry.name));
    ids.map(|id| Ok((id, disk.length(&folder.join(name(id)))?))).collect()
}

/// Writes a snapshot durably, as a whole, where there is space for it.
pub(crate) fn write(log: &Log, id: SnapshotId, bytes: &[u8], now: Timestamp) -> Result<(), StorageError> {
    log.write_beside_where_space_is(&name(id), bytes, now)
}

/// Writes a piece of a snapshot that is not whole yet; the one at position 0 begins it anew.
pub(crate) fn write_piece(
    disk: &dyn Disk,
    folder: &Path,
    id: SnapshotId,
    position: u64,
    bytes: &[u8],
) -> std::io::Result<()> {
    let how = if position == 0 { Open::Truncate } else { Open::Write };
    disk.open(&part(folder, id), how)?.write_at(&[IoSlice::new(bytes)], position)
}

/// All pieces are written: makes them the snapshot, durably. Its size in bytes. What failed may be called again.
pub(crate) fn finish(disk: &dyn Disk, folder: &Path, id: SnapshotId) -> std::io::Result<u64> {
    let (part, whole) = (part(folder, id), folder.join(name(id)));
    if disk.exists(&part)? {
        // A failed sync is final, whatever the reason: a second one would succeed without the bytes.
        disk.open(&part, Open::Write)?.sync().map_err(std::io::Error::other)?;
        disk.rename(&part, &whole)?;
    }
    disk.sync_dir(folder)?;
    disk.length(&whole)
}

fn part(folder: &Path, id: SnapshotId) -> PathBuf {
    folder.join(format!("{}.part", name(id)))
}

/// Reads a piece of a snapshot.
///
/// # Errors
/// The snapshot is not there, or ends before the piece does.
pub(crate) fn read_piece(
    disk: &dyn Disk,
    folder: &Path,
    id: SnapshotId,
    position: u64,
    length: usize,
) -> std::io::Result<Bytes> {
    let file = disk.open(&folder.join(name(id)), Open::Read)?;
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while filled < length {
        match file.read_at(&mut bytes[filled..], position + filled as u64)? {
            0 => return Err(std::io::ErrorKind::UnexpectedEof.into()),
            count => filled += count,
        }
    }
    Ok(bytes.into())
}

/// Reads the snapshot of this id.
pub(crate) fn read(disk: &dyn Disk, folder: &Path, id: SnapshotId) -> std::io::Result<Vec<u8>> {
    disk.read(&folder.join(name(id)), Limits::SNAPSHOT_BYTES_MAX)
}

/// Removes the snapshot of this id.
pub(crate) fn remove(disk: &dyn Disk, folder: &Path, id: SnapshotId) -> std::io::Result<()> {
    disk.remove_file(&folder.join(name(id)))
}

/// The file of a snapshot.
pub(crate) fn encode(snapshot: &Snapshot, epoch: LeaderEpoch, last: Timestamp, now: Timestamp) -> Vec<u8> {
    let mut file = File { bytes: Vec::new(), next: Offset(0), epoch, now };
    let header =
        SnapshotHeaderRecord { last_contained_log_timestamp: last.0, ..SnapshotHeaderRecord::default() };
    let mut head = vec![ControlRecord::SnapshotHeader(header)];
    if snapshot.kraft_version > 0 {
        head.push(convert::kraft_version(snapshot.kraft_version));
        head.push(convert::voters_record(&snapshot.voters));
    }
    file.control(&head);
    file.data(&snapshot.records);
    file.control(&[ControlRecord::SnapshotFooter(SnapshotFooterRecord::default())]);
    file.bytes
}

struct File {
    bytes: Vec<u8>,
    next: Offset,
    epoch: LeaderEpoch,
    now: Timestamp,
}

impl File {
    fn batch(&self) -> BatchBuilder {
        BatchBuilder::new().base_offset(self.next).leader_epoch(self.epoch).timestamp(self.now)
    }

    fn control(&mut self, records: &[ControlRecord]) {
        let mut batch = self.batch().control();
        for record in records {
            append_control(&mut batch, record);
        }
        self.push(batch);
    }

    fn data(&mut self, records: &[MetadataRecord]) {
        let mut batch = self.batch();
        for record in records {
            batch.append(None, Some(&record.encode()), &[]);
            if batch.size_bytes() >= BATCH_BYTES {
                self.push(batch);
                batch = self.batch();
            }
        }
        if batch.record_count() > 0 {
            self.push(batch);
        }
    }

    fn push(&mut self, batch: BatchBuilder) {
        self.next = self.next.plus(i64::from(batch.record_count()));
        self.bytes.extend_from_slice(&batch.build());
    }
}

/// Appends a control record to a control batch.
pub(crate) fn append_control(batch: &mut BatchBuilder, record: &ControlRecord) {
    let (key, value) = record.encode().expect("control records are made of versions that exist");
    batch.append(Some(&key), Some(&value), &[]);
}

/// Reads the file of a snapshot.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn decode(bytes: &[u8]) -> Result<Snapshot, String> {
    let mut snapshot = Snapshot::default();
    let mut complete = false;
    for batch in batch::batches(bytes) {
        let batch = batch.map_err(|error| error.to_string())?;
        batch.verify_crc().map_err(|error| error.to_string())?;
        let records = batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(|error| error.to_string())?;
        for record in &records {
            let record = record.map_err(|error| error.to_string())?;
            let value = record.value.ok_or("a record without a value")?;
            if batch.header.is_control() {
                complete |= snapshot.take_control(record.key.unwrap_or_default(), value)?;
            } else {
                snapshot.records.push(MetadataRecord::decode(value).map_err(|error| error.to_string())?);
            }
        }
    }
    if complete { Ok(snapshot) } else { Err("the snapshot has no footer".to_owned()) }
}

impl Snapshot {
    /// Whether it was the footer.
    fn take_control(&mut self, key: &[u8], value: &[u8]) -> Result<bool, String> {
        match ControlRecord::decode(key, value).map_err(|error| error.to_string())? {
            ControlRecord::KRaftVersion(record) => self.kraft_version = record.k_raft_version,
            ControlRecord::KRaftVoters(record) => self.voters = convert::voters(&record),
            ControlRecord::SnapshotFooter(_) => return Ok(true),
            _ => {}
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use model::{NodeId, Uuid};
    use protocol::records::metadata::FeatureLevelRecord;
    use quorum::{ReplicaKey, Voter};

    use super::*;

    fn snapshot() -> Snapshot {
        let voter = Voter::new(ReplicaKey::new(NodeId(1), Uuid([7; 16])));
        let feature = FeatureLevelRecord { name: "group.version".to_owned(), feature_level: 1 };
        Snapshot {
            kraft_version: 1,
            voters: [voter].into_iter().collect(),
            records: vec![MetadataRecord::FeatureLevel(feature)],
        }
    }

    #[test]
    fn a_snapshot_comes_back() {
        let bytes = encode(&snapshot(), LeaderEpoch(3), Timestamp(5), Timestamp(6));
        assert_eq!(decode(&bytes), Ok(snapshot()));
    }

    #[test]
    fn a_cut_snapshot_is_refused() {
        let bytes = encode(&snapshot(), LeaderEpoch(3), Timestamp(5), Timestamp(6));
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn names_go_both_ways() {
        let id = SnapshotId { end: Offset(42), epoch: LeaderEpoch(7) };
        assert_eq!(name(id), "00000000000000000042-0000000007.checkpoint");
        assert_eq!(parse_name(&name(id)), Some(id));
        assert_eq!(parse_name("00000000000000000042-0000000007.checkpoint.part"), None);
    }
}
