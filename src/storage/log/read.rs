//! Reading: from the tail in memory where it is there, else a run of bytes in a file.

use bytes::Bytes;
use env::FileRange;
use model::Offset;

use super::Log;
use crate::segment::Segment;
use crate::{ReadError, StorageError};

/// What was read: batches, the first of which holds the offset that was asked for.
#[derive(Clone)]
pub enum Slice {
    /// Nothing.
    Empty,
    /// Whole batches, in memory.
    Cached(Bytes),
    /// A run of a log file. Its last batch may be cut, as Kafka's may.
    File(FileRange),
}

impl Slice {
    /// Bytes of it.
    pub fn len(&self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Cached(bytes) => bytes.len(),
            Self::File(range) => range.length,
        }
    }

    /// Its bytes, read where they lie in a file.
    ///
    /// # Errors
    /// The file could not be read.
    pub fn read(self) -> std::io::Result<Bytes> {
        match self {
            Self::Empty => Ok(Bytes::new()),
            Self::Cached(bytes) => Ok(bytes),
            Self::File(range) => {
                let mut bytes = vec![0; range.length];
                let filled = crate::scan::read_full(range.file.as_ref(), &mut bytes, range.position)?;
                bytes.truncate(filled);
                Ok(bytes.into())
            }
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Log {
    /// Reads from the batch that holds `from` on, up to the offset `end`, exclusive, and `bytes_max`. A first batch that is
    /// larger is given whole where `at_least_one` is set, else nothing is.
    ///
    /// # Errors
    /// `from` is not in the log; the log end itself is, and is empty.
    pub fn read(
        &self,
        from: Offset,
        bytes_max: usize,
        end: Offset,
        at_least_one: bool,
    ) -> Result<Slice, ReadError> {
        self.place.folder.check()?;
        let (log_start, log_end) = (self.log_start, self.log_end);
        if from < log_start || from > log_end {
            return Err(ReadError::OutOfRange { offset: from, log_start, log_end });
        }
        let end = end.min(log_end);
        if from >= end {
            return Ok(Slice::Empty);
        }
        match self.tail.read(from, end, bytes_max, at_least_one) {
            Some(bytes) if bytes.is_empty() => Ok(Slice::Empty),
            Some(bytes) => Ok(Slice::Cached(bytes)),
            None => Ok(self.read_file(from, bytes_max, end, at_least_one)?),
        }
    }

    fn read_file(
        &self,
        from: Offset,
        bytes_max: usize,
        end: Offset,
        at_least_one: bool,
    ) -> Result<Slice, StorageError> {
        let interval_bytes = self.config.index_interval_bytes;
        let first = self.segment_of(from);
        // The first segment may end below `from`, where records were removed from it.
        for (index, segment) in self.segments.iter().enumerate().skip(first) {
            if segment.base_offset >= end {
                break;
            }
            let Some((position, header)) = segment.find(&self.place, from, interval_bytes)? else { continue };
            if header.last_offset() >= end || (header.size() > bytes_max && !at_least_one) {
                break;
            }
            let wanted = bytes_max.max(header.size()) as u64;
            let stop = self.end_position(index, segment, end, position + wanted)?;
            let length = (stop - position).min(wanted) as usize;
            return Ok(Slice::File(FileRange { file: segment.file(&self.place)?, position, length }));
        }
        Ok(Slice::Empty)
    }

    /// Where the batches below `end` stop in a segment; only as exact as is needed to read up to `enough`.
    fn end_position(
        &self,
        index: usize,
        segment: &Segment,
        end: Offset,
        enough: u64,
    ) -> Result<u64, StorageError> {
        if end >= self.segment_end(index) {
            return Ok(segment.size);
        }
        let interval_bytes = self.config.index_interval_bytes;
        if let Some(relative) = crate::index::relative(segment.base_offset, end.plus(-1)) {
            let indexed = segment.indexes(&self.place, interval_bytes)?.offsets.position(relative);
            if u64::from(indexed) >= enough {
                return Ok(u64::from(indexed));
            }
        }
        let found = segment.find(&self.place, end, interval_bytes)?;
        Ok(found.map_or(segment.size, |(position, _)| position))
    }
}
