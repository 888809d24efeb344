//! What the metadata asks of this node: which partitions it holds, which it leads, how they are configured.

use metadata::config::{Cleanup, Compression, Layers, TimestampType, TopicConfig};
use metadata::{Delta, Image, ResourceType, Topic};
use model::{LeaderEpoch, NodeId, TopicId, TopicIdPartition, TopicPartition};
use protocol::batch::{Codec, TimestampType as BatchTimestampType};
use storage::{CleanupPolicy, LogConfig};

/// A partition of this node, as the metadata wants it.
pub(crate) struct Assignment {
    pub(crate) name: TopicPartition,
    pub(crate) id: TopicIdPartition,
    pub(crate) leader: NodeId,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) isr: Vec<NodeId>,
    pub(crate) config: LogConfig,
    pub(crate) min_isr: usize,
}

/// What a delta changes for one node.
#[derive(Default)]
pub(crate) struct Change {
    pub(crate) assigned: Vec<Assignment>,
    pub(crate) deleted: Vec<TopicIdPartition>,
}

impl Change {
    /// What `delta`, which led to `image`, changes for node `me`.
    pub(crate) fn of(image: &Image, delta: &Delta, me: NodeId, settings: &Settings<'_>) -> Self {
        let deleted = delta.topics_deleted.iter().flat_map(|topic| ids(topic)).collect();
        let assigned = delta
            .partitions_changed
            .iter()
            .filter_map(|id| Assignment::of(image, *id, me, settings))
            .chain(reconfigured(image, delta, me, settings))
            .collect();
        Self { assigned, deleted }
    }

    /// All that `image` wants of node `me`: at start.
    pub(crate) fn all(image: &Image, me: NodeId, settings: &Settings<'_>) -> Self {
        let assigned = image
            .topics
            .iter()
            .flat_map(|topic| ids(topic))
            .filter_map(|id| Assignment::of(image, id, me, settings))
            .collect();
        Self { assigned, deleted: Vec::new() }
    }
}

fn ids(topic: &Topic) -> impl Iterator<Item = TopicIdPartition> + use<> {
    let topic_id: TopicId = topic.id;
    let partitions: Vec<_> = topic.partitions.keys().copied().collect();
    partitions.into_iter().map(move |partition| TopicIdPartition { topic_id, partition })
}

/// The partitions of topics whose configuration changed; all of them after a change of the broker's.
fn reconfigured(
    image: &Image,
    delta: &Delta,
    me: NodeId,
    settings: &Settings<'_>,
) -> impl Iterator<Item = Assignment> + use<> {
    let broker = delta.configs_changed.iter().any(|resource| resource.kind == ResourceType::Broker);
    let of_topic = |name: &str| {
        delta
            .configs_changed
            .iter()
            .any(|resource| resource.kind == ResourceType::Topic && resource.name == name)
    };
    let assignments: Vec<_> = image
        .topics
        .iter()
        .filter(|topic| broker || of_topic(topic.name.as_str()))
        .flat_map(|topic| ids(topic))
        .filter_map(|id| Assignment::of(image, id, me, settings))
        .collect();
    assignments.into_iter()
}

impl Assignment {
    fn of(image: &Image, id: TopicIdPartition, me: NodeId, settings: &Settings<'_>) -> Option<Self> {
        let topic = image.topics.by_id(id.topic_id)?;
        let partition = topic.partitions.get(&id.partition).filter(|partition| partition.has_replica(me))?;
        let layers = image.configs.topic_layers(&topic.name, me, settings.fixed);
        let config = TopicConfig::resolve(&layers);
        Some(Self {
            name: TopicPartition { topic: topic.name.clone(), partition: id.partition },
            id,
            leader: partition.leader,
            leader_epoch: partition.leader_epoch,
            isr: partition.isr.clone(),
            min_isr: usize::try_from(config.min_insync_replicas).unwrap_or(1).min(partition.replicas.len()),
            config: log_config(&config, &layers),
        })
    }
}

/// What is fixed at start.
pub(crate) struct Settings<'a> {
    pub(crate) fixed: &'a metadata::config::Overrides,
}

fn log_config(config: &TopicConfig, layers: &Layers<'_>) -> LogConfig {
    LogConfig {
        segment_bytes: config.segment_bytes.max(1) as u64,
        segment_ms: config.segment_ms,
        segment_jitter_ms: config.segment_jitter_ms,
        segment_index_bytes: config.segment_index_bytes.max(0) as u64,
        index_interval_bytes: config.index_interval_bytes.max(0) as u64,
        retention_ms: config.retention_ms,
        retention_bytes: config.retention_bytes,
        flush_messages: config.flush_messages,
        flush_ms: config.flush_ms,
        message_bytes_max: config.max_message_bytes.max(0) as usize,
        timestamp_type: match config.message_timestamp_type {
            TimestampType::CreateTime => BatchTimestampType::CreateTime,
            TimestampType::LogAppendTime => BatchTimestampType::LogAppendTime,
        },
        timestamp_before_max_ms: config.message_timestamp_before_max_ms,
        timestamp_after_max_ms: config.message_timestamp_after_max_ms,
        compression: codec(config.compression_type),
        write_caching: config.write_caching,
        cleanup: cleanup(config.cleanup_policy),
        file_delete_delay_ms: config.file_delete_delay_ms,
        preallocate: config.preallocate,
        producer_id_expiration_ms: layers.integer("producer.id.expiration.ms"),
    }
}

fn codec(compression: Compression) -> Option<Codec> {
    Some(match compression {
        Compression::Producer => return None,
        Compression::Uncompressed => Codec::None,
        Compression::Gzip => Codec::Gzip,
        Compression::Snappy => Codec::Snappy,
        Compression::Lz4 => Codec::Lz4,
        Compression::Zstd => Codec::Zstd,
    })
}

fn cleanup(cleanup: Cleanup) -> CleanupPolicy {
    CleanupPolicy { delete: cleanup.delete, compact: cleanup.compact }
}
