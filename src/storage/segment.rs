//! One segment of a log: its log file and its two indexes.
//!
//! The newest segment is the active one; it keeps its file open, and its indexes are in memory as far as they go and on
//! disk as far as they were written. The files of closed segments are opened and their indexes read when they are asked
//! for.
//!
//! Kafka: `LogSegment`, `FileRecords`.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use env::{File, Open};
use model::{LeaderEpoch, Offset, Timestamp};
use protocol::batch::{Batch, BatchHeader};

use crate::StorageError;
use crate::folder_state::{FolderState, Purpose};
use crate::index::{OFFSET_ENTRY_BYTES, OffsetIndex, TIME_ENTRY_BYTES, TimeIndex, relative};
use crate::log::recover::Opening;
use crate::names::FileKind;
use crate::open_files::FileKey;
use crate::scan::{self, LOOK_BYTES, SWEEP_BYTES, Scan, ScanError, WALK_BYTES};

/// The folder of one partition, in its log folder.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) folder: Arc<FolderState>,
    pub(crate) path: PathBuf,
}

impl Place {
    pub(crate) fn file(&self, kind: FileKind, base_offset: Offset) -> PathBuf {
        kind.path(&self.path, base_offset)
    }

    /// What a scan's failure means; a batch that is not there is damage.
    pub(crate) fn scanned<T>(&self, base: Offset, result: Result<T, ScanError>) -> Result<T, StorageError> {
        let path = self.file(FileKind::Log, base);
        match result {
            Ok(value) => Ok(value),
            Err(ScanError::Io(error)) => self.folder.checked(&path, Err(error)),
            Err(ScanError::Batch(error)) => Err(StorageError::Damaged { path, what: error.to_string() }),
        }
    }
}

/// One segment.
pub(crate) struct Segment {
    pub(crate) base_offset: Offset,
    /// Bytes of the log file.
    pub(crate) size: u64,
    pub(crate) created: Timestamp,
    key: FileKey,
    active: Option<Arc<dyn File>>,
    indexes: OnceCell<Indexes>,
    /// Of a closed segment: what its indexes say of the latest timestamp, also when they are not in memory.
    latest: OnceCell<(Timestamp, Offset)>,
}

/// The indexes of a segment, and what else is known of the batches in it.
#[derive(Clone, Debug)]
pub(crate) struct Indexes {
    base_offset: Offset,
    pub(crate) offsets: OffsetIndex,
    pub(crate) times: TimeIndex,
    /// The latest timestamp, and the last offset of the first batch that has it.
    pub(crate) latest: (Timestamp, Offset),
    /// The latest timestamp of the first batch, where it is known: the segment's age counts from it.
    pub(crate) first_timestamp: Option<Timestamp>,
    bytes_since_entry: u64,
    /// How many entries of each are in the files.
    written: (usize, usize),
    /// The files are not there, or are not what is on disk.
    stale: bool,
    /// The files were written to, and nobody was told to flush them.
    unsynced: bool,
}

impl Indexes {
    fn new(base_offset: Offset) -> Self {
        Self {
            base_offset,
            offsets: OffsetIndex::default(),
            times: TimeIndex::default(),
            latest: (Timestamp::NONE, base_offset),
            first_timestamp: None,
            bytes_since_entry: 0,
            written: (0, 0),
            stale: true,
            unsynced: false,
        }
    }

    /// Takes note of a batch that lies at `position`.
    fn note(&mut self, position: u64, header: &BatchHeader, interval_bytes: u64) {
        if position == 0 {
            self.first_timestamp = Some(header.max_timestamp);
        }
        if header.max_timestamp > self.latest.0 {
            self.latest = (header.max_timestamp, header.last_offset());
        }
        if self.bytes_since_entry > interval_bytes {
            if let Some(offset) = relative(self.base_offset, header.last_offset()) {
                self.offsets.push(offset, position as u32);
            }
            self.push_time();
            self.bytes_since_entry = 0;
        }
        self.bytes_since_entry += header.size() as u64;
    }

    fn push_time(&mut self) {
        if let Some(offset) = relative(self.base_offset, self.latest.1) {
            self.times.push(self.latest.0, offset);
        }
    }

    /// Forgets what is said of `end` and later offsets.
    fn truncate(&mut self, end: Offset) {
        let relative =
            relative(self.base_offset, end).unwrap_or(if end < self.base_offset { 0 } else { u32::MAX });
        self.offsets.truncate(relative);
        self.times.truncate(relative);
        self.latest = match self.times.last() {
            Some((timestamp, offset)) => (timestamp, self.base_offset.plus(i64::from(offset))),
            None => (Timestamp::NONE, self.base_offset),
        };
        self.bytes_since_entry = 0;
        let left = (self.offsets.len(), self.times.len());
        self.stale |= self.written.0 > left.0 || self.written.1 > left.1;
        self.written = (self.written.0.min(left.0), self.written.1.min(left.1));
    }

    /// Where to begin to look for a record of `timestamp` or later.
    pub(crate) fn position(&self, timestamp: Timestamp) -> u64 {
        u64::from(self.offsets.position(self.times.offset(timestamp)))
    }

    /// Where the batch begins that the last entry of the offset index speaks of.
    fn last_position(&self) -> u64 {
        self.offsets.last().map_or(0, |entry| u64::from(entry.1))
    }
}

/// What the index files of a segment lack.
pub(crate) struct IndexTail {
    /// Each file, the position behind what is right in it, and what comes there.
    pieces: Vec<(PathBuf, usize, Vec<u8>)>,
    /// How many entries of each are in the files then.
    pub(crate) end: (usize, usize),
}

impl IndexTail {
    /// Writes it, and makes it the files' end.
    pub(crate) fn write(&self, place: &Place) -> Result<(), StorageError> {
        self.pieces.iter().try_for_each(|(path, position, bytes)| extend(place, path, *position, bytes))
    }
}

/// What a check of a segment's batches found.
pub(crate) struct Checked {
    /// The offset that comes next.
    pub(crate) next_offset: Offset,
    /// The last batch's leader epoch: they do not shrink.
    pub(crate) leader_epoch: LeaderEpoch,
    /// Bytes that are whole batches.
    pub(crate) valid_bytes: u64,
}

impl Segment {
    /// Makes the files of a new active segment.
    pub(crate) fn create(place: &Place, base_offset: Offset, now: Timestamp) -> Result<Self, StorageError> {
        for kind in [FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex] {
            place.folder.remove_file(&place.file(kind, base_offset))?;
        }
        let path = place.file(FileKind::Log, base_offset);
        let file = place.folder.with_reserve(&path, || place.folder.disk.open(&path, Open::Truncate))?;
        let segment = Self::found(place, base_offset, 0, now);
        let indexes = OnceCell::from(Indexes::new(base_offset));
        Ok(Self { active: Some(file), indexes, ..segment })
    }

    /// One that lies on the disk; nothing is read yet.
    pub(crate) fn found(place: &Place, base_offset: Offset, size: u64, created: Timestamp) -> Self {
        let key = place.folder.files.key();
        Self {
            base_offset,
            size,
            created,
            key,
            active: None,
            indexes: OnceCell::new(),
            latest: OnceCell::new(),
        }
    }

    /// The log file, open.
    pub(crate) fn file(&self, place: &Place) -> Result<Arc<dyn File>, StorageError> {
        if let Some(file) = &self.active {
            return Ok(file.clone());
        }
        let path = place.file(FileKind::Log, self.base_offset);
        let file = place.folder.files.get(self.key, || place.folder.disk.open(&path, Open::Write));
        place.folder.checked(&path, file)
    }

    /// The log file of the active segment; none of a closed one.
    pub(crate) fn active_file(&self) -> Option<Arc<dyn File>> {
        self.active.clone()
    }

    /// Makes it the active one.
    pub(crate) fn activate(&mut self, place: &Place) -> Result<(), StorageError> {
        let file = self.file(place)?;
        place.folder.files.close(self.key);
        self.active = Some(file);
        Ok(())
    }

    /// Writes batches at the end. After an error the file is as it was before, or the folder is offline.
    pub(crate) fn append(
        &mut self,
        place: &Place,
        bytes: &[u8],
        headers: &[BatchHeader],
        interval_bytes: u64,
        purpose: Purpose,
    ) -> Result<(), StorageError> {
        self.indexes(place, interval_bytes)?;
        let file = self.file(place)?;
        let path = place.file(FileKind::Log, self.base_offset);
        if let Err(error) = place.folder.write(&path, &*file, bytes, self.size, purpose) {
            self.undo(place, &*file)?;
            return Err(error);
        }
        let indexes = self.indexes.get_mut().expect("loaded above");
        for header in headers {
            indexes.note(self.size, header, interval_bytes);
            self.size += header.size() as u64;
        }
        Ok(())
    }

    /// Cuts off what a failed write left.
    fn undo(&self, place: &Place, file: &dyn File) -> Result<(), StorageError> {
        place.folder.check()?;
        let path = place.file(FileKind::Log, self.base_offset);
        file.set_len(self.size).map_err(|error| place.folder.fail(&path, &error))
    }

    /// The indexes, read from their files when they are asked for the first time, made anew where those cannot be true.
    pub(crate) fn indexes(&self, place: &Place, interval_bytes: u64) -> Result<&Indexes, StorageError> {
        if let Some(indexes) = self.indexes.get() {
            return Ok(indexes);
        }
        let mut indexes = read_indexes(place, self.base_offset, self.size)?
            .unwrap_or_else(|| Indexes::new(self.base_offset));
        if indexes.times.last().is_none() && self.size > 0 {
            let file = self.file(place)?;
            let scan = Scan::new(&*file, 0, self.size, WALK_BYTES);
            indexes = Indexes::new(self.base_offset);
            place.scanned(self.base_offset, note_all(&mut indexes, scan, interval_bytes))?;
        }
        Ok(self.indexes.get_or_init(|| indexes))
    }

    /// The latest timestamp, and the last offset of the first batch that has it. Of a closed segment the last entry of its
    /// time index says it.
    pub(crate) fn latest(
        &self,
        place: &Place,
        interval_bytes: u64,
    ) -> Result<(Timestamp, Offset), StorageError> {
        if let Some(latest) = self.indexes.get().map(|indexes| indexes.latest).or(self.latest.get().copied())
        {
            return Ok(latest);
        }
        let latest = match read_last_time(place, self.base_offset) {
            Some(latest) => latest,
            None => self.indexes(place, interval_bytes)?.latest,
        };
        Ok(*self.latest.get_or_init(|| latest))
    }

    /// The latest timestamp, where no file need be read for it.
    pub(crate) fn known_latest(&self) -> Option<Timestamp> {
        let loaded = self.indexes.get().map(|indexes| indexes.latest);
        loaded.or(self.latest.get().copied()).map(|latest| latest.0)
    }

    /// Where to begin to look for a record of `timestamp` or later, where no file need be read for it.
    pub(crate) fn known_position(&self, timestamp: Timestamp) -> Option<u64> {
        self.indexes.get().map(|indexes| indexes.position(timestamp))
    }

    /// Forgets the indexes of a closed segment: they are read again when they are needed. Gives back the files to flush.
    pub(crate) fn unload(&mut self, place: &Place) -> Result<Vec<Arc<dyn File>>, StorageError> {
        if self.active.is_some() {
            return Ok(Vec::new());
        }
        let files = self.unsynced_indexes(place)?;
        if let Some(indexes) = self.indexes.take() {
            self.latest = OnceCell::from(indexes.latest);
        }
        Ok(files)
    }

    /// Checks the batches behind what can be trusted, with their CRCs, and calls `visit` for each; completes the indexes.
    ///
    /// What the index files say of offsets below the recovery point was on disk before it was; the rest of the file is
    /// walked. After a clean stop everything was.
    pub(crate) fn recover(
        &mut self,
        place: &Place,
        &Opening { recovery_point, was_clean, .. }: &Opening,
        interval_bytes: u64,
        mut visit: impl FnMut(&Batch<'_>),
    ) -> Result<Checked, StorageError> {
        let file = self.file(place)?;
        let trusted = if was_clean { Offset(i64::MAX) } else { recovery_point };
        let mut indexes = self.trusted_indexes(place, &*file, trusted)?;
        if !was_clean {
            // Their files are from before the stop, and need not be on disk.
            (indexes.written, indexes.stale) = ((0, 0), true);
        }
        let start = indexes.last_position();
        let mut checked =
            Checked { next_offset: self.base_offset, leader_epoch: LeaderEpoch::NONE, valid_bytes: start };
        let mut scan = Scan::new(&*file, start, self.size, SWEEP_BYTES);
        loop {
            let (position, batch) = match scan.next_batch() {
                Ok(Some(next)) => next,
                Ok(None) | Err(ScanError::Batch(_)) => break,
                Err(error) => return place.scanned(self.base_offset, Err(error)),
            };
            let header = &batch.header;
            let fits = header.base_offset >= checked.next_offset
                && (header.leader_epoch >= checked.leader_epoch || header.leader_epoch == LeaderEpoch::NONE)
                && relative(self.base_offset, header.last_offset()).is_some();
            if !fits || batch.verify_crc().is_err() {
                break;
            }
            indexes.note(position, header, interval_bytes);
            visit(&batch);
            checked.next_offset = header.next_offset();
            checked.leader_epoch = checked.leader_epoch.max(header.leader_epoch);
            checked.valid_bytes = position + header.size() as u64;
        }
        self.indexes = OnceCell::from(indexes);
        Ok(checked)
    }

    /// Writes the batches from `from` on once more, where they lie.
    pub(crate) fn rewrite(
        &self,
        place: &Place,
        from: Offset,
        interval_bytes: u64,
    ) -> Result<(), StorageError> {
        let Some((mut position, _)) = self.find(place, from, interval_bytes)? else { return Ok(()) };
        let (file, path) = (self.file(place)?, place.file(FileKind::Log, self.base_offset));
        let mut piece = Vec::new();
        while position < self.size {
            piece.resize((self.size - position).min(SWEEP_BYTES as u64) as usize, 0);
            let read = scan::read_full(&*file, &mut piece, position);
            piece.truncate(place.folder.checked(&path, read)?);
            if piece.is_empty() {
                break;
            }
            place.folder.write(&path, &*file, &piece, position, Purpose::Upkeep)?;
            position += piece.len() as u64;
        }
        Ok(())
    }

    /// The indexes as far as they speak of offsets below `trusted`, where the last entry fits the log; else empty ones.
    fn trusted_indexes(
        &self,
        place: &Place,
        file: &dyn File,
        trusted: Offset,
    ) -> Result<Indexes, StorageError> {
        let found = if self.size > 0 { read_indexes(place, self.base_offset, self.size)? } else { None };
        let Some(mut indexes) = found else { return Ok(Indexes::new(self.base_offset)) };
        indexes.truncate(trusted);
        let Some((offset, position)) = indexes.offsets.last() else {
            return Ok(Indexes::new(self.base_offset));
        };
        let last_offset = self.base_offset.plus(i64::from(offset));
        match Scan::new(file, u64::from(position), self.size, LOOK_BYTES).next_header() {
            Ok(Some((_, header))) if header.last_offset() == last_offset => Ok(indexes),
            Ok(_) | Err(ScanError::Batch(_)) => Ok(Indexes::new(self.base_offset)),
            Err(error) => place.scanned(self.base_offset, Err(error)),
        }
    }

    /// The latest time of its first batch, from which its age counts; none where that has no time.
    pub(crate) fn first_timestamp(
        &mut self,
        place: &Place,
        interval_bytes: u64,
    ) -> Result<Option<Timestamp>, StorageError> {
        if self.indexes(place, interval_bytes)?.first_timestamp.is_none() && self.size > 0 {
            let file = self.file(place)?;
            let header = Scan::new(&*file, 0, self.size, LOOK_BYTES).next_header();
            let first = place.scanned(self.base_offset, header)?.map(|(_, header)| header.max_timestamp);
            self.indexes.get_mut().expect("read above").first_timestamp = first;
        }
        let first = self.indexes(place, interval_bytes)?.first_timestamp;
        Ok(first.filter(|first| *first >= Timestamp(0)))
    }

    /// Where the batch begins that holds `offset`, or the first one behind it.
    pub(crate) fn find(
        &self,
        place: &Place,
        offset: Offset,
        interval_bytes: u64,
    ) -> Result<Option<(u64, BatchHeader)>, StorageError> {
        let indexes = self.indexes(place, interval_bytes)?;
        let file = self.file(place)?;
        let found = scan::find(&*file, &indexes.offsets, self.base_offset, offset, self.size);
        place.scanned(self.base_offset, found)
    }

    /// Whether an index has reached the size at which its segment is closed.
    pub(crate) fn indexes_are_full(
        &self,
        place: &Place,
        index_bytes: u64,
        interval_bytes: u64,
    ) -> Result<bool, StorageError> {
        let indexes = self.indexes(place, interval_bytes)?;
        let entries = |bytes: usize| (index_bytes / bytes as u64) as usize;
        Ok(indexes.offsets.len() >= entries(OFFSET_ENTRY_BYTES)
            || indexes.times.len() + 1 >= entries(TIME_ENTRY_BYTES))
    }

    /// What the index files lack, if anything.
    pub(crate) fn index_tail(&self, place: &Place) -> Option<IndexTail> {
        let indexes = self.indexes.get()?;
        let (offsets, times) = indexes.written;
        let both = [
            (FileKind::OffsetIndex, offsets * OFFSET_ENTRY_BYTES, indexes.offsets.encode(offsets)),
            (FileKind::TimeIndex, times * TIME_ENTRY_BYTES, indexes.times.encode(times)),
        ];
        let pieces: Vec<_> = both
            .into_iter()
            .filter(|(_, _, bytes)| indexes.stale || !bytes.is_empty())
            .map(|(kind, position, bytes)| (place.file(kind, self.base_offset), position, bytes))
            .collect();
        let end = (indexes.offsets.len(), indexes.times.len());
        (!pieces.is_empty()).then_some(IndexTail { pieces, end })
    }

    /// Somebody wrote what the index files lacked up to `end`, or tried to. They need not be on disk before the segment is
    /// closed.
    pub(crate) fn index_tail_written(&mut self, end: (usize, usize), is_whole: bool) {
        let Some(indexes) = self.indexes.get_mut() else { return };
        indexes.unsynced = true;
        indexes.stale = !is_whole;
        if is_whole {
            indexes.written = end;
        }
    }

    /// Writes what the index files lack; gives back those that are to be flushed.
    pub(crate) fn unsynced_indexes(&mut self, place: &Place) -> Result<Vec<Arc<dyn File>>, StorageError> {
        if let Some(tail) = self.index_tail(place) {
            let result = tail.write(place);
            self.index_tail_written(tail.end, result.is_ok());
            result?;
        }
        if !self.indexes.get().is_some_and(|indexes| indexes.unsynced) {
            return Ok(Vec::new());
        }
        let open = |kind| {
            let path = place.file(kind, self.base_offset);
            place.folder.checked(&path, place.folder.disk.open(&path, Open::Write))
        };
        let files = vec![open(FileKind::OffsetIndex)?, open(FileKind::TimeIndex)?];
        self.indexes.get_mut().expect("looked at above").unsynced = false;
        Ok(files)
    }

    /// Adds the latest timestamp to the time index and writes what the index files lack. Gives back the files to flush.
    pub(crate) fn complete_indexes(&mut self, place: &Place) -> Result<Vec<Arc<dyn File>>, StorageError> {
        if let Some(indexes) = self.indexes.get_mut() {
            indexes.push_time();
        }
        self.unsynced_indexes(place)
    }

    /// It is the active one no more.
    pub(crate) fn deactivate(&mut self, place: &Place) {
        if let Some(file) = self.active.take() {
            place.folder.files.put(self.key, file);
        }
    }

    /// Cuts the segment behind its last batch below `end`. Gives back the files that were changed.
    pub(crate) fn truncate(
        &mut self,
        place: &Place,
        end: Offset,
        interval_bytes: u64,
    ) -> Result<Vec<Arc<dyn File>>, StorageError> {
        let position = self.find(place, end, interval_bytes)?.map_or(self.size, |(position, _)| position);
        self.cut(place, position)?;
        let mut files = self.cut_indexes(place, end, interval_bytes)?;
        files.push(self.file(place)?);
        Ok(files)
    }

    /// Cuts the log file alone, durably: what is cut off must not come back behind what is written in its place.
    pub(crate) fn cut(&mut self, place: &Place, size: u64) -> Result<(), StorageError> {
        let path = place.file(FileKind::Log, self.base_offset);
        let file = self.file(place)?;
        place.folder.checked(&path, file.set_len(size).and_then(|()| file.sync()))?;
        self.size = size;
        Ok(())
    }

    /// Cuts the indexes in memory and on disk, and walks the batches behind the last entry again.
    fn cut_indexes(
        &mut self,
        place: &Place,
        end: Offset,
        interval_bytes: u64,
    ) -> Result<Vec<Arc<dyn File>>, StorageError> {
        let mut indexes = self.indexes(place, interval_bytes)?.clone();
        indexes.truncate(end);
        let file = self.file(place)?;
        let scan = Scan::new(&*file, indexes.last_position(), self.size, LOOK_BYTES);
        place.scanned(self.base_offset, note_all(&mut indexes, scan, interval_bytes))?;
        let is_to_be_written = indexes.stale || indexes.unsynced;
        self.indexes = OnceCell::from(indexes);
        if is_to_be_written { self.unsynced_indexes(place) } else { Ok(Vec::new()) }
    }

    /// Closes its file: the folder is going away.
    pub(crate) fn forget(&self, place: &Place) {
        place.folder.files.close(self.key);
    }

    /// Removes its files.
    pub(crate) fn remove(self, place: &Place) -> Result<(), StorageError> {
        self.into_files(place).iter().try_for_each(|file| place.folder.remove_file(file))
    }

    /// Its files, which are to be removed.
    pub(crate) fn into_files(self, place: &Place) -> Vec<PathBuf> {
        place.folder.files.close(self.key);
        let kinds = [FileKind::Log, FileKind::OffsetIndex, FileKind::TimeIndex, FileKind::TransactionIndex];
        kinds.iter().map(|kind| place.file(*kind, self.base_offset)).collect()
    }
}

/// The indexes of a segment of `size` bytes; none where a file is missing or damaged.
pub(crate) fn read_indexes(
    place: &Place,
    base_offset: Offset,
    size: u64,
) -> Result<Option<Indexes>, StorageError> {
    let read = |kind| place.folder.read_file(&place.file(kind, base_offset));
    let (Some(offsets), Some(times)) = (read(FileKind::OffsetIndex)?, read(FileKind::TimeIndex)?) else {
        return Ok(None);
    };
    let (Some(offsets), Some(times)) = (OffsetIndex::parse(&offsets, size), TimeIndex::parse(&times)) else {
        return Ok(None);
    };
    let mut indexes = Indexes::new(base_offset);
    indexes.written = (offsets.len(), times.len());
    indexes.stale = false;
    (indexes.offsets, indexes.times) = (offsets, times);
    if let Some((timestamp, offset)) = indexes.times.last() {
        indexes.latest = (timestamp, base_offset.plus(i64::from(offset)));
    }
    Ok(Some(indexes))
}

/// The last entry of a segment's time index; none where the file cannot tell.
pub(crate) fn read_last_time(place: &Place, base_offset: Offset) -> Option<(Timestamp, Offset)> {
    let path = place.file(FileKind::TimeIndex, base_offset);
    let file = place.folder.disk.open(&path, Open::Read).ok()?;
    let position = file.len().ok()?.checked_sub(TIME_ENTRY_BYTES as u64)?;
    let mut entry = [0; TIME_ENTRY_BYTES];
    scan::read_full(&*file, &mut entry, position).ok()?;
    let (timestamp, offset) = TimeIndex::parse(&entry)?.last()?;
    Some((timestamp, base_offset.plus(i64::from(offset))))
}

fn note_all(indexes: &mut Indexes, mut scan: Scan<'_>, interval_bytes: u64) -> Result<(), ScanError> {
    while let Some((position, header)) = scan.next_header()? {
        indexes.note(position, &header, interval_bytes);
    }
    Ok(())
}

/// Writes at `position`, makes that the file's end.
fn extend(place: &Place, path: &Path, position: usize, bytes: &[u8]) -> Result<(), StorageError> {
    let file = place.folder.with_reserve(path, || place.folder.disk.open(path, Open::Create))?;
    place.folder.write(path, &*file, bytes, position as u64, Purpose::Upkeep)?;
    place.folder.checked(path, file.set_len((position + bytes.len()) as u64))
}
