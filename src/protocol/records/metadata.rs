//! The records of `__cluster_metadata`.
//!
//! ```text
//! value   [frame version = 1] [record type] [version] message        unsigned varints; the record has no key
//! ```
//!
//! Kafka: `org.apache.kafka.server.common.serialization.AbstractApiMessageSerde`, `MetadataRecordType`.

use bytes::{BufMut, Bytes, BytesMut};

use super::RecordError;
pub use crate::generated::metadata::*;
use crate::varint;

const FRAME_VERSION: u32 = 1;

/// Defines `MetadataRecord` out of the types and structs of all records.
macro_rules! metadata_records {
    ($($number:literal $variant:ident($record:ident),)*) => {
        /// A record of the metadata log.
        #[derive(Clone, Debug, PartialEq)]
        pub enum MetadataRecord {
            $($variant($record),)*
        }

        $(impl From<$record> for MetadataRecord {
            fn from(record: $record) -> Self {
                Self::$variant(record)
            }
        })*

        impl MetadataRecord {
            /// The number of its type.
            pub fn record_type(&self) -> u32 {
                match self {
                    $(Self::$variant(_) => $number,)*
                }
            }

            pub(crate) fn newest_version(&self) -> i16 {
                match self {
                    $(Self::$variant(_) => $crate::codec::newest::<$record>(),)*
                }
            }

            pub(crate) fn write(
                &self,
                out: &mut dyn bytes::BufMut,
                version: i16,
            ) -> Result<(), $crate::MessageError> {
                match self {
                    $(Self::$variant(record) => $crate::codec::write(record, out, version),)*
                }
            }

            pub(crate) fn read(
                number: u32,
                version: i16,
                message: &[u8],
            ) -> Result<Option<Self>, $crate::MessageError> {
                Ok(Some(match number {
                    $($number => Self::$variant($crate::codec::decode(message, version)?),)*
                    _ => return Ok(None),
                }))
            }
        }
    };
}

pub(crate) use metadata_records;

impl MetadataRecord {
    /// The version of its type that Kafka's controller writes at metadata.version 33 (4.4): the newest, but for changes of
    /// a broker's registration, where it is the oldest that carries them.
    pub fn version(&self) -> i16 {
        match self {
            Self::BrokerRegistrationChange(change) if change.cordoned_log_dirs.is_some() => 3,
            Self::BrokerRegistrationChange(change) if !change.log_dirs.is_empty() => 2,
            Self::BrokerRegistrationChange(change) if change.in_controlled_shutdown != 0 => 1,
            Self::BrokerRegistrationChange(_) => 0,
            other => other.newest_version(),
        }
    }

    /// The value of the record in the log, in the version that `version` says.
    pub fn encode(&self) -> Bytes {
        // That version has every field that is used, and none comes near the 2 GiB of a compact length.
        self.encode_version(self.version()).expect("the version carries the record")
    }

    /// The value of the record in the log, in this version of its type.
    ///
    /// # Errors
    /// Where the version does not exist or cannot carry what the record says.
    fn encode_version(&self, version: i16) -> Result<Bytes, RecordError> {
        let mut out = BytesMut::new();
        for number in [FRAME_VERSION, self.record_type(), u32::from(version.unsigned_abs())] {
            varint::put_unsigned(number, |byte| out.put_u8(byte));
        }
        self.write(&mut out, version)?;
        Ok(out.freeze())
    }

    /// Reads the value of a record.
    ///
    /// # Errors
    /// Where it is malformed, or of a type or version that Kafka 4.4 does not have.
    pub fn decode(value: &[u8]) -> Result<Self, RecordError> {
        let mut left = value;
        let frame_version = take_varint(&mut left)?;
        if frame_version != FRAME_VERSION {
            return Err(RecordError::FrameVersion(frame_version));
        }
        let number = take_varint(&mut left)?;
        let unknown = RecordError::UnknownType(number.try_into().unwrap_or(i32::MAX));
        let version = take_varint(&mut left)?;
        let version = i16::try_from(version).unwrap_or(i16::MAX);
        Self::read(number, version, left)?.ok_or(unknown)
    }
}

fn take_varint(left: &mut &[u8]) -> Result<u32, RecordError> {
    let (number, size) = varint::unsigned(left).ok_or(RecordError::Short)?;
    *left = left.get(size..).unwrap_or_default();
    Ok(number)
}
