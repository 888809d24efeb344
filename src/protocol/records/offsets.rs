//! The records of `__consumer_offsets` that classic groups and committed offsets need.
//!
//! ```text
//! key     [record type i16] message, version 0
//! value   [version i16] message                  no value is a tombstone
//! ```
//!
//! Kafka: `CoordinatorRecordSerde`, `GroupCoordinatorRecordSerde`, `CoordinatorRecordType`.

use bytes::{BufMut, Bytes, BytesMut};

use super::RecordError;
use crate::MessageError;
use crate::codec;
pub use crate::generated::offsets::*;

/// What a record of `__consumer_offsets` is about.
#[derive(Clone, Debug, PartialEq)]
pub enum OffsetsKey {
    /// 0: a committed offset as Kafka before 0.9 wrote it.
    LegacyOffsetCommit(LegacyOffsetCommitKey),
    /// 1: a committed offset.
    OffsetCommit(OffsetCommitKey),
    /// 2: a classic group.
    GroupMetadata(GroupMetadataKey),
}

impl OffsetsKey {
    /// The key of the record.
    ///
    /// # Errors
    /// Where a name is longer than 32767 bytes.
    pub fn encode(&self) -> Result<Bytes, RecordError> {
        let mut out = BytesMut::new();
        match self {
            Self::LegacyOffsetCommit(key) => {
                out.put_i16(0);
                codec::write(key, &mut out, 0)?;
            }
            Self::OffsetCommit(key) => {
                out.put_i16(1);
                codec::write(key, &mut out, 0)?;
            }
            Self::GroupMetadata(key) => {
                out.put_i16(2);
                codec::write(key, &mut out, 0)?;
            }
        }
        Ok(out.freeze())
    }

    /// Reads the key of a record.
    ///
    /// # Errors
    /// `UnknownType` for a record of another kind of group, which a reader may skip; else where it is malformed.
    pub fn decode(key: &[u8]) -> Result<Self, RecordError> {
        let (record_type, message) = prefixed(key)?;
        Ok(match record_type {
            0 => Self::LegacyOffsetCommit(codec::decode(message, 0)?),
            1 => Self::OffsetCommit(codec::decode(message, 0)?),
            2 => Self::GroupMetadata(codec::decode(message, 0)?),
            other => return Err(RecordError::UnknownType(other.into())),
        })
    }
}

macro_rules! values {
    ($($value:ident: $of:literal, |$self:ident| $version:expr;)*) => {$(
        impl $value {
            /// The value of the record, in the version that Kafka 4.4 writes.
            ///
            /// # Errors
            /// Where a text is too long for its length field.
            pub fn encode(&self) -> Result<Bytes, RecordError> {
                let $self = self;
                self.encode_version($version)
            }

            /// The value of the record, in this version.
            ///
            /// # Errors
            /// Where the version does not exist or cannot carry what the record says.
            fn encode_version(&self, version: i16) -> Result<Bytes, RecordError> {
                let mut out = BytesMut::new();
                out.put_i16(version);
                codec::write(self, &mut out, version)?;
                Ok(out.freeze())
            }

            /// Reads the value of a record.
            ///
            /// # Errors
            /// Where it is malformed or of an unknown version.
            pub fn decode(value: &[u8]) -> Result<Self, RecordError> {
                let (version, message) = prefixed(value)?;
                codec::decode(message, version).map_err(|error| match error {
                    MessageError::Version { version, .. } => {
                        RecordError::UnknownVersion { record_type: $of, version: version.into() }
                    }
                    error => RecordError::Message(error),
                })
            }
        }
    )*};
}

values! {
    LegacyOffsetCommitValue: 0, |_value| 0;
    // Only version 1 has a time of expiry of its own (`retention.ms` of old OffsetCommit requests).
    OffsetCommitValue: 1, |value| if value.expire_timestamp == -1 { 4 } else { 1 };
    // Version 4 is flexible, and only read.
    GroupMetadataValue: 2, |_value| 3;
}

fn prefixed(bytes: &[u8]) -> Result<(i16, &[u8]), RecordError> {
    let (prefix, message) = bytes.split_first_chunk().ok_or(RecordError::Short)?;
    Ok((i16::from_be_bytes(*prefix), message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offset_values_of_every_version_come_back() {
        let value = OffsetCommitValue { offset: 7, commit_timestamp: 9, ..Default::default() };
        let with_expiry = value.clone().with_expire_timestamp(11);
        for version in 0..=4 {
            let bytes = value.encode_version(version).unwrap();
            assert_eq!(OffsetCommitValue::decode(&bytes), Ok(value.clone()));
        }
        assert_eq!(with_expiry.encode().unwrap()[..2], [0, 1]);
        assert_eq!(OffsetCommitValue::decode(&with_expiry.encode().unwrap()), Ok(with_expiry));
        let unknown = RecordError::UnknownVersion { record_type: 1, version: 5 };
        assert_eq!(OffsetCommitValue::decode(&[0, 5, 0]), Err(unknown));
    }
}
