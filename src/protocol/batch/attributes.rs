//! The bits of a batch that say what kind it is.

use super::{Codec, CodecError};

const CODEC: i16 = 0b111;
const LOG_APPEND_TIME: i16 = 1 << 3;
const TRANSACTIONAL: i16 = 1 << 4;
const CONTROL: i16 = 1 << 5;

/// The attributes of a batch, as they are on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Attributes(pub i16);

/// Who set a record's timestamp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum TimestampType {
    /// The producer.
    #[default]
    CreateTime,
    /// The broker, when it appended.
    LogAppendTime,
}

impl Attributes {
    /// How the records are compressed.
    ///
    /// # Errors
    /// The codec is none of the five.
    pub fn codec(self) -> Result<Codec, CodecError> {
        Codec::from_id((self.0 & CODEC) as u8)
    }

    /// Who set the timestamps.
    pub fn timestamp_type(self) -> TimestampType {
        if self.has(LOG_APPEND_TIME) { TimestampType::LogAppendTime } else { TimestampType::CreateTime }
    }

    /// Whether the records belong to a transaction.
    pub fn is_transactional(self) -> bool {
        self.has(TRANSACTIONAL)
    }

    /// Whether the records are markers for brokers, not data.
    pub fn is_control(self) -> bool {
        self.has(CONTROL)
    }

    pub(super) fn with_codec(self, codec: Codec) -> Self {
        Self((self.0 & !CODEC) | i16::from(codec.id()))
    }

    pub(super) fn with_log_append_time(self) -> Self {
        Self(self.0 | LOG_APPEND_TIME)
    }

    pub(super) fn with_transactional(self) -> Self {
        Self(self.0 | TRANSACTIONAL)
    }

    pub(super) fn with_control(self) -> Self {
        Self(self.0 | CONTROL)
    }

    fn has(self, bit: i16) -> bool {
        self.0 & bit != 0
    }
}
