//! The keys of topics, all that Kafka 4.4 has and Ottla's own.
//!
//! A row: name, type, default, bounds, the broker keys that stand in for it, whether Ottla acts on it, what it does.

use super::Validator::{Any, AtLeast, Between, GzipLevel, ListOf, OneOf, ThrottledReplicas};
use super::table::{Standing, default_value, topic_keys};
use super::{ConfigKey, ConfigType, UpdateMode};

/// All keys that a topic may set.
pub(crate) static TOPIC_KEYS: &[ConfigKey] = topic_keys! {
// What is kept, and for how long
"cleanup.policy" List "delete" ListOf(&["compact", "delete"]), ["log.cleanup.policy"], Used =>
    "What becomes of old segments: `delete` drops them by age and size, `compact` keeps the last record of each key; both may be named.";
"retention.ms" Long "604800000" AtLeast(-1), ["log.retention.ms", "log.retention.minutes", "log.retention.hours"], Used =>
    "How long a record is kept at least before its segment may be deleted, in milliseconds; -1 keeps it for ever. Counts where cleanup.policy has `delete`.";
"retention.bytes" Long "-1" Any, ["log.retention.bytes"], Used =>
    "How large a partition may grow before its oldest segments are deleted, in bytes; -1 sets no bound. It is one partition's bound, not the topic's.";
"delete.retention.ms" Long "86400000" AtLeast(0), ["log.cleaner.delete.retention.ms"], Later =>
    "How long a tombstone stays readable in a compacted topic after the cleaner passed it, in milliseconds.";
"min.compaction.lag.ms" Long "0" AtLeast(0), ["log.cleaner.min.compaction.lag.ms"], Later =>
    "A record younger than this is not compacted away, in milliseconds.";
"max.compaction.lag.ms" Long "9223372036854775807" AtLeast(1), ["log.cleaner.max.compaction.lag.ms"], Later =>
    "A record older than this is compacted soon, however little else there is to clean, in milliseconds.";
"min.cleanable.dirty.ratio" Double "0.5" Between(0, 1), ["log.cleaner.min.cleanable.ratio"], Later =>
    "The share of a compacted log that must be uncleaned before the cleaner takes it up, from 0 to 1.";

// Records
"compression.type" String "producer" OneOf(&["uncompressed", "zstd", "lz4", "snappy", "gzip", "producer"]), ["compression.type"], Used =>
    "The codec that batches are stored with: `producer` keeps what the producer chose, `uncompressed` and the codec names make it so.";
"compression.gzip.level" Int "-1" GzipLevel, ["compression.gzip.level"], Used =>
    "The level of gzip where compression.type asks for it; -1 is the codec's own default.";
"compression.lz4.level" Int "9" Between(1, 17), ["compression.lz4.level"], Used =>
    "The level of lz4 where compression.type asks for it.";
"compression.zstd.level" Int "3" Between(-131_072, 22), ["compression.zstd.level"], Used =>
    "The level of zstd where compression.type asks for it.";
"max.message.bytes" Int "1048588" AtLeast(0), ["message.max.bytes"], Used =>
    "The largest record batch that is accepted, compressed as it is, in bytes.";
"max.decompressed.message.bytes" Int "2147483639" Between(1, 2_147_483_639), ["max.decompressed.message.bytes"], Used =>
    "The largest record that is accepted once decompressed, in bytes; looked at where the broker has to decompress.";
"message.timestamp.type" String "CreateTime" OneOf(&["CreateTime", "LogAppendTime"]), ["log.message.timestamp.type"], Used =>
    "Whose clock stamps the records: `CreateTime` is the producer's, `LogAppendTime` the broker's at the append.";
"message.timestamp.before.max.ms" Long "9223372036854775807" AtLeast(0), ["log.message.timestamp.before.max.ms"], Used =>
    "How far a record's own timestamp may lie behind the broker's clock, in milliseconds; a record further back is refused.";
"message.timestamp.after.max.ms" Long "3600000" AtLeast(0), ["log.message.timestamp.after.max.ms"], Used =>
    "How far a record's own timestamp may lie before the broker's clock, in milliseconds; a record further ahead is refused.";

// Segments and their indexes
"segment.bytes" Int "1073741824" AtLeast(1_048_576), ["log.segment.bytes"], Used =>
    "The size at which a segment is closed and a new one begun, in bytes.";
"segment.ms" Long "604800000" AtLeast(1), ["log.roll.ms", "log.roll.hours"], Used =>
    "The age at which a segment is closed even if it is not full, in milliseconds.";
"segment.jitter.ms" Long "0" AtLeast(0), ["log.roll.jitter.ms", "log.roll.jitter.hours"], Used =>
    "Up to this much is taken from segment.ms at random, so that segments do not all roll at once, in milliseconds.";
"segment.index.bytes" Int "10485760" AtLeast(4), ["log.index.size.max.bytes"], Used =>
    "The size that an offset or time index may reach before its segment is closed, in bytes.";
"index.interval.bytes" Int "4096" AtLeast(0), ["log.index.interval.bytes"], Used =>
    "About every how many bytes of log an index entry is written.";
"file.delete.delay.ms" Long "60000" AtLeast(0), ["log.segment.delete.delay.ms"], Used =>
    "How long files of a deleted segment stay on disk for readers that still have them open, in milliseconds.";
"preallocate" Boolean "false" Any, ["log.preallocate"], Used =>
    "Whether a new segment's file is given its full size at once.";

// Durability
"flush.messages" Long "9223372036854775807" AtLeast(1), ["log.flush.interval.messages"], Used =>
    "After how many records a topic with write.caching is flushed to disk; without write.caching every acknowledged record is flushed anyway.";
"flush.ms" Long "9223372036854775807" AtLeast(0), ["log.flush.interval.ms", "log.flush.scheduler.interval.ms"], Used =>
    "After how long a topic with write.caching is flushed to disk, in milliseconds.";
"min.insync.replicas" Int "1" AtLeast(1), ["min.insync.replicas"], Used =>
    "How many replicas must be in sync for a write with acks=all to be accepted, the leader counted.";
"unclean.leader.election.enable" Boolean "false" Any, ["unclean.leader.election.enable"], Used =>
    "Whether a replica that is not in sync may lead when no other is left, at the price of acknowledged records.";
"write.caching" Boolean "false" Any, ["write.caching.default"], Used =>
    "Whether a record counts as written once the operating system has it. Faster, and what Kafka does; a power cut on all replicas may then lose acknowledged records. May go from false to true only.";

// Replication and tiers
"leader.replication.throttled.replicas" List "" ThrottledReplicas, [], Later =>
    "The replicas whose leaders are slowed down while partitions move, as partition:broker pairs, or `*` for all.";
"follower.replication.throttled.replicas" List "" ThrottledReplicas, [], Later =>
    "The replicas that are slowed down as followers while partitions move, as partition:broker pairs, or `*` for all.";
"errors.deadletterqueue.group.enable" Boolean "false" Any, [], Later =>
    "Whether share groups may write records that nobody could process to this topic.";
"remote.storage.enable" Boolean "false" Any, [], Later =>
    "Whether old segments are moved to remote storage; Ottla has none yet.";
"remote.log.copy.disable" Boolean "false" Any, [], Later =>
    "Whether the topic stops sending segments to remote storage.";
"remote.log.delete.on.disable" Boolean "false" Any, [], Later =>
    "Whether remote segments are deleted when remote storage is switched off for the topic.";
"remote.copy.lag.ms" Long "0" AtLeast(-1), ["log.remote.copy.lag.ms"], Later =>
    "The age that a closed segment reaches before it is copied to remote storage, in milliseconds; -1 follows local.retention.ms.";
"remote.copy.lag.bytes" Long "-1" AtLeast(-1), ["log.remote.copy.lag.bytes"], Later =>
    "How much newer log there is before a closed segment is copied to remote storage, in bytes; -1 follows local.retention.bytes.";
"local.retention.ms" Long "-2" AtLeast(-2), ["log.local.retention.ms"], Later =>
    "How long segments that are also in remote storage stay on this disk, in milliseconds; -2 is as long as retention.ms.";
"local.retention.bytes" Long "-2" AtLeast(-2), ["log.local.retention.bytes"], Later =>
    "How much log that is also in remote storage stays on this disk, in bytes; -2 is as much as retention.bytes.";};
