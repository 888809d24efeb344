//! Opening a log: what a stop, a kill or a power cut left is made whole again.
//!
//! Below the recovery point everything was on disk before it was counted; only what lies behind it is read and checked,
//! batch by batch, and the log is cut before the first that is not whole, does not fit its CRC, or leaves a hole. What was
//! kept counts as flushed only after it was written again and flushed: the first flush job covers it.
//!
//! Kafka: `LogLoader`, `UnifiedLog.rebuildProducerState`; KAFKA-10471, KAFKA-10101.

use std::path::Path;
use std::sync::Arc;

use env::Entry;
use model::{Offset, Timestamp, TopicId, TopicPartition};
use protocol::batch::BatchHeader;

use super::Log;
use super::flush::{EpochFile, Unsynced};
use super::removal::Removals;
use crate::epochs::{self, LeaderEpochs};
use crate::error::unless_full;
use crate::folder_state::FolderState;
use crate::names::{FileKind, SegmentFile, Suffix};
use crate::producers::Producers;
use crate::scan::{Scan, WALK_BYTES};
use crate::segment::{Place, Segment};
use crate::tail::Tail;
use crate::{LogConfig, StorageError, partition_metadata, snapshot};

/// How long after its last batch a producer may still repeat one that it had in flight.
const RETRIES_MS: i64 = 900_000;
/// Bytes before a producer snapshot in which the batches are looked for that it does not have.
const WINDOWS_BYTES: u64 = 1 << 20;

/// What the log folder knows of a log before it is opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opening {
    /// There is no such folder yet.
    pub(crate) is_new: bool,
    /// The topic's id as the folder says it, where it was read already.
    pub(crate) topic_id: Option<TopicId>,
    /// Everything below it was on disk.
    pub(crate) recovery_point: Offset,
    /// As it was checkpointed; 0 if it was not.
    pub(crate) log_start: Offset,
    /// All logs of the folder were closed in order.
    pub(crate) was_clean: bool,
    pub(crate) now: Timestamp,
}

impl Log {
    /// Opens the log in its folder, which is made if it is not there.
    pub(crate) fn open(
        folder: Arc<FolderState>,
        topic_partition: &TopicPartition,
        topic_id: TopicId,
        config: LogConfig,
        opening: Opening,
    ) -> Result<Self, StorageError> {
        folder.check()?;
        let path = folder.path.join(topic_partition.to_string());
        let seat = folder.seat(&path)?;
        if opening.is_new {
            folder.with_reserve(&path, || folder.disk.create_dir_all(&path))?;
        }
        let place = Place { folder, path };
        let Found { segments, snapshots, has_epochs } = found_files(&place, opening.now)?;
        let mut log = Self {
            topic_partition: topic_partition.clone(),
            topic_id,
            config,
            segments,
            log_start: opening.log_start,
            log_end: opening.log_start,
            flushed_end: Offset(0),
            truncations: 0,
            epochs: LeaderEpochs::default(),
            epoch_file: EpochFile::new(&place),
            unfinished_cut: None,
            epochs_unwritten: false,
            producers: Producers::default(),
            snapshots,
            turn: Arc::default(),
            handed_out: None,
            removals: Removals::new(&place),
            tail: Tail::new(place.folder.tail.clone()),
            unsynced: Unsynced::default(),
            names_unsynced: opening.is_new,
            headers: Vec::new(),
            _seat: seat,
            place,
        };
        log.recover(opening, has_epochs)?;
        // The last step: a folder without it was left by a process that was killed, or that found no space.
        if log.settle_topic_id(opening.topic_id)? || opening.is_new {
            let parent = log.epoch_file.parent_names(&log.place.folder.path);
            log.unsynced.push(parent);
        }
        Ok(log)
    }

    fn recover(&mut self, opening: Opening, has_epochs: bool) -> Result<(), StorageError> {
        let mut seen = Vec::new();
        if self.segments.is_empty() {
            self.segments.push(Segment::create(&self.place, opening.log_start, opening.now)?);
            self.names_changed();
        } else if let Some(log_end) = self.log_end_after_clean_stop(opening) {
            self.log_end = log_end;
        } else {
            self.recover_segments(opening, &mut seen)?;
        }
        let first = self.segments.first().map_or(Offset(0), |first| first.base_offset);
        self.log_start = opening.log_start.max(first);
        if self.log_start > self.log_end {
            return self.truncate_fully_and_start_at(self.log_start, opening.now);
        }
        let active = self.segments.last_mut().expect("one was found or made");
        active.activate(&self.place)?;
        let active_base = active.base_offset;
        let flushed = if opening.was_clean { self.log_end } else { opening.recovery_point };
        self.flushed_end = flushed.clamp(self.log_start, self.log_end);
        self.unflushed_files()?;
        self.load_epochs(&seen, has_epochs)?;
        let newest_name = self.epochs.latest_start().map_or(active_base, |start| start.max(active_base));
        self.names_unsynced |= !opening.was_clean && opening.recovery_point <= newest_name;
        if self.snapshots.last().is_some_and(|last| *last > self.log_end) {
            // They must not come back when the log has grown again to where they are.
            self.remove_snapshots(|snapshot, log_end| snapshot > log_end)?;
            self.sync_names()?;
        }
        self.remove_stray_snapshots()?;
        self.reload_producers(opening.now)
    }

    /// Where a log ends that was closed in order, by its checkpoint and its newest producer snapshot, if they agree: then
    /// none of its batches need be read.
    fn log_end_after_clean_stop(&self, opening: Opening) -> Option<Offset> {
        let (active, log_end) = (self.segments.last()?, opening.recovery_point);
        let agree = self.snapshots.last() == Some(&log_end)
            && (active.size == 0 && active.base_offset == log_end
                || active.size > 0 && active.base_offset < log_end);
        (opening.was_clean && agree).then_some(log_end)
    }

    /// Checks the segments that reach beyond the recovery point, and the last one; collects where epochs begin in them.
    fn recover_segments(
        &mut self,
        opening: Opening,
        seen: &mut Vec<BatchHeader>,
    ) -> Result<(), StorageError> {
        let trusted = if opening.was_clean { Offset(i64::MAX) } else { opening.recovery_point };
        let interval_bytes = self.config.index_interval_bytes;
        let count = self.segments.len();
        for index in 0..count {
            let next_base = self.segments.get(index + 1).map(|next| next.base_offset);
            if next_base.is_some_and(|next| opening.was_clean || next < trusted) {
                continue;
            }
            let Some(segment) = self.segments.get_mut(index) else { break };
            let note = |batch: &protocol::batch::Batch<'_>| note_epoch(seen, &batch.header);
            let checked = segment.recover(&self.place, &opening, interval_bytes, note)?;
            self.log_end = checked.next_offset;
            let is_cut = checked.valid_bytes < segment.size;
            if is_cut {
                segment.cut(&self.place, checked.valid_bytes)?;
            }
            let leaves_a_hole = next_base.is_some_and(|next| next > trusted && checked.next_offset < next);
            let is_last = is_cut || leaves_a_hole || next_base.is_some_and(|next| checked.next_offset > next);
            if is_last {
                self.report_cut(index);
                self.remove_segments_behind(index)?;
            }
            if !opening.was_clean {
                self.rewrite(index, opening.recovery_point)?;
            }
            if is_last {
                break;
            }
        }
        Ok(())
    }

    fn report_cut(&self, index: usize) {
        tracing::warn!(
            topic = self.topic_partition.topic.as_str(),
            partition = self.topic_partition.partition,
            offset = self.log_end.0,
            segments_removed = self.segments.len() - index - 1,
            "log recovered up to its last whole batch"
        );
    }

    fn remove_segments_behind(&mut self, index: usize) -> Result<(), StorageError> {
        while self.segments.len() > index + 1 {
            if let Some(segment) = self.segments.pop() {
                segment.remove(&self.place)?;
            }
        }
        self.sync_names()
    }

    /// The epochs of the file, and those that begin in what was read; all are read again where the file is not true.
    fn load_epochs(&mut self, seen: &[BatchHeader], has_file: bool) -> Result<(), StorageError> {
        let path = self.place.path.join(epochs::FILE);
        let bytes = if has_file { self.place.folder.read_file(&path)? } else { None };
        let stored = bytes.as_deref().map(LeaderEpochs::parse);
        self.epochs = match &stored {
            Some(Ok(epochs)) => epochs.clone(),
            Some(Err(error)) => {
                tracing::warn!(path = %path.display(), error, "leader epochs are read from the log again");
                self.read_epochs()?
            }
            None => self.read_epochs()?,
        };
        // Epochs are cut below the log start before that is checkpointed.
        if self.log_start < self.log_end && self.epochs.at(self.log_start).is_none() {
            self.epochs = self.read_epochs()?;
        }
        self.epochs.truncate_end(self.log_end);
        for header in seen {
            if self.epochs.at(header.base_offset) != Some(header.leader_epoch) {
                self.epochs.assign(header.leader_epoch, header.base_offset);
            }
        }
        let is_true = match &stored {
            Some(stored) => stored.as_ref() == Ok(&self.epochs),
            None => self.epochs == LeaderEpochs::default(),
        };
        let is_cut = self.epochs.truncate_start(self.log_start);
        match (is_true, is_cut) {
            (true, false) => Ok(()),
            // A file that says more does no harm.
            (true, true) => unless_full(self.write_epochs()),
            (false, _) => self.write_epochs(),
        }
    }

    fn read_epochs(&self) -> Result<LeaderEpochs, StorageError> {
        let mut epochs = LeaderEpochs::default();
        self.each_header(Offset(0), |header, _| {
            epochs.assign(header.leader_epoch, header.base_offset);
            Ok(())
        })?;
        Ok(epochs)
    }

    /// Calls `visit` for the header of each batch that reaches to `from` or beyond, with a way to its whole bytes.
    fn each_header(
        &self,
        from: Offset,
        mut visit: impl FnMut(&BatchHeader, (&Segment, u64)) -> Result<(), StorageError>,
    ) -> Result<(), StorageError> {
        if from >= self.log_end {
            return Ok(());
        }
        let interval_bytes = self.config.index_interval_bytes;
        for segment in self.segments.iter().skip(self.segment_of(from)) {
            let Some((start, _)) = segment.find(&self.place, from, interval_bytes)? else { continue };
            let file = segment.file(&self.place)?;
            let mut scan = Scan::new(&*file, start, segment.size, WALK_BYTES);
            while let Some((position, header)) =
                self.place.scanned(segment.base_offset, scan.next_header())?
            {
                visit(&header, (segment, position))?;
            }
        }
        Ok(())
    }

    /// The producers of the newest snapshot that is true, and of the batches behind it.
    pub(super) fn reload_producers(&mut self, now: Timestamp) -> Result<(), StorageError> {
        let (mut producers, from) = self.newest_snapshot()?;
        let is_recent = |last: Timestamp| now.0.saturating_sub(last.0) < RETRIES_MS;
        if producers.last_timestamp().is_some_and(is_recent) {
            producers.complete_windows(self.headers_before(from)?.iter());
        }
        self.each_header(from, |header, (segment, position)| {
            if header.is_control() && header.has_producer() {
                let file = segment.file(&self.place)?;
                let mut scan = Scan::new(&*file, position, segment.size, header.size());
                if let Some((_, batch)) = self.place.scanned(segment.base_offset, scan.next_batch())? {
                    producers.apply(&batch);
                }
            } else {
                producers.apply_data(header);
            }
            Ok(())
        })?;
        producers.expire(now, self.config.producer_id_expiration_ms);
        self.producers = producers;
        Ok(())
    }

    /// The last batches below `end`, in order, as many as are in [`WINDOWS_BYTES`].
    fn headers_before(&self, end: Offset) -> Result<Vec<BatchHeader>, StorageError> {
        let (mut all, mut bytes_left) = (Vec::new(), WINDOWS_BYTES);
        let below = self.segments.iter().rev().skip_while(|segment| segment.base_offset >= end);
        for segment in below.take_while(|segment| segment.size > 0) {
            let (mut headers, bytes) = self.last_headers(segment, end, bytes_left)?;
            headers.append(&mut all);
            all = headers;
            bytes_left = bytes_left.saturating_sub(bytes);
            if bytes_left == 0 {
                break;
            }
        }
        Ok(all)
    }

    /// The last batches of a segment below `end` in about so many bytes, and in how many they are.
    fn last_headers(
        &self,
        segment: &Segment,
        end: Offset,
        bytes: u64,
    ) -> Result<(Vec<BatchHeader>, u64), StorageError> {
        let interval_bytes = self.config.index_interval_bytes;
        let stop =
            segment.find(&self.place, end, interval_bytes)?.map_or(segment.size, |(position, _)| position);
        let indexes = segment.indexes(&self.place, interval_bytes)?;
        let start = u64::from(indexes.offsets.position_before(stop.saturating_sub(bytes)));
        let file = segment.file(&self.place)?;
        let (mut scan, mut headers) = (Scan::new(&*file, start, stop, WALK_BYTES), Vec::new());
        while let Some((_, header)) = self.place.scanned(segment.base_offset, scan.next_header())? {
            headers.push(header);
        }
        Ok((headers, stop - start))
    }

    fn newest_snapshot(&mut self) -> Result<(Producers, Offset), StorageError> {
        if self.log_end == Offset(0) {
            return Ok((Producers::default(), Offset(0)));
        }
        while let Some(offset) = self.snapshots.last().copied() {
            let path = self.place.file(FileKind::ProducerSnapshot, offset);
            let bytes = self.place.folder.read_file(&path)?.unwrap_or_default();
            match snapshot::parse(&bytes) {
                Ok(producers) => return Ok((producers, offset)),
                Err(error) => tracing::warn!(path = %path.display(), error, "producer snapshot is not used"),
            }
            self.snapshots.pop();
            self.place.folder.remove_file(&path)?;
        }
        Ok((Producers::default(), Offset(0)))
    }

    /// Compares the topic's id with the folder's; writes it where the folder has none, and gives back whether it did.
    fn settle_topic_id(&mut self, found: Option<TopicId>) -> Result<bool, StorageError> {
        let path = self.place.path.join(partition_metadata::FILE);
        let found = match found {
            Some(found) => Some(Ok(found)),
            None => self.place.folder.read_file(&path)?.as_deref().map(partition_metadata::parse),
        };
        match found {
            Some(Ok(found)) if self.topic_id.is_zero() => self.topic_id = found,
            Some(Ok(found)) if found != self.topic_id => {
                return Err(StorageError::InconsistentTopicId { path, found, expected: self.topic_id });
            }
            Some(Ok(_)) => {}
            Some(Err(_)) | None if self.topic_id.is_zero() => {}
            Some(Err(_)) | None => {
                let text = partition_metadata::encode(self.topic_id);
                self.unsynced.push(self.place.folder.write_file(&path, text.as_bytes())?);
                self.names_changed();
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Keeps the header where its epoch is another than the last one's.
fn note_epoch(seen: &mut Vec<BatchHeader>, header: &BatchHeader) {
    if seen.last().is_none_or(|last| last.leader_epoch != header.leader_epoch) {
        seen.push(*header);
    }
}

/// What lies in a partition's folder.
struct Found {
    segments: Vec<Segment>,
    /// The offsets of the producer snapshots.
    snapshots: Vec<Offset>,
    has_epochs: bool,
}

/// Lists a partition's folder, after cut-off steps were ended.
fn found_files(place: &Place, now: Timestamp) -> Result<Found, StorageError> {
    let mut entries = list(place)?;
    if end_swaps(place, &entries)? {
        entries = list(place)?;
    }
    let logs: Vec<Offset> = of_kind(&entries, FileKind::Log, None).collect();
    for (name, file) in parsed(&entries) {
        let is_orphan = match file.kind {
            FileKind::Log | FileKind::ProducerSnapshot => false,
            _ => logs.binary_search(&file.base_offset).is_err(),
        };
        if file.suffix.is_some() || is_orphan {
            place.folder.remove_file(&place.path.join(name))?;
        }
    }
    for entry in entries.iter().filter(|entry| !entry.is_dir && is_temporary(&entry.name)) {
        place.folder.remove_file(&place.path.join(&entry.name))?;
    }
    let segment =
        |base| Ok(Segment::found(place, base, length(place, &place.file(FileKind::Log, base))?, now));
    Ok(Found {
        segments: logs.into_iter().map(segment).collect::<Result<_, _>>()?,
        snapshots: of_kind(&entries, FileKind::ProducerSnapshot, None).collect(),
        has_epochs: entries.iter().any(|entry| entry.name == epochs::FILE),
    })
}

fn length(place: &Place, path: &Path) -> Result<u64, StorageError> {
    place.folder.checked(path, place.folder.disk.length(path))
}

fn list(place: &Place) -> Result<Vec<Entry>, StorageError> {
    place.folder.checked(&place.path, place.folder.disk.list(&place.path))
}

fn is_temporary(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "tmp")
}

fn parsed(entries: &[Entry]) -> impl Iterator<Item = (&str, SegmentFile)> {
    let files = entries.iter().filter(|entry| !entry.is_dir);
    files.filter_map(|entry| Some((entry.name.as_str(), SegmentFile::parse(&entry.name)?)))
}

/// The base offsets of the files of one kind, growing: names are sorted, and as long as each other.
fn of_kind(entries: &[Entry], kind: FileKind, suffix: Option<Suffix>) -> impl Iterator<Item = Offset> {
    parsed(entries)
        .filter(move |(_, file)| file.kind == kind && file.suffix == suffix)
        .map(|(_, file)| file.base_offset)
}

/// Ends the compaction that was cut off while its result took the place of the old segments.
///
/// A `.swap` is complete, unless a `.cleaned` says that its step was not over: then the old segments are still there.
/// Whether there was anything to end.
fn end_swaps(place: &Place, entries: &[Entry]) -> Result<bool, StorageError> {
    if !parsed(entries).any(|(_, file)| file.suffix == Some(Suffix::Swap)) {
        return Ok(false);
    }
    let first_cleaned = of_kind(entries, FileKind::Log, Some(Suffix::Cleaned)).min();
    let is_complete = |base: Offset| first_cleaned.is_none_or(|cleaned| base < cleaned);
    for base in of_kind(entries, FileKind::Log, Some(Suffix::Swap)).filter(|base| is_complete(*base)) {
        let end = swap_end(place, base)?;
        for (name, file) in parsed(entries) {
            let is_log = !matches!(file.kind, FileKind::ProducerSnapshot) && file.suffix.is_none();
            if is_log && file.base_offset >= base && file.base_offset < end {
                place.folder.remove_file(&place.path.join(name))?;
            }
        }
    }
    for (name, file) in parsed(entries) {
        if file.suffix == Some(Suffix::Swap) && is_complete(file.base_offset) {
            let (from, to) = (place.path.join(name), place.file(file.kind, file.base_offset));
            place.folder.checked(&from, place.folder.disk.rename(&from, &to))?;
        }
    }
    Ok(true)
}

/// The offset, exclusive, up to which a `.log.swap` reaches.
fn swap_end(place: &Place, base: Offset) -> Result<Offset, StorageError> {
    let mut path = place.file(FileKind::Log, base).into_os_string();
    path.push(".swap");
    let path = Path::new(&path);
    let file = place.folder.checked(path, place.folder.disk.open(path, env::Open::Read))?;
    let mut scan = Scan::new(&*file, 0, length(place, path)?, WALK_BYTES);
    let mut end = base.plus(1);
    while let Some((_, header)) = place.scanned(base, scan.next_header())? {
        end = header.next_offset();
    }
    Ok(end)
}
