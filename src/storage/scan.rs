//! Walks the batches of a log file, reading ahead in windows.
//!
//! Kafka: `FileLogInputStream`.

use std::io;

use env::File;
use protocol::batch::{Batch, BatchError, BatchHeader, HEADER_BYTES};

use crate::index::OffsetIndex;

/// Bytes read at once where only a few headers are looked at.
pub(crate) const LOOK_BYTES: usize = 4 << 10;
/// Bytes read at once where the headers of many batches are looked at: small batches come together, large ones are
/// passed over.
pub(crate) const WALK_BYTES: usize = 64 << 10;
/// Bytes read at once where all is read.
pub(crate) const SWEEP_BYTES: usize = 256 << 10;

/// Why a walk ends before the end.
#[derive(Debug)]
pub(crate) enum ScanError {
    Io(io::Error),
    /// From here on there is no batch.
    Batch(BatchError),
}

/// A walk over the batches in `[position, end)` of a file.
pub(crate) struct Scan<'a> {
    file: &'a dyn File,
    position: u64,
    end: u64,
    window: Vec<u8>,
    window_start: u64,
    window_bytes: usize,
}

impl<'a> Scan<'a> {
    pub(crate) fn new(file: &'a dyn File, position: u64, end: u64, window_bytes: usize) -> Self {
        Self { file, position, end, window: Vec::new(), window_start: 0, window_bytes }
    }

    /// The next batch's position and header; its records are passed over, but are within the end.
    pub(crate) fn next_header(&mut self) -> Result<Option<(u64, BatchHeader)>, ScanError> {
        if self.position >= self.end {
            return Ok(None);
        }
        let position = self.position;
        let left = self.end - position;
        let bytes = self.bytes(HEADER_BYTES).map_err(ScanError::Io)?;
        let header = BatchHeader::parse(bytes).map_err(ScanError::Batch)?;
        if header.size() as u64 > left {
            let cut = BatchError::Incomplete { needed: header.size(), there: left as usize };
            return Err(ScanError::Batch(cut));
        }
        self.position += header.size() as u64;
        Ok(Some((position, header)))
    }

    /// The next batch's position, and the whole batch.
    pub(crate) fn next_batch(&mut self) -> Result<Option<(u64, Batch<'_>)>, ScanError> {
        let Some((position, header)) = self.next_header()? else { return Ok(None) };
        self.position = position;
        let size = header.size();
        self.bytes(size).map_err(ScanError::Io)?;
        self.position += size as u64;
        let start = (position - self.window_start) as usize;
        let batch = Batch::parse(self.window.get(start..).unwrap_or_default()).map_err(ScanError::Batch)?;
        Ok(Some((position, batch)))
    }

    /// At least `needed` bytes from the position on, or as many as there are before the end.
    fn bytes(&mut self, needed: usize) -> io::Result<&[u8]> {
        let left = self.end - self.position;
        let needed = left.min(needed as u64);
        let window_end = self.window_start + self.window.len() as u64;
        if self.position < self.window_start || self.position + needed > window_end {
            self.fill(left.min(needed.max(self.window_bytes as u64)) as usize)?;
        }
        let start = (self.position - self.window_start) as usize;
        Ok(self.window.get(start..).unwrap_or_default())
    }

    fn fill(&mut self, length: usize) -> io::Result<()> {
        self.window.resize(length, 0);
        self.window_start = self.position;
        let filled = read_full(self.file, &mut self.window, self.position)?;
        self.window.truncate(filled);
        Ok(())
    }
}

/// Reads until the buffer is full or the file ends; gives back how much there was.
pub(crate) fn read_full(file: &dyn File, buffer: &mut [u8], position: u64) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read_at(rest, position + filled as u64)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(filled)
}

/// Where the batch begins that holds `relative_offset`, or the first one behind it; none where there is none before `end`.
pub(crate) fn find(
    file: &dyn File,
    index: &OffsetIndex,
    base: model::Offset,
    offset: model::Offset,
    end: u64,
) -> Result<Option<(u64, BatchHeader)>, ScanError> {
    let start = crate::index::relative(base, offset).map_or(0, |relative| index.position(relative));
    let mut scan = Scan::new(file, u64::from(start), end, LOOK_BYTES);
    while let Some((position, header)) = scan.next_header()? {
        if header.last_offset() >= offset {
            return Ok(Some((position, header)));
        }
    }
    Ok(None)
}
