//! What brokers write for themselves: the records of internal topics, control records, and small files beside the log.
//!
//! All of it is Kafka's, byte for byte, so that its tools read it and a folder of Kafka's can be taken over. Bytes from
//! the disk are trusted no more than those from the network: a decoder gives an error, and allocates within the bounds
//! of its input.

mod control;
pub mod metadata;
pub mod offsets;
mod quorum_state;

pub use control::*;
pub use quorum_state::QuorumState;

use crate::MessageError;

/// Why bytes are not the record that they should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The message inside is malformed.
    #[error(transparent)]
    Message(#[from] MessageError),
    /// The bytes end before the message starts.
    #[error("the record is too short")]
    Short,
    /// A frame version of a metadata record that is not 1.
    #[error("unknown frame version {0} of a metadata record")]
    FrameVersion(u32),
    /// A type of record that this version of Kafka does not have, or that is not handled here.
    #[error("unknown record type {0}")]
    UnknownType(i32),
    /// A version of the record that Kafka 4.4 does not have.
    #[error("unknown version {version} of record type {record_type}")]
    UnknownVersion {
        /// The type.
        record_type: i32,
        /// The version.
        version: i32,
    },
    /// A text file is not what it should be.
    #[error("{0}")]
    Text(String),
}

impl From<&RecordError> for model::ErrorCode {
    fn from(error: &RecordError) -> Self {
        match error {
            RecordError::Message(error) => error.into(),
            RecordError::UnknownType(_)
            | RecordError::UnknownVersion { .. }
            | RecordError::FrameVersion(_) => Self::UnsupportedVersion,
            RecordError::Short | RecordError::Text(_) => Self::CorruptMessage,
        }
    }
}
