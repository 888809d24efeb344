//! Offsets by time.
//!
//! A search reads indexes, walks over headers and decompresses a batch, so it is handed out as a job that sees the log as
//! it was at that moment, and needs no lock of its owner's.
//!
//! Invariant: what is appended meanwhile is not looked at, and a segment that is deleted meanwhile is passed over. After a
//! truncation, which only another leader can cause, what a search found counts for nothing.
//!
//! Kafka: `UnifiedLog.fetchOffsetByTimestamp`, `LogSegment.findOffsetByTimestamp`; KIP-33, KIP-734.

use std::io;
use std::sync::Arc;

use env::{File, Open};
use model::{LeaderEpoch, Limits, Offset, Timestamp};
use protocol::batch::{Batch, Record};

use super::Log;
use crate::StorageError;
use crate::names::FileKind;
use crate::scan::{LOOK_BYTES, Scan, ScanError, WALK_BYTES};
use crate::segment::{Place, Segment, read_indexes, read_last_time};

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

/// A search to be run where it may block.
pub struct TimeSearch {
    place: Place,
    log_start: Offset,
    /// The earliest timestamp that will do; none asks for the latest that there is.
    from: Option<Timestamp>,
    /// Those that may hold it, by base offset.
    segments: Vec<Searched>,
}

/// What a search knows of a segment before it reads anything.
struct Searched {
    base_offset: Offset,
    size: u64,
    latest: Option<Timestamp>,
    /// Where in the log file to begin.
    start: Option<u64>,
    /// The log file of the active one.
    file: Option<Arc<dyn File>>,
}

impl Log {
    /// The search for the first record, by offset, whose timestamp is `timestamp` or later.
    ///
    /// # Errors
    /// The folder is offline.
    pub fn offset_for_timestamp(&self, timestamp: Timestamp) -> Result<TimeSearch, StorageError> {
        self.search(Some(timestamp))
    }

    /// The search for the record with the latest timestamp; the first of them, by offset, where several have it.
    ///
    /// # Errors
    /// The folder is offline.
    pub fn max_timestamp(&self) -> Result<TimeSearch, StorageError> {
        self.search(None)
    }

    fn search(&self, from: Option<Timestamp>) -> Result<TimeSearch, StorageError> {
        self.place.folder.check()?;
        if let Some(active) = self.segments.last() {
            // Its files need not have all yet; and the next append asks for them too.
            active.indexes(&self.place, self.config.index_interval_bytes)?;
        }
        let segments = self.segments.iter().map(|segment| Searched::new(segment, from));
        let segments = segments.filter(|segment| segment.latest.is_none_or(|latest| Some(latest) >= from));
        let segments = segments.collect();
        Ok(TimeSearch { place: self.place.clone(), log_start: self.log_start, from, segments })
    }
}

impl TimeSearch {
    /// Whether it is over before it began: nothing is as late.
    pub fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// What was found.
    ///
    /// # Errors
    /// A file cannot be read or understood.
    pub fn run(&self) -> Result<Option<TimestampOffset>, StorageError> {
        match self.from {
            Some(timestamp) => self.first(timestamp),
            None => self.latest(),
        }
    }

    fn first(&self, timestamp: Timestamp) -> Result<Option<TimestampOffset>, StorageError> {
        for segment in &self.segments {
            if segment.latest(&self.place)? < timestamp {
                continue;
            }
            let found = self.first_in(segment, timestamp)?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    fn latest(&self) -> Result<Option<TimestampOffset>, StorageError> {
        let mut latest = Timestamp::NONE;
        let mut holder = None;
        for segment in &self.segments {
            let here = segment.latest(&self.place)?;
            if here > latest {
                (latest, holder) = (here, Some(segment));
            }
        }
        holder.map_or(Ok(None), |segment| self.first_in(segment, latest))
    }

    /// The first record of `timestamp` or later in a segment.
    fn first_in(
        &self,
        segment: &Searched,
        timestamp: Timestamp,
    ) -> Result<Option<TimestampOffset>, StorageError> {
        let Some(file) = segment.open(&self.place)? else { return Ok(None) };
        let start = segment.start(&self.place, timestamp)?;
        let mut scan = Scan::new(&*file, start, segment.size, LOOK_BYTES);
        let base = segment.base_offset;
        while let Some((position, header)) = self.place.scanned(base, scan.next_header())? {
            if header.max_timestamp < timestamp || header.last_offset() < self.log_start {
                continue;
            }
            let mut whole = Scan::new(&*file, position, segment.size, header.size());
            let Some((_, batch)) = self.place.scanned(base, whole.next_batch())? else { continue };
            let wanted =
                |record: &Record<'_>| record.offset >= self.log_start && record.timestamp >= timestamp;
            let found = self.place.scanned(base, first_record(&batch, wanted))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }
}

impl Searched {
    fn new(segment: &Segment, from: Option<Timestamp>) -> Self {
        let latest = segment.known_latest();
        Self {
            base_offset: segment.base_offset,
            size: segment.size,
            latest,
            // Who asks for the latest of all begins at the latest of the segment that has it.
            start: from.or(latest).and_then(|timestamp| segment.known_position(timestamp)),
            file: segment.active_file(),
        }
    }

    /// The log file; none where the segment was deleted meanwhile.
    fn open(&self, place: &Place) -> Result<Option<Arc<dyn File>>, StorageError> {
        if self.file.is_some() {
            return Ok(self.file.clone());
        }
        let path = place.file(FileKind::Log, self.base_offset);
        match place.folder.disk.open(&path, Open::Read) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            opened => place.folder.checked(&path, opened).map(Some),
        }
    }

    fn latest(&self, place: &Place) -> Result<Timestamp, StorageError> {
        let known = self.latest.or_else(|| Some(read_last_time(place, self.base_offset)?.0));
        match known {
            Some(latest) => Ok(latest),
            None => match self.open(place)? {
                Some(file) => place.scanned(self.base_offset, self.latest_in(&*file)),
                None => Ok(Timestamp::NONE),
            },
        }
    }

    fn latest_in(&self, file: &dyn File) -> Result<Timestamp, ScanError> {
        let mut scan = Scan::new(file, 0, self.size, WALK_BYTES);
        let mut latest = Timestamp::NONE;
        while let Some((_, header)) = scan.next_header()? {
            latest = latest.max(header.max_timestamp);
        }
        Ok(latest)
    }

    /// Without indexes, all of it is looked at.
    fn start(&self, place: &Place, timestamp: Timestamp) -> Result<u64, StorageError> {
        if let Some(start) = self.start {
            return Ok(start);
        }
        let indexes = read_indexes(place, self.base_offset, self.size)?;
        Ok(indexes.map_or(0, |indexes| indexes.position(timestamp)))
    }
}

fn first_record(
    batch: &Batch<'_>,
    wanted: impl Fn(&Record<'_>) -> bool,
) -> Result<Option<TimestampOffset>, ScanError> {
    for record in &batch.records(Limits::DECOMPRESSED_BYTES_MAX).map_err(ScanError::Batch)? {
        let record = record.map_err(ScanError::Batch)?;
        if wanted(&record) {
            let (timestamp, offset) = (record.timestamp, record.offset);
            let leader_epoch = batch.header.leader_epoch;
            return Ok(Some(TimestampOffset { timestamp, offset, leader_epoch }));
        }
    }
    Ok(None)
}
