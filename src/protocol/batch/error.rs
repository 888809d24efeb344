//! What can be wrong with a batch.

use model::{ErrorCode, Offset};

use super::Codec;

/// Why bytes are not a record batch, or not one that can be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// The bytes end before the batch does.
    #[error("the batch is cut: it needs {needed} bytes, {there} are there")]
    Incomplete {
        /// Bytes from the batch's start that must be there to go on.
        needed: usize,
        /// Bytes from the batch's start that are there.
        there: usize,
    },
    /// The length field is too small for a header.
    #[error("the batch says it is {length} bytes long, which is less than its header")]
    InvalidLength {
        /// The length field.
        length: i32,
    },
    /// A message set of a client older than Kafka 0.11.
    #[error("message format {magic} is no longer supported; use a client of Kafka 0.11 or newer")]
    UnsupportedMagic {
        /// 0 or 1.
        magic: i8,
    },
    /// No format that ever was.
    #[error("the batch has the unknown magic {magic}")]
    UnknownMagic {
        /// The magic byte.
        magic: i8,
    },
    /// Base offset and last offset delta lead past the last offset that there is.
    #[error("the batch's last offset is out of bounds: base offset {base_offset}, delta {last_offset_delta}")]
    OffsetOverflow {
        /// The base offset.
        base_offset: Offset,
        /// The last offset delta.
        last_offset_delta: i32,
    },
    /// The checksum does not fit the bytes.
    #[error("the batch's CRC is {stored:#010x}, but its bytes give {computed:#010x}")]
    CrcMismatch {
        /// What the header says.
        stored: u32,
        /// What the bytes give.
        computed: u32,
    },
    /// The records cannot be compressed, or are not.
    #[error(transparent)]
    Codec(#[from] CodecError),
    /// The record count is negative, or more than the bytes can hold.
    #[error("the batch says it has {count} records in {bytes} bytes")]
    InvalidRecordCount {
        /// What the header says.
        count: i32,
        /// Bytes of all records, not compressed.
        bytes: usize,
    },
    /// One record is malformed.
    #[error("record {index} of the batch is malformed: {fault}")]
    InvalidRecord {
        /// Its place in the batch, from 0.
        index: i32,
        /// What is wrong with it.
        fault: RecordFault,
    },
    /// Bytes are left over behind the last record.
    #[error("{bytes} bytes are left over behind the last record of the batch")]
    LeftOver {
        /// How many.
        bytes: usize,
    },
}

/// What is wrong with a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordFault {
    /// A number has more bits than its type.
    #[error("a variable-length number is too long")]
    NumberTooLong,
    /// It ends inside a field.
    #[error("it is cut inside a field")]
    Cut,
    /// The record says that it is longer than its fields, or shorter than nothing.
    #[error("its size is wrong")]
    Size,
    /// Its offset lies outside the batch.
    #[error("its offset delta is out of the batch's bounds")]
    Offset,
    /// Its timestamp is out of bounds.
    #[error("its timestamp delta is out of bounds")]
    Timestamp,
    /// The number of headers is negative or more than the bytes can hold.
    #[error("its number of headers is wrong")]
    HeaderCount,
    /// A header has no key.
    #[error("a header has no key")]
    HeaderKey,
}

/// Why bytes were not decompressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CodecError {
    /// The attributes name a codec that does not exist.
    #[error("compression type {id} is unknown")]
    Unknown {
        /// Bits 0-2 of the attributes.
        id: u8,
    },
    /// Not what the codec makes.
    #[error("the records are not valid {codec}")]
    Corrupt {
        /// The codec.
        codec: Codec,
    },
    /// More would come out than may.
    #[error("the records are larger than {bytes_max} bytes when decompressed; send smaller batches")]
    TooLarge {
        /// The cap.
        bytes_max: usize,
    },
}

impl From<BatchError> for ErrorCode {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::InvalidLength { .. }
            | BatchError::UnknownMagic { .. }
            | BatchError::OffsetOverflow { .. }
            | BatchError::CrcMismatch { .. } => Self::CorruptMessage,
            // To Kafka a request whose only batch is cut has no batch.
            BatchError::Incomplete { .. }
            | BatchError::UnsupportedMagic { .. }
            | BatchError::InvalidRecordCount { .. }
            | BatchError::InvalidRecord { .. }
            | BatchError::LeftOver { .. } => Self::InvalidRecord,
            BatchError::Codec(error) => error.into(),
        }
    }
}

impl From<CodecError> for ErrorCode {
    fn from(error: CodecError) -> Self {
        match error {
            CodecError::Unknown { .. } => Self::UnsupportedCompressionType,
            // The CRC was right, so sending the same bytes again cannot help.
            CodecError::Corrupt { .. } => Self::InvalidRecord,
            // The one code at which a producer splits the batch.
            CodecError::TooLarge { .. } => Self::MessageTooLarge,
        }
    }
}
