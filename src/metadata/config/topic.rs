//! The values that a topic gets, typed.

use super::{ConfigValue, Layers};

/// What becomes of old segments: `cleanup.policy`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cleanup {
    /// They are deleted by age and size.
    pub delete: bool,
    /// They are compacted.
    pub compact: bool,
}

/// The codec that batches are stored with: `compression.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names are Kafka's")]
pub enum Compression {
    /// What the producer chose.
    Producer,
    Uncompressed,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

/// Whose clock stamps records: `message.timestamp.type`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimestampType {
    /// The producer's.
    CreateTime,
    /// The broker's.
    LogAppendTime,
}

/// All that a topic's log and replicas go by. The fields are named as the keys are, and in their units.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each field is the key of its name, described in the table")]
pub struct TopicConfig {
    pub cleanup_policy: Cleanup,
    pub compression_gzip_level: i32,
    pub compression_lz4_level: i32,
    pub compression_type: Compression,
    pub compression_zstd_level: i32,
    pub delete_retention_ms: i64,
    pub file_delete_delay_ms: i64,
    pub flush_messages: i64,
    pub flush_ms: i64,
    pub index_interval_bytes: i32,
    pub max_compaction_lag_ms: i64,
    pub max_decompressed_message_bytes: i32,
    pub max_message_bytes: i32,
    pub message_timestamp_after_max_ms: i64,
    pub message_timestamp_before_max_ms: i64,
    pub message_timestamp_type: TimestampType,
    pub min_cleanable_dirty_ratio: f64,
    pub min_compaction_lag_ms: i64,
    pub min_insync_replicas: i32,
    pub preallocate: bool,
    pub retention_bytes: i64,
    pub retention_ms: i64,
    pub segment_bytes: i32,
    pub segment_index_bytes: i32,
    pub segment_jitter_ms: i64,
    pub segment_ms: i64,
    pub unclean_leader_election_enable: bool,
    pub write_caching: bool,
}

impl TopicConfig {
    /// What counts of these layers.
    pub fn resolve(layers: &Layers<'_>) -> Self {
        Self {
            cleanup_policy: cleanup(layers),
            compression_gzip_level: int(layers, "compression.gzip.level"),
            compression_lz4_level: int(layers, "compression.lz4.level"),
            compression_type: compression(layers),
            compression_zstd_level: int(layers, "compression.zstd.level"),
            delete_retention_ms: long(layers, "delete.retention.ms"),
            file_delete_delay_ms: long(layers, "file.delete.delay.ms"),
            flush_messages: long(layers, "flush.messages"),
            flush_ms: long(layers, "flush.ms"),
            index_interval_bytes: int(layers, "index.interval.bytes"),
            max_compaction_lag_ms: long(layers, "max.compaction.lag.ms"),
            max_decompressed_message_bytes: int(layers, "max.decompressed.message.bytes"),
            max_message_bytes: int(layers, "max.message.bytes"),
            message_timestamp_after_max_ms: long(layers, "message.timestamp.after.max.ms"),
            message_timestamp_before_max_ms: long(layers, "message.timestamp.before.max.ms"),
            message_timestamp_type: timestamp_type(layers),
            min_cleanable_dirty_ratio: double(layers, "min.cleanable.dirty.ratio"),
            min_compaction_lag_ms: long(layers, "min.compaction.lag.ms"),
            min_insync_replicas: int(layers, "min.insync.replicas"),
            preallocate: boolean(layers, "preallocate"),
            retention_bytes: long(layers, "retention.bytes"),
            retention_ms: long(layers, "retention.ms"),
            segment_bytes: int(layers, "segment.bytes"),
            segment_index_bytes: int(layers, "segment.index.bytes"),
            segment_jitter_ms: long(layers, "segment.jitter.ms"),
            segment_ms: long(layers, "segment.ms"),
            unclean_leader_election_enable: boolean(layers, "unclean.leader.election.enable"),
            write_caching: boolean(layers, "write.caching"),
        }
    }
}

fn long(layers: &Layers<'_>, name: &str) -> i64 {
    layers.topic_key_value(name).integer().expect("a number")
}

fn int(layers: &Layers<'_>, name: &str) -> i32 {
    i32::try_from(long(layers, name)).expect("an INT")
}

fn double(layers: &Layers<'_>, name: &str) -> f64 {
    layers.topic_key_value(name).number().expect("a number")
}

fn boolean(layers: &Layers<'_>, name: &str) -> bool {
    layers.topic_key_value(name) == ConfigValue::Boolean(true)
}

fn cleanup(layers: &Layers<'_>) -> Cleanup {
    let ConfigValue::List(policies) = layers.topic_key_value("cleanup.policy") else {
        unreachable!("cleanup.policy is a list")
    };
    let has = |policy: &str| policies.iter().any(|named| named == policy);
    Cleanup { delete: has("delete"), compact: has("compact") }
}

fn compression(layers: &Layers<'_>) -> Compression {
    match layers.topic_key_value("compression.type").to_string().as_str() {
        "uncompressed" => Compression::Uncompressed,
        "gzip" => Compression::Gzip,
        "snappy" => Compression::Snappy,
        "lz4" => Compression::Lz4,
        "zstd" => Compression::Zstd,
        _ => Compression::Producer,
    }
}

fn timestamp_type(layers: &Layers<'_>) -> TimestampType {
    match layers.topic_key_value("message.timestamp.type").to_string().as_str() {
        "LogAppendTime" => TimestampType::LogAppendTime,
        _ => TimestampType::CreateTime,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Overrides, layers::NONE};
    use super::*;

    #[test]
    fn a_topic_without_values_gets_kafkas_defaults() {
        let config = TopicConfig::resolve(&Layers::fixed(&NONE));
        assert_eq!(config.cleanup_policy, Cleanup { delete: true, compact: false });
        assert_eq!(config.flush_ms, i64::MAX);
        assert_eq!(config.retention_ms, 604_800_000);
        assert_eq!(config.segment_ms, 604_800_000);
        assert_eq!(config.segment_jitter_ms, 0);
        assert_eq!(config.max_message_bytes, 1_048_588);
        assert_eq!(config.compression_type, Compression::Producer);
        assert!(!config.write_caching);
    }

    #[test]
    fn write_caching_comes_from_the_broker_unless_the_topic_says_otherwise() {
        let fixed = Overrides::from([("write.caching.default".into(), "true".into())]);
        let topic = Overrides::from([("write.caching".into(), "false".into())]);
        assert!(TopicConfig::resolve(&Layers::fixed(&fixed)).write_caching);
        assert!(!TopicConfig::resolve(&Layers { topic: &topic, ..Layers::fixed(&fixed) }).write_caching);
    }
}
