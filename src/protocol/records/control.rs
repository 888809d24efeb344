//! Control records: transaction markers, and what KRaft writes into its log and snapshots.
//!
//! ```text
//! key     [version i16 = 0] [type i16]
//! value   [version i16] message             of a marker; the other messages begin with their version as a field
//! ```
//!
//! Kafka: `ControlRecordType`, `ControlRecordUtils`, `EndTransactionMarker`.

use bytes::{BufMut, Bytes, BytesMut};

use super::RecordError;
use crate::codec::{self, Root};
pub use crate::generated::control::{
    EndTxnMarker, KRaftVersionRecord, LeaderChangeMessage, SnapshotFooterRecord, SnapshotHeaderRecord,
    VotersRecord, leader_change_message, voters_record,
};

/// A record of a control batch.
#[derive(Clone, Debug, PartialEq)]
pub enum ControlRecord {
    /// 0: the transaction of this producer ended here, and nothing of it counts.
    Abort(EndTxnMarker),
    /// 1: the transaction of this producer ended here, and all of it counts.
    Commit(EndTxnMarker),
    /// 2: the first record of every leader epoch of the metadata log.
    LeaderChange(LeaderChangeMessage),
    /// 3: the first record of a snapshot.
    SnapshotHeader(SnapshotHeaderRecord),
    /// 4: the last record of a snapshot.
    SnapshotFooter(SnapshotFooterRecord),
    /// 5: the level of kraft.version.
    KRaftVersion(KRaftVersionRecord),
    /// 6: the voters of the metadata quorum.
    KRaftVoters(VotersRecord),
}

impl ControlRecord {
    /// The number of its type.
    pub(crate) fn control_type(&self) -> i16 {
        match self {
            Self::Abort(_) => 0,
            Self::Commit(_) => 1,
            Self::LeaderChange(_) => 2,
            Self::SnapshotHeader(_) => 3,
            Self::SnapshotFooter(_) => 4,
            Self::KRaftVersion(_) => 5,
            Self::KRaftVoters(_) => 6,
        }
    }

    /// The key and the value of the record.
    ///
    /// # Errors
    /// Where a message names a version that does not exist.
    pub fn encode(&self) -> Result<(Bytes, Bytes), RecordError> {
        let mut key = BytesMut::new();
        key.put_i16(0);
        key.put_i16(self.control_type());
        let value = match self {
            Self::Abort(marker) | Self::Commit(marker) => {
                let mut value = BytesMut::new();
                value.put_i16(0);
                codec::write(marker, &mut value, 0)?;
                value.freeze()
            }
            Self::LeaderChange(message) => codec::encode(message, message.version)?,
            Self::SnapshotHeader(message) => codec::encode(message, message.version)?,
            Self::SnapshotFooter(message) => codec::encode(message, message.version)?,
            Self::KRaftVersion(message) => codec::encode(message, message.version)?,
            Self::KRaftVoters(message) => codec::encode(message, message.version)?,
        };
        Ok((key.freeze(), value))
    }

    /// Reads a record.
    ///
    /// # Errors
    /// `UnknownType` for a type that Kafka 4.4 does not have, which a reader skips; else where it is malformed.
    pub fn decode(key: &[u8], value: &[u8]) -> Result<Self, RecordError> {
        let (_version, key) = leading_i16(key)?;
        let (control_type, _) = leading_i16(key)?;
        Ok(match control_type {
            0 => Self::Abort(marker(value)?),
            1 => Self::Commit(marker(value)?),
            2 => Self::LeaderChange(message(value)?),
            3 => Self::SnapshotHeader(message(value)?),
            4 => Self::SnapshotFooter(message(value)?),
            5 => Self::KRaftVersion(message(value)?),
            6 => Self::KRaftVoters(message(value)?),
            other => return Err(RecordError::UnknownType(other.into())),
        })
    }
}

/// A newer marker may have more fields at its end, which are skipped, as Kafka does.
fn marker(value: &[u8]) -> Result<EndTxnMarker, RecordError> {
    let (_version, mut message) = leading_i16(value)?;
    Ok(codec::read(&mut message, 0)?)
}

fn message<M: Root>(value: &[u8]) -> Result<M, RecordError> {
    let (version, _) = leading_i16(value)?;
    Ok(codec::decode(value, version)?)
}

fn leading_i16(bytes: &[u8]) -> Result<(i16, &[u8]), RecordError> {
    let (first, rest) = bytes.split_first_chunk().ok_or(RecordError::Short)?;
    Ok((i16::from_be_bytes(*first), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_kafkas_bytes() {
        let record = ControlRecord::Commit(EndTxnMarker { coordinator_epoch: 5 });
        let (key, value) = record.encode().expect("encodes");
        assert_eq!(key[..], [0, 0, 0, 1]);
        assert_eq!(value[..], [0, 0, 0, 0, 0, 5]);
        assert_eq!(ControlRecord::decode(&key, &value), Ok(record));
    }

    #[test]
    fn cut_and_unknown_records_are_errors() {
        assert_eq!(ControlRecord::decode(&[0], &[]), Err(RecordError::Short));
        assert_eq!(ControlRecord::decode(&[0, 0, 0, 77], &[]), Err(RecordError::UnknownType(77)));
        assert!(ControlRecord::decode(&[0, 0, 0, 2], &[0, 9, 0, 0]).is_err());
    }
}
