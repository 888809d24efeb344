//! What a topic's configuration says about its logs.

use protocol::batch::{Codec, TimestampType};

/// How old records leave the log: `cleanup.policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CleanupPolicy {
    /// Segments are deleted by age and size.
    pub delete: bool,
    /// Only the last record of a key stays; every record must have a key.
    pub compact: bool,
}

/// The configuration of one log, resolved; times in milliseconds. The defaults are Kafka's.
#[derive(Clone, Debug, PartialEq)]
pub struct LogConfig {
    /// `segment.bytes`: a segment is closed before it would become larger.
    pub segment_bytes: u64,
    /// `segment.ms`: a segment is closed when its first batch is older.
    pub segment_ms: i64,
    /// `segment.jitter.ms`: up to so much earlier, so that not all partitions roll at once.
    pub segment_jitter_ms: i64,
    /// `segment.index.bytes`: the size of an index at which its segment is closed.
    pub segment_index_bytes: u64,
    /// `index.interval.bytes`: bytes of the log between two index entries.
    pub index_interval_bytes: u64,
    /// `retention.ms`; negative is for ever.
    pub retention_ms: i64,
    /// `retention.bytes`; negative is without bound.
    pub retention_bytes: i64,
    /// `flush.messages`: for whoever schedules flushes.
    pub flush_messages: i64,
    /// `flush.ms`: for whoever schedules flushes.
    pub flush_ms: i64,
    /// `max.message.bytes`: the largest batch that a producer may send, header and all.
    pub message_bytes_max: usize,
    /// `message.timestamp.type`.
    pub timestamp_type: TimestampType,
    /// `message.timestamp.before.max.ms`: how far a record's time may be behind the broker's.
    pub timestamp_before_max_ms: i64,
    /// `message.timestamp.after.max.ms`: how far a record's time may be ahead of the broker's.
    pub timestamp_after_max_ms: i64,
    /// `compression.type`; none is `producer`, `Codec::None` is `uncompressed`.
    pub compression: Option<Codec>,
    /// `write.caching`: what is written counts, flushed or not.
    pub write_caching: bool,
    /// `cleanup.policy`.
    pub cleanup: CleanupPolicy,
    /// `file.delete.delay.ms`. Open files outlive their names, so nothing waits for it.
    pub file_delete_delay_ms: i64,
    /// `preallocate`. Kept for DescribeConfigs: it gains nothing here.
    pub preallocate: bool,
    /// `producer.id.expiration.ms`: a producer that wrote nothing for so long is forgotten.
    pub producer_id_expiration_ms: i64,
}

impl Default for LogConfig {
    fn default() -> Self {
        Self {
            segment_bytes: 1 << 30,
            segment_ms: 604_800_000,
            segment_jitter_ms: 0,
            segment_index_bytes: 10 << 20,
            index_interval_bytes: 4096,
            retention_ms: 604_800_000,
            retention_bytes: -1,
            flush_messages: i64::MAX,
            flush_ms: i64::MAX,
            message_bytes_max: 1_048_588,
            timestamp_type: TimestampType::CreateTime,
            timestamp_before_max_ms: i64::MAX,
            timestamp_after_max_ms: 3_600_000,
            compression: None,
            write_caching: false,
            cleanup: CleanupPolicy { delete: true, compact: false },
            file_delete_delay_ms: 60_000,
            preallocate: false,
            producer_id_expiration_ms: 86_400_000,
        }
    }
}
