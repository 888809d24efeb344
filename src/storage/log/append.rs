//! Appending: one write an append, no flush, no task hop.
//!
//! The batches are copied once, into the bytes that are written and then serve the tail's readers; offsets and leader
//! epoch are set in that copy. What is remembered changes only after the write succeeded.

use std::collections::BTreeMap;
use std::hash::{BuildHasher, BuildHasherDefault};

use bytes::{Bytes, BytesMut};
use model::{FixedHasher, LeaderEpoch, Limits, Offset, ProducerId, Timestamp, TopicPartition};
use protocol::batch::{
    BatchError, BatchHeader, TimestampType, batches, set_base_offset, set_leader_epoch, set_log_append_time,
};

use super::{Log, check};
use crate::error::unless_full;
use crate::folder_state::Purpose;
use crate::index::relative;
use crate::producers::ProducerWindowBatch;
use crate::segment::Segment;
use crate::{AppendError, LogConfig, StorageError};

/// What coordinators leave of the reserve: what heals a full disk, as deletes do, goes through the metadata log.
const KEPT_FROM_COORDINATORS_BYTES: u64 = Limits::DISK_RESERVE_BYTES / 2;

/// Who appends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A producer: everything is checked.
    Client,
    /// A coordinator's own records: they may use half of the disk's reserve.
    Coordinator,
    /// The metadata log's: control batches and any size are well.
    Raft,
}

impl Origin {
    fn purpose(self) -> Purpose {
        match self {
            Self::Client => Purpose::Records,
            Self::Coordinator | Self::Raft => Purpose::Upkeep,
        }
    }
}

/// What an append did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Appended {
    /// The first record's offset; of a duplicate, the original's.
    pub base_offset: Offset,
    /// The last record's offset, inclusive; of a duplicate, the original's.
    pub last_offset: Offset,
    /// The time that the broker set, where the topic says so; of a duplicate, the original's latest time.
    pub log_append_time: Option<Timestamp>,
    /// The original's first and last offset, where the batch had been appended before and nothing was written.
    pub duplicate_of: Option<(Offset, Offset)>,
    /// The log start offset.
    pub log_start: Offset,
    /// The leader epoch that the log is in now.
    pub leader_epoch: LeaderEpoch,
}

impl Log {
    /// Appends batches as this partition's leader in `epoch`: checks them, gives them offsets and the epoch.
    ///
    /// # Errors
    /// Nothing was appended.
    pub fn append_as_leader(
        &mut self,
        bytes: &[u8],
        epoch: LeaderEpoch,
        now: Timestamp,
        origin: Origin,
    ) -> Result<Appended, AppendError> {
        self.admit(bytes.len() as u64, now, origin)?;
        let mut headers = std::mem::take(&mut self.headers);
        headers.clear();
        let result = self.lead(bytes, epoch, now, origin, &mut headers);
        self.headers = headers;
        result
    }

    fn admit(&self, size: u64, now: Timestamp, origin: Origin) -> Result<(), StorageError> {
        let folder = &self.place.folder;
        folder.admit(origin.purpose(), now)?;
        if origin == Origin::Coordinator && folder.reserve.is_full() {
            let free = folder.checked(&folder.path, folder.disk.free_bytes(&folder.path))?;
            if free < KEPT_FROM_COORDINATORS_BYTES + size {
                return Err(StorageError::DiskFull { folder: folder.path.clone() });
            }
        }
        Ok(())
    }

    fn lead(
        &mut self,
        bytes: &[u8],
        epoch: LeaderEpoch,
        now: Timestamp,
        origin: Origin,
        headers: &mut Vec<BatchHeader>,
    ) -> Result<Appended, AppendError> {
        self.check_epoch(epoch)?;
        let rewritten = check::leader_batches(&self.config, bytes, now, origin, headers)?;
        if let Some(original) = self.check_producers(headers, origin)? {
            return Ok(self.duplicate(original, epoch));
        }
        let mut copy = BytesMut::from(rewritten.as_deref().unwrap_or(bytes));
        let log_append_time = (self.config.timestamp_type == TimestampType::LogAppendTime).then_some(now);
        let base_offset = self.log_end;
        let end = stamp(&mut copy, headers, base_offset, epoch, log_append_time)?;
        if copy.len() as u64 > self.config.segment_bytes && origin != Origin::Raft {
            let (size, size_max) = (copy.len(), self.config.segment_bytes);
            return Err(AppendError::LargerThanSegment { size, size_max });
        }
        self.write(copy.freeze(), headers, now, origin.purpose())?;
        let last_offset = end.plus(-1);
        Ok(Appended {
            base_offset,
            last_offset,
            log_append_time,
            duplicate_of: None,
            log_start: self.log_start,
            leader_epoch: epoch,
        })
    }

    fn check_epoch(&self, epoch: LeaderEpoch) -> Result<(), AppendError> {
        match self.epochs.latest().filter(|latest| epoch < *latest && epoch != LeaderEpoch::NONE) {
            Some(latest) => Err(AppendError::FencedLeaderEpoch { epoch, latest }),
            None => Ok(()),
        }
    }

    fn duplicate(&self, original: ProducerWindowBatch, leader_epoch: LeaderEpoch) -> Appended {
        let (base_offset, last_offset) = (original.first_offset(), original.last_offset);
        Appended {
            base_offset,
            last_offset,
            log_append_time: Some(original.timestamp),
            duplicate_of: Some((base_offset, last_offset)),
            log_start: self.log_start,
            leader_epoch,
        }
    }

    /// Checks what the batches say of their producers. Gives back the original of the first that is a duplicate.
    fn check_producers(
        &self,
        headers: &[BatchHeader],
        origin: Origin,
    ) -> Result<Option<ProducerWindowBatch>, AppendError> {
        // Batches of one producer in one call follow each other: the second is checked against the first.
        let mut before: BTreeMap<ProducerId, &BatchHeader> = BTreeMap::new();
        for header in headers.iter().filter(|header| header.has_producer()) {
            let previous = if headers.len() > 1 { before.insert(header.producer_id, header) } else { None };
            match previous {
                _ if origin != Origin::Client => self.producers.check_epoch(header)?,
                Some(previous) => check::follows(previous, header, self.log_end)?,
                None => {
                    if let Some(original) = self.producers.check(header, self.log_end)? {
                        return Ok(Some(original));
                    }
                }
            }
        }
        Ok(None)
    }

    /// Appends what this partition's leader sent, with the offsets and epochs that it has there. A batch that is cut at the
    /// end is left out.
    ///
    /// # Errors
    /// The batches do not continue the log or are corrupt; nothing was appended. Or the disk failed: then whole batches up
    /// to the log end may have been.
    pub fn append_as_follower(
        &mut self,
        bytes: &[u8],
        origin: Origin,
        now: Timestamp,
    ) -> Result<Appended, AppendError> {
        self.place.folder.admit(origin.purpose(), now)?;
        let mut headers = std::mem::take(&mut self.headers);
        headers.clear();
        let result = self.follow(bytes, origin, now, &mut headers);
        self.headers = headers;
        result
    }

    fn follow(
        &mut self,
        bytes: &[u8],
        origin: Origin,
        now: Timestamp,
        headers: &mut Vec<BatchHeader>,
    ) -> Result<Appended, AppendError> {
        let mut log_end = self.log_end;
        for batch in batches(bytes) {
            let batch = match batch {
                Err(BatchError::Incomplete { .. }) => break,
                batch => batch?,
            };
            batch.verify_crc()?;
            if batch.header.base_offset < log_end {
                return Err(AppendError::OffsetsOutOfOrder { offset: batch.header.base_offset, log_end });
            }
            self.check_epoch(batch.header.leader_epoch)?;
            log_end = batch.header.next_offset();
            headers.push(batch.header);
        }
        let base_offset = headers.first().map_or(log_end, |header| header.base_offset);
        self.write_in_segments(bytes, headers, now, origin.purpose())?;
        let last_offset = log_end.plus(-1);
        Ok(Appended {
            base_offset,
            last_offset,
            log_append_time: None,
            duplicate_of: None,
            log_start: self.log_start,
            leader_epoch: self.latest_epoch().unwrap_or(LeaderEpoch::NONE),
        })
    }

    /// Writes as many batches at once as a segment takes.
    fn write_in_segments(
        &mut self,
        bytes: &[u8],
        headers: &[BatchHeader],
        now: Timestamp,
        purpose: Purpose,
    ) -> Result<(), AppendError> {
        let (mut bytes, mut headers) = (bytes, headers);
        while let Some(first) = headers.first() {
            let (mut count, mut size) = (1, first.size());
            for header in headers.iter().skip(1) {
                if (size + header.size()) as u64 > self.config.segment_bytes {
                    break;
                }
                (count, size) = (count + 1, size + header.size());
            }
            let (run, rest) =
                bytes.split_at_checked(size).ok_or(BatchError::Incomplete { needed: size, there: 0 })?;
            let (now_headers, later) = headers.split_at(count);
            self.write(Bytes::copy_from_slice(run), now_headers, now, purpose)?;
            (bytes, headers) = (rest, later);
        }
        Ok(())
    }

    /// Writes batches that have their offsets, and takes note of them.
    fn write(
        &mut self,
        bytes: Bytes,
        headers: &[BatchHeader],
        now: Timestamp,
        purpose: Purpose,
    ) -> Result<(), StorageError> {
        let (Some(first), Some(last)) = (headers.first(), headers.last()) else { return Ok(()) };
        let end = last.next_offset();
        assert!(first.base_offset >= self.log_end && end > first.base_offset, "offsets only grow");
        self.finish_cut()?;
        if self.must_roll(bytes.len() as u64, headers, now)? {
            self.roll(last.last_offset(), now)?;
        }
        self.note_epochs(headers)?;
        let interval_bytes = self.config.index_interval_bytes;
        let active = self.segments.last_mut().expect("a log has an active segment");
        active.append(&self.place, &bytes, headers, interval_bytes, purpose)?;
        for batch in batches(&bytes).map_while(Result::ok) {
            self.producers.apply(&batch);
        }
        self.log_end = end;
        self.tail.push(first.base_offset, end, bytes);
        Ok(())
    }

    /// Epochs that begin with these batches. They are noted first: an epoch that begins at the log end is true also where
    /// the write fails.
    fn note_epochs(&mut self, headers: &[BatchHeader]) -> Result<(), StorageError> {
        let mut changed = self.epochs_unwritten;
        for header in headers {
            changed |= self.epochs.assign(header.leader_epoch, header.base_offset);
        }
        if changed { self.write_epochs() } else { Ok(()) }
    }

    fn must_roll(
        &mut self,
        size: u64,
        headers: &[BatchHeader],
        now: Timestamp,
    ) -> Result<bool, StorageError> {
        let (config, place) = (&self.config, &self.place);
        let Some(active) = self.segments.last_mut().filter(|active| active.size > 0) else {
            return Ok(false);
        };
        let too_large = active.size + size > config.segment_bytes.min(i32::MAX as u64);
        let too_far =
            headers.last().is_some_and(|last| relative(active.base_offset, last.last_offset()).is_none());
        if too_large || too_far {
            return Ok(true);
        }
        let interval_bytes = config.index_interval_bytes;
        let age_ms = match active.first_timestamp(place, interval_bytes)? {
            Some(first) => headers.iter().map(|header| header.max_timestamp.0.saturating_sub(first.0)).max(),
            None => Some(now.0.saturating_sub(active.created.0)),
        };
        let age_max_ms = config.segment_ms.saturating_sub(jitter_ms(config, &self.topic_partition, active));
        Ok(age_ms.is_some_and(|age_ms| age_ms > age_max_ms)
            || active.indexes_are_full(place, config.segment_index_bytes, interval_bytes)?)
    }

    /// Closes the active segment and begins the next at the log end, or as near to it as lets `last` be counted from there.
    pub(super) fn roll(&mut self, last: Offset, now: Timestamp) -> Result<(), StorageError> {
        self.settle_checkpoint();
        let base_offset = self.log_end.max(last.plus(-i64::from(i32::MAX)));
        let active = self.segments.last_mut().expect("a log has an active segment");
        // What needs space comes first: a segment that was not begun after all must not be found by the next start.
        self.unsynced.extend(active.complete_indexes(&self.place)?);
        let file = active.file(&self.place)?;
        let next = Segment::create(&self.place, base_offset, now)?;
        if self.flushed_end < self.log_end {
            self.unsynced.push(file);
        }
        active.deactivate(&self.place);
        self.segments.push(next);
        self.names_changed();
        // Without it the producers are read from the segment.
        let snapshot = unless_full(self.write_snapshot(base_offset))?;
        self.unsynced.extend(snapshot);
        tracing::debug!(
            topic = self.topic_partition.topic.as_str(),
            partition = self.topic_partition.partition,
            offset = base_offset.0,
            "log rolled"
        );
        Ok(())
    }
}

/// How much earlier a segment is closed than `segment.ms` says; the same in every life of the log.
fn jitter_ms(config: &LogConfig, topic_partition: &TopicPartition, segment: &Segment) -> i64 {
    let bound = config.segment_jitter_ms.min(config.segment_ms).max(0) as u64;
    let hash = BuildHasherDefault::<FixedHasher>::default().hash_one((topic_partition, segment.base_offset));
    if bound == 0 { 0 } else { (hash % bound) as i64 }
}

/// Gives the batches their offsets from `base_offset` on, the epoch, and the time. Gives back the end, exclusive.
fn stamp(
    bytes: &mut [u8],
    headers: &mut [BatchHeader],
    base_offset: Offset,
    epoch: LeaderEpoch,
    log_append_time: Option<Timestamp>,
) -> Result<Offset, AppendError> {
    let mut next = base_offset;
    let mut rest = bytes;
    for header in headers {
        let (batch, others) = rest
            .split_at_mut_checked(header.size())
            .ok_or(BatchError::Incomplete { needed: header.size(), there: 0 })?;
        next.0.checked_add(i64::from(header.last_offset_delta) + 1).ok_or(AppendError::OffsetsExhausted)?;
        set_base_offset(batch, next);
        set_leader_epoch(batch, epoch);
        if let Some(now) = log_append_time {
            set_log_append_time(batch, now);
        }
        *header = BatchHeader::parse(batch)?;
        next = header.next_offset();
        rest = others;
    }
    Ok(next)
}
