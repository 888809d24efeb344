//! Offsets by time.
//!
//! Kafka: `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`; KIP-33, KIP-734.

use model::{LeaderEpoch, Limits, Offset, Timestamp};
use protocol::batch::{Batch, Record};

use super::Log;
use crate::StorageError;
use crate::scan::{LOOK_BYTES, Scan, ScanError};
use crate::segment::Segment;

/// A record's time and place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimestampOffset {
    /// Its timestamp.
    pub timestamp: Timestamp,
    /// Its offset.
    pub offset: Offset,
    /// The leader epoch that wrote it.
    pub leader_epoch: LeaderEpoch,
}

impl Log {
    /// The first record, by offset, whose timestamp is `timestamp` or later.
    pub fn offset_for_timestamp(
        &self,
        timestamp: Timestamp,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        self.place.folder.check()?;
        let interval_bytes = self.config.index_interval_bytes;
        for segment in &self.segments {
            if segment.latest(&self.place, interval_bytes)?.0 < timestamp {
                continue;
            }
            let found = self.first_record(segment, timestamp, |record| record.timestamp >= timestamp)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The record with the latest timestamp; the first of them, by offset, where several have it.
    pub fn max_timestamp(&self) -> Result<Option<TimestampOffset>, StorageError> {
        self.place.folder.check()?;
        let mut latest = Timestamp::NONE;
        let mut holder = None;
        for segment in &self.segments {
            let here = segment.latest(&self.place, self.config.index_interval_bytes)?.0;
            if here > latest {
                (latest, holder) = (here, Some(segment));
            }
        }
        holder.map_or(Ok(None), |segment| {
            self.first_record(segment, latest, |record| record.timestamp >= latest)
        })
    }

    /// The first record that is `wanted` among the batches that hold `timestamp` or later.
    fn first_record(
        &self,
        segment: &Segment,
        timestamp: Timestamp,
        wanted: impl Fn(&Record<'_>) -> bool,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let indexes = segment.indexes(&self.place, self.config.index_interval_bytes)?;
        let start = indexes.offsets.position(indexes.times.offset(timestamp));
        let file = segment.file(&self.place)?;
        let mut scan = Scan::new(&*file, u64::from(start), segment.size, LOOK_BYTES);
        let base = segment.base_offset;
        while let Some((position, header)) = self.place.scanned(base, scan.next_header())? {
            if header.max_timestamp < timestamp || header.last_offset() < self.log_start {
                continue;
            }
            let mut whole = Scan::new(&*file, position, segment.size, header.size());
            let Some((_, batch)) = self.place.scanned(base, whole.next_batch())? else { continue };
            let found = self.place.scanned(base, self.record_in(&batch, &wanted))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn record_in(
        &self,
        batch: &Batch<'_>,
        wanted: impl Fn(&Record<'_>) -> bool,
    ) -> Result<Option<TimestampOffset>, ScanError> {
        for record in &batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(ScanError::Batch)? {
            let record = record.map_err(ScanError::Batch)?;
            if record.offset >= self.log_start && wanted(&record) {
                let (timestamp, offset) = (record.timestamp, record.offset);
                return Ok(Some(TimestampOffset {
                    timestamp,
                    offset,
                    leader_epoch: batch.header.leader_epoch,
                }));
            }
        }
        Ok(None)
    }
}
