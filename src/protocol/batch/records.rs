//! The records inside a batch.
//!
//! [`Records`] holds the bytes (the batch's own, or what came out of the codec), [`RecordIter`] walks them and borrows
//! from them: nothing is allocated a record. Every number is checked against the bytes that are there.

use std::borrow::Cow;

use model::{Offset, Sequence, Timestamp};

use super::cursor::Cursor;
use super::{Batch, BatchError, BatchHeader, Codec, RecordFault, TimestampType, decompress};

/// The least that a header takes: two sizes.
const RECORD_HEADER_BYTES_MIN: usize = 2;

/// The records of one batch, not compressed.
#[derive(Clone, Debug)]
pub struct Records<'a> {
    header: BatchHeader,
    bytes: Cow<'a, [u8]>,
}

impl<'a> Records<'a> {
    pub(super) fn of(batch: &Batch<'a>, bytes_max: usize) -> Result<Self, BatchError> {
        let bytes = match batch.header.attributes.codec()? {
            Codec::None => Cow::Borrowed(batch.payload()),
            codec => Cow::Owned(decompress(codec, batch.payload(), bytes_max)?),
        };
        batch.header.check_record_count(bytes.len())?;
        Ok(Self { header: batch.header, bytes })
    }

    /// Walks the records in order. Ends after the first error.
    pub fn iter(&self) -> RecordIter<'_> {
        RecordIter { header: &self.header, cursor: Cursor::new(&self.bytes), index: 0, ended: false }
    }

    /// Bytes of all records, not compressed.
    pub fn size_bytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<'a> IntoIterator for &'a Records<'_> {
    type Item = Result<Record<'a>, BatchError>;
    type IntoIter = RecordIter<'a>;

    fn into_iter(self) -> RecordIter<'a> {
        self.iter()
    }
}

/// One record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Its offset in the partition.
    pub offset: Offset,
    /// Its number in the producer's stream; -1 without idempotence.
    pub sequence: Sequence,
    /// Its own time, or when the broker appended it.
    pub timestamp: Timestamp,
    /// The key; none is not the same as empty.
    pub key: Option<&'a [u8]>,
    /// The value; none is a tombstone where the topic is compacted.
    pub value: Option<&'a [u8]>,
    /// The headers, in order, the same key as often as it was sent.
    pub headers: Headers<'a>,
}

/// See [`Records::iter`].
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    header: &'a BatchHeader,
    cursor: Cursor<'a>,
    index: i32,
    ended: bool,
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, BatchError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        if self.index == self.header.record_count {
            self.ended = true;
            return self.left_over().map(Err);
        }
        let record = read_record(self.header, &mut self.cursor);
        self.ended = record.is_err();
        let index = self.index;
        self.index += 1;
        Some(record.map_err(|fault| BatchError::InvalidRecord { index, fault }))
    }
}

impl std::iter::FusedIterator for RecordIter<'_> {}

impl RecordIter<'_> {
    fn left_over(&self) -> Option<BatchError> {
        let bytes = self.cursor.left();
        (bytes > 0).then_some(BatchError::LeftOver { bytes })
    }
}

fn read_record<'a>(header: &BatchHeader, cursor: &mut Cursor<'a>) -> Result<Record<'a>, RecordFault> {
    let size = usize::try_from(cursor.varint()?).map_err(|_| RecordFault::Size)?;
    let mut fields = Cursor::new(cursor.take(size).ok_or(RecordFault::Cut)?);
    let [_attributes] = fields.array().ok_or(RecordFault::Cut)?;
    let timestamp = record_timestamp(header, fields.varlong()?)?;
    let delta = fields.varint()?;
    if !(0..=header.last_offset_delta).contains(&delta) {
        return Err(RecordFault::Offset);
    }
    Ok(Record {
        offset: header.base_offset.plus(i64::from(delta)),
        sequence: header.base_sequence.plus(delta),
        timestamp,
        key: nullable(&mut fields)?,
        value: nullable(&mut fields)?,
        headers: Headers::read(fields)?,
    })
}

#[inline]
pub(super) fn record_timestamp(header: &BatchHeader, delta: i64) -> Result<Timestamp, RecordFault> {
    match header.attributes.timestamp_type() {
        TimestampType::LogAppendTime => Ok(header.max_timestamp),
        TimestampType::CreateTime => {
            header.base_timestamp.0.checked_add(delta).map(Timestamp).ok_or(RecordFault::Timestamp)
        }
    }
}

// Kafka takes any negative size as null.
#[inline]
pub(super) fn nullable<'a>(cursor: &mut Cursor<'a>) -> Result<Option<&'a [u8]>, RecordFault> {
    match usize::try_from(cursor.varint()?) {
        Ok(size) => cursor.take(size).ok_or(RecordFault::Cut).map(Some),
        Err(_) => Ok(None),
    }
}

/// The headers of one record: checked when the record was read, taken apart when they are walked.
#[derive(Clone, Copy, Debug)]
pub struct Headers<'a> {
    count: usize,
    cursor: Cursor<'a>,
}

impl<'a> Headers<'a> {
    pub(super) fn read(mut cursor: Cursor<'a>) -> Result<Self, RecordFault> {
        let count = usize::try_from(cursor.varint()?).map_err(|_| RecordFault::HeaderCount)?;
        if count > cursor.left() / RECORD_HEADER_BYTES_MIN {
            return Err(RecordFault::HeaderCount);
        }
        let headers = Self { count, cursor };
        for _ in 0..count {
            read_header(&mut cursor)?;
        }
        if cursor.left() > 0 { Err(RecordFault::Size) } else { Ok(headers) }
    }

    /// Key and value of each, in the order in which they were sent.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a [u8], Option<&'a [u8]>)> + use<'a> {
        let mut cursor = self.cursor;
        (0..self.count).map(move |_| read_header(&mut cursor).unwrap_or_default())
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }
}

impl PartialEq for Headers<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Headers<'_> {}

fn read_header<'a>(cursor: &mut Cursor<'a>) -> Result<(&'a [u8], Option<&'a [u8]>), RecordFault> {
    let key = nullable(cursor)?.ok_or(RecordFault::HeaderKey)?;
    Ok((key, nullable(cursor)?))
}
