//! A run of batches, one after the other.

use super::header::CRC;
use super::{BatchError, BatchHeader, HEADER_BYTES, Records};

/// One whole batch.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// Its header.
    pub header: BatchHeader,
    /// All of its bytes, header and records.
    pub bytes: &'a [u8],
}

impl<'a> Batch<'a> {
    /// Reads the batch at the start of `bytes`; what stands behind it is left alone.
    ///
    /// # Errors
    /// As [`BatchHeader::parse`]; [`BatchError::Incomplete`] where its last byte is not there.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, BatchError> {
        let header = BatchHeader::parse(bytes)?;
        match bytes.get(..header.size()) {
            Some(bytes) => Ok(Self { header, bytes }),
            None => Err(BatchError::Incomplete { needed: header.size(), there: bytes.len() }),
        }
    }

    /// Compares the checksum with the bytes.
    ///
    /// # Errors
    /// [`BatchError::CrcMismatch`].
    pub fn verify_crc(&self) -> Result<(), BatchError> {
        let computed = crc_of(self.bytes);
        if computed == self.header.crc {
            return Ok(());
        }
        Err(BatchError::CrcMismatch { stored: self.header.crc, computed })
    }

    /// The records, decompressed if need be into at most `bytes_max` bytes. The CRC is not looked at.
    ///
    /// # Errors
    /// The codec is unknown, its bytes are corrupt or too many, or the record count cannot be.
    pub fn records(&self, bytes_max: usize) -> Result<Records<'a>, BatchError> {
        Records::of(self, bytes_max)
    }

    /// The records' bytes as they are, compressed or not.
    pub(super) fn payload(&self) -> &'a [u8] {
        self.bytes.get(HEADER_BYTES..).unwrap_or_default()
    }
}

/// The checksum that the batch should have; 0 where it has not even a header.
pub(super) fn crc_of(batch: &[u8]) -> u32 {
    crc32c::crc32c(batch.get(CRC.end..).unwrap_or_default())
}

/// The batches in `bytes`, in order. Ends at the first that is cut or malformed, after giving its error.
pub fn batches(bytes: &[u8]) -> Batches<'_> {
    Batches { rest: bytes }
}

/// See [`batches`].
#[derive(Clone, Debug)]
pub struct Batches<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Batches<'a> {
    type Item = Result<Batch<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let batch = Batch::parse(self.rest);
        self.rest = match &batch {
            Ok(batch) => self.rest.get(batch.bytes.len()..).unwrap_or_default(),
            Err(_) => &[],
        };
        Some(batch)
    }
}

impl std::iter::FusedIterator for Batches<'_> {}
