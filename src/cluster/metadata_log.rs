//! The metadata log: `__cluster_metadata-0`, records in and records out.
//!
//! Kafka: `KafkaMetadataLog`.

use std::ops::Range;
use std::time::Duration;

use bytes::Bytes;
use env::Clock;
use model::{LeaderEpoch, Limits, Offset, Timestamp, TopicPartition, Uuid};
use protocol::batch::{self, BatchBuilder, BatchError};
use protocol::records::ControlRecord;
use protocol::records::metadata::MetadataRecord;
use quorum::{Batch, ControlBatch, VoterSet};
use storage::{Log, Origin};

use crate::{FatalError, convert, snapshot};

/// The topic's id, the same in every cluster.
pub(crate) const TOPIC_ID: Uuid = Uuid([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);

/// How often what was hindered is tried again.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// The topic's one partition.
pub fn topic_partition() -> TopicPartition {
    TopicPartition::new("__cluster_metadata", 0)
}

/// One batch of the log, decoded.
#[derive(Default)]
pub(crate) struct MetadataBatch {
    /// The offset after it.
    pub(crate) end: Offset,
    /// When it was appended.
    pub(crate) timestamp: Timestamp,
    pub(crate) records: Vec<MetadataRecord>,
    /// Control records and their offsets.
    pub(crate) control: Vec<(Offset, ControlRecord)>,
}

/// Appends the records of a decision as one batch.
pub(crate) fn append(
    log: &mut Log,
    (base_offset, epoch): (Offset, LeaderEpoch),
    records: &[MetadataRecord],
    now: Timestamp,
) -> Result<Offset, FatalError> {
    let mut batch = BatchBuilder::new().timestamp(now);
    for record in records {
        batch.append(None, Some(&record.encode()), &[]);
    }
    write(log, base_offset, epoch, batch, now)
}

/// Appends what the quorum's core itself writes.
pub(crate) fn append_control(
    log: &mut Log,
    control: &ControlBatch,
    now: Timestamp,
) -> Result<Offset, FatalError> {
    let mut batch = BatchBuilder::new().timestamp(now).control();
    for record in &control.records {
        snapshot::append_control(&mut batch, &convert::control_record(record));
    }
    write(log, control.base_offset, control.epoch, batch, now)
}

/// Tries until nothing is in the way that passes by itself: a full disk, too many open files. Until then the whole
/// quorum's machine waits, as it does for a slow disk: what it has decided must not be overtaken. `attempt` must bear to be
/// cut off anywhere and made again.
pub(crate) async fn patiently<T>(
    clock: &dyn Clock,
    log: &mut Log,
    mut attempt: impl FnMut(&mut Log) -> Result<T, FatalError>,
) -> Result<T, FatalError> {
    loop {
        match attempt(log) {
            Err(error) if error.passes() => {
                tracing::warn!(%error, "the metadata log waits for space or for open files to be closed");
                clock.sleep(TRY_AGAIN).await;
            }
            result => return result,
        }
    }
}

/// Appends whole batches as a leader sent them. Those that an earlier attempt came to are there, and are left out.
pub(crate) fn append_fetched(log: &mut Log, fetched: &[u8], now: Timestamp) -> Result<(), FatalError> {
    let log_end = log.log_end();
    let is_there = |batch: &batch::Batch<'_>| batch.header.next_offset() <= log_end;
    let there = batch::batches(fetched).map_while(Result::ok).take_while(is_there);
    let done: usize = there.map(|batch| batch.bytes.len()).sum();
    log.append_as_follower(&fetched[done..], Origin::Raft, now)?;
    Ok(())
}

fn write(
    log: &mut Log,
    base_offset: Offset,
    epoch: LeaderEpoch,
    batch: BatchBuilder,
    now: Timestamp,
) -> Result<Offset, FatalError> {
    assert_eq!(log.log_end(), base_offset, "the quorum and its log agree on the log's end");
    if log.latest_epoch() != Some(epoch) {
        log.assign_epoch(epoch, base_offset)?;
    }
    log.append_as_leader(&batch.build(), epoch, now, Origin::Raft)?;
    Ok(log.log_end())
}

/// The batches from `from` on, as many as one read gives; none at `end`.
pub(crate) fn read(log: &Log, from: Offset, end: Offset) -> Result<Vec<MetadataBatch>, FatalError> {
    let slice = log.read(from, Limits::RECEIVE_BUFFER_BYTES, end, true)?;
    let bytes = slice.read().map_err(|error| FatalError::Apply(error.to_string()))?;
    decode(&bytes, from).map_err(FatalError::Apply)
}

/// Whole batches for a peer, as many as `bytes_max` allows and at least one; what follows them may be cut.
pub(crate) fn read_bytes(log: &Log, offsets: Range<Offset>, bytes_max: usize) -> Result<Bytes, FatalError> {
    let slice = log.read(offsets.start, bytes_max, offsets.end, true)?;
    slice.read().map_err(|error| FatalError::Apply(error.to_string()))
}

/// The last `kraft.version` in batches.
pub(crate) fn kraft_version(batches: &[MetadataBatch]) -> Option<i16> {
    let control = batches.iter().rev().flat_map(|batch| batch.control.iter().rev());
    control.into_iter().find_map(|(_, record)| match record {
        ControlRecord::KRaftVersion(record) => Some(record.k_raft_version),
        _ => None,
    })
}

/// What the core must know of batches that a leader sent. A cut one at the end is left out, for a leader sends what a read
/// of its log gives.
///
/// # Errors
/// What is wrong with them.
pub(crate) fn batches(bytes: &[u8]) -> Result<Vec<Batch>, String> {
    let mut found = Vec::new();
    for batch in batch::batches(bytes) {
        let batch = match batch {
            Err(BatchError::Incomplete { .. }) => break,
            batch => batch.map_err(|error| error.to_string())?,
        };
        batch.verify_crc().map_err(|error| error.to_string())?;
        let header = &batch.header;
        let voters = if header.is_control() { voters_in(&batch)? } else { Vec::new() };
        found.push(Batch {
            base_offset: header.base_offset,
            end: header.next_offset(),
            epoch: header.leader_epoch,
            voters,
        });
    }
    Ok(found)
}

fn voters_in(batch: &batch::Batch<'_>) -> Result<Vec<(Offset, VoterSet)>, String> {
    let mut decoded = MetadataBatch::default();
    let records = batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(|error| error.to_string())?;
    for record in &records {
        decoded.take(true, &record.map_err(|error| error.to_string())?)?;
    }
    let voters = decoded.control.iter().filter_map(|(offset, record)| match record {
        ControlRecord::KRaftVoters(record) => Some((*offset, convert::voters(record))),
        _ => None,
    });
    Ok(voters.collect())
}

fn decode(bytes: &[u8], from: Offset) -> Result<Vec<MetadataBatch>, String> {
    let mut batches = Vec::new();
    for batch in batch::batches(bytes) {
        let batch = match batch {
            // The read stopped here; the next one begins here.
            Err(BatchError::Incomplete { .. }) if !batches.is_empty() => break,
            batch => batch.map_err(|error| error.to_string())?,
        };
        batch.verify_crc().map_err(|error| error.to_string())?;
        let end = batch.header.next_offset();
        let mut decoded = MetadataBatch {
            end,
            timestamp: batch.header.max_timestamp,
            records: Vec::new(),
            control: Vec::new(),
        };
        let records = batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(|error| error.to_string())?;
        for record in &records {
            let record = record.map_err(|error| error.to_string())?;
            if record.offset < from {
                continue;
            }
            decoded.take(batch.header.is_control(), &record)?;
        }
        batches.push(decoded);
    }
    Ok(batches)
}

impl MetadataBatch {
    fn take(&mut self, is_control: bool, record: &batch::Record<'_>) -> Result<(), String> {
        let value =
            record.value.ok_or_else(|| format!("the record at offset {} has no value", record.offset))?;
        let fault =
            |error: &dyn std::fmt::Display| format!("the record at offset {}: {error}", record.offset);
        if is_control {
            let key = record.key.unwrap_or_default();
            self.control
                .push((record.offset, ControlRecord::decode(key, value).map_err(|error| fault(&error))?));
        } else {
            self.records.push(MetadataRecord::decode(value).map_err(|error| fault(&error))?);
        }
        Ok(())
    }
}
