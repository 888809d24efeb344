//! The header of a batch.

use std::ops::Range;

use model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};

use super::{Attributes, BatchError, cursor::Cursor};

/// Bytes of a batch before its records.
pub const HEADER_BYTES: usize = 61;
/// The only version that there still is.
pub(super) const MAGIC: i8 = 2;

// The fields that are set in place.
pub(super) const BASE_OFFSET: Range<usize> = 0..8;
pub(super) const LENGTH: Range<usize> = 8..12;
pub(super) const LEADER_EPOCH: Range<usize> = 12..16;
pub(super) const CRC: Range<usize> = 17..21;
pub(super) const ATTRIBUTES: Range<usize> = 21..23;
pub(super) const MAX_TIMESTAMP: Range<usize> = 35..43;

/// The least that a record takes: size, attributes, two deltas, key, value, header count, a byte each.
const RECORD_BYTES_MIN: usize = 7;
/// What the length field must be at least, in any version.
const LENGTH_MIN_EVER: i32 = 14;
/// Up to and with the magic, which stands there in every version.
const MAGIC_END: usize = CRC.start;

/// The header of a batch, field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchHeader {
    /// The offset of the first record; the deltas in the records count from it.
    pub base_offset: Offset,
    /// Bytes behind the length field; at least 49.
    pub length: i32,
    /// The epoch of the leader that appended it; -1 before that.
    pub leader_epoch: LeaderEpoch,
    /// The checksum as it is written, of everything behind it.
    pub crc: u32,
    /// Codec, timestamp type, and kinds.
    pub attributes: Attributes,
    /// The last record's offset less the first's; stays when compaction removes records.
    pub last_offset_delta: i32,
    /// What the timestamp deltas in the records count from.
    pub base_timestamp: Timestamp,
    /// The latest timestamp of a record; of all records where the broker set it.
    pub max_timestamp: Timestamp,
    /// Who wrote it; -1 without idempotence.
    pub producer_id: ProducerId,
    /// The producer's epoch; -1 without idempotence.
    pub producer_epoch: ProducerEpoch,
    /// The first record's number in the producer's stream; -1 without idempotence.
    pub base_sequence: Sequence,
    /// How many records there are; 0 where compaction removed them all.
    pub record_count: i32,
}

impl BatchHeader {
    /// Reads the header at the start of `bytes`; the records need not be there.
    ///
    /// # Errors
    /// The header is cut, of another version, or its length or offsets are out of bounds. The CRC is not looked at.
    pub fn parse(bytes: &[u8]) -> Result<Self, BatchError> {
        let length = check_start(bytes)?;
        let header = Self::read(bytes, length)
            .ok_or(BatchError::Incomplete { needed: HEADER_BYTES, there: bytes.len() })?;
        header.check_offsets()?;
        Ok(header)
    }

    fn read(bytes: &[u8], length: i32) -> Option<Self> {
        let mut cursor = Cursor::new(bytes);
        let base_offset = Offset(i64::from_be_bytes(cursor.array()?));
        let _length: [u8; 4] = cursor.array()?;
        let leader_epoch = LeaderEpoch(i32::from_be_bytes(cursor.array()?));
        let _magic: [u8; 1] = cursor.array()?;
        Some(Self {
            base_offset,
            length,
            leader_epoch,
            crc: u32::from_be_bytes(cursor.array()?),
            attributes: Attributes(i16::from_be_bytes(cursor.array()?)),
            last_offset_delta: i32::from_be_bytes(cursor.array()?),
            base_timestamp: Timestamp(i64::from_be_bytes(cursor.array()?)),
            max_timestamp: Timestamp(i64::from_be_bytes(cursor.array()?)),
            producer_id: ProducerId(i64::from_be_bytes(cursor.array()?)),
            producer_epoch: ProducerEpoch(i16::from_be_bytes(cursor.array()?)),
            base_sequence: Sequence(i32::from_be_bytes(cursor.array()?)),
            record_count: i32::from_be_bytes(cursor.array()?),
        })
    }

    // So that nothing that asks for the last or the next offset can overflow.
    fn check_offsets(&self) -> Result<(), BatchError> {
        let last_offset = self.base_offset.0.checked_add(i64::from(self.last_offset_delta));
        match last_offset.and_then(|last| last.checked_add(1)) {
            Some(_) => Ok(()),
            None => Err(BatchError::OffsetOverflow {
                base_offset: self.base_offset,
                last_offset_delta: self.last_offset_delta,
            }),
        }
    }

    /// Whether so many records can lie in `bytes`, not compressed.
    ///
    /// # Errors
    /// [`BatchError::InvalidRecordCount`].
    pub fn check_record_count(&self, bytes: usize) -> Result<(), BatchError> {
        let count = self.record_count;
        let fits = usize::try_from(count).is_ok_and(|count| count <= bytes / RECORD_BYTES_MIN);
        if fits { Ok(()) } else { Err(BatchError::InvalidRecordCount { count, bytes }) }
    }

    /// Bytes of the whole batch, header and all.
    pub fn size(&self) -> usize {
        LENGTH.end + self.length as usize
    }

    /// The offset of the last record, inclusive.
    pub fn last_offset(&self) -> Offset {
        self.base_offset.plus(i64::from(self.last_offset_delta))
    }

    /// The offset that the next batch begins with.
    pub fn next_offset(&self) -> Offset {
        self.last_offset().plus(1)
    }

    /// The last record's number in the producer's stream; -1 where there is no stream.
    pub fn last_sequence(&self) -> Sequence {
        self.base_sequence.plus(self.last_offset_delta)
    }

    /// Whether a producer with an id wrote it.
    pub fn has_producer(&self) -> bool {
        self.producer_id != ProducerId::NONE
    }

    /// Whether the records belong to a transaction.
    pub fn is_transactional(&self) -> bool {
        self.attributes.is_transactional()
    }

    /// Whether the records are markers for brokers, not data.
    pub fn is_control(&self) -> bool {
        self.attributes.is_control()
    }
}

/// Checks what stands at the same place in every version, and in Kafka's order; gives back the length field.
fn check_start(bytes: &[u8]) -> Result<i32, BatchError> {
    let incomplete = BatchError::Incomplete { needed: MAGIC_END, there: bytes.len() };
    let [_, _, _, _, _, _, _, _, a, b, c, d, others @ ..] = bytes else { return Err(incomplete) };
    let length = i32::from_be_bytes([*a, *b, *c, *d]);
    if length < LENGTH_MIN_EVER {
        return Err(BatchError::InvalidLength { length });
    }
    let [_, _, _, _, magic, ..] = others else { return Err(incomplete) };
    match magic.cast_signed() {
        MAGIC if length < (HEADER_BYTES - LENGTH.end) as i32 => Err(BatchError::InvalidLength { length }),
        MAGIC => Ok(length),
        magic @ 0..=1 => Err(BatchError::UnsupportedMagic { magic }),
        magic => Err(BatchError::UnknownMagic { magic }),
    }
}
