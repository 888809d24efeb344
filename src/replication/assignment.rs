//! What the metadata asks of this node: which partitions it holds, which it leads, how they are configured.

use std::collections::BTreeSet;
use std::sync::Arc;

use metadata::config::{Cleanup, Compression, Layers, TimestampType, TopicConfig};
use metadata::{Delta, Image, Partition, ResourceType, Topic};
use model::{NodeId, TopicIdPartition, TopicPartition};
use protocol::batch::{Codec, TimestampType as BatchTimestampType};
use replica::{PartitionState, ReplicaBroker};
use storage::{CleanupPolicy, LogConfig};

/// A partition of this node, as the metadata wants it.
#[derive(Clone)]
pub(crate) struct Assignment {
    pub(crate) name: TopicPartition,
    pub(crate) id: TopicIdPartition,
    pub(crate) state: PartitionState,
    pub(crate) config: LogConfig,
}

/// What a delta changes for one node.
pub(crate) struct Change {
    pub(crate) assigned: Arc<[Assignment]>,
    pub(crate) deleted: Vec<TopicIdPartition>,
}

impl Change {
    /// What `delta`, which led to `image`, changes for node `me`.
    pub(crate) fn of(image: &Image, delta: &Delta, me: NodeId, settings: &Settings<'_>) -> Self {
        let mut changed = delta.partitions_changed.clone();
        changed.extend(reconfigured(image, delta));
        changed.extend(replicated_by(image, &delta.brokers_changed));
        let is_wanted = |id| image.topics.partition(id).is_some_and(|partition| partition.has_replica(me));
        let moved = delta.partitions_changed.iter().copied().filter(|id| !is_wanted(*id));
        let deleted = delta.topics_deleted.iter().flat_map(|topic| ids(topic));
        let deleted = deleted.chain(moved).collect();
        Self { assigned: Assignment::of(image, changed, me, settings), deleted }
    }

    /// All that `image` wants of node `me`, which has the logs `held`.
    pub(crate) fn all(
        image: &Image,
        me: NodeId,
        settings: &Settings<'_>,
        held: impl Iterator<Item = TopicIdPartition>,
    ) -> Self {
        let is_wanted = |id| image.topics.partition(id).is_some_and(|partition| partition.has_replica(me));
        Self {
            assigned: Assignment::of(image, image.topics.iter().flat_map(|topic| ids(topic)), me, settings),
            deleted: held.filter(|id| !is_wanted(*id)).collect(),
        }
    }
}

fn ids(topic: &Topic) -> impl Iterator<Item = TopicIdPartition> {
    let topic_id = topic.id;
    topic.partitions.keys().map(move |partition| TopicIdPartition { topic_id, partition: *partition })
}

/// The partitions of topics whose configuration changed; all of them after a change of the broker's.
fn reconfigured(image: &Image, delta: &Delta) -> impl Iterator<Item = TopicIdPartition> {
    let broker = delta.configs_changed.iter().any(|resource| resource.kind == ResourceType::Broker);
    let is_changed = move |topic: &&Arc<Topic>| {
        broker
            || delta
                .configs_changed
                .iter()
                .any(|resource| resource.kind == ResourceType::Topic && resource.name == topic.name.as_str())
    };
    image.topics.iter().filter(is_changed).flat_map(|topic| ids(topic))
}

/// The partitions that have a replica on one of these brokers.
fn replicated_by(image: &Image, brokers: &BTreeSet<NodeId>) -> impl Iterator<Item = TopicIdPartition> {
    let topics = image.topics.iter().filter(|_| !brokers.is_empty());
    topics.flat_map(move |topic| {
        let topic_id = topic.id;
        let has_one = |partition: &Partition| partition.replicas.iter().any(|id| brokers.contains(id));
        let partitions = topic.partitions.iter().filter(move |(_, partition)| has_one(partition));
        partitions.map(move |(index, _)| TopicIdPartition { topic_id, partition: *index })
    })
}

/// What the metadata says of a partition and its brokers.
pub fn partition_state(image: &Image, partition: &Partition, min_isr: usize) -> PartitionState {
    let broker = |id: &NodeId| {
        let broker = image.brokers.get(*id);
        ReplicaBroker {
            id: *id,
            epoch: broker.map(|broker| broker.epoch),
            is_active: broker.is_some_and(|broker| broker.is_active()),
        }
    };
    PartitionState {
        leader: partition.leader,
        leader_epoch: partition.leader_epoch,
        partition_epoch: partition.partition_epoch,
        replicas: partition.replicas.iter().map(broker).collect(),
        isr: partition.isr.clone(),
        min_isr,
    }
}

impl Assignment {
    /// Those of `ids` that are there, and that node `me` has a replica of. Each stands there once, those of a topic next to
    /// each other.
    fn of(
        image: &Image,
        ids: impl IntoIterator<Item = TopicIdPartition>,
        me: NodeId,
        settings: &Settings<'_>,
    ) -> Arc<[Self]> {
        let ids: Vec<_> = ids.into_iter().collect();
        let topics = ids.chunk_by(|a, b| a.topic_id == b.topic_id);
        topics.flat_map(|ids| Self::of_topic(image, ids, me, settings)).collect()
    }

    fn of_topic(image: &Image, ids: &[TopicIdPartition], me: NodeId, settings: &Settings<'_>) -> Vec<Self> {
        let Some(topic) = ids.first().and_then(|id| image.topics.by_id(id.topic_id)) else {
            return Vec::new();
        };
        let layers = image.configs.topic_layers(&topic.name, me, settings.fixed);
        let config = TopicConfig::resolve(&layers);
        let min_isr = usize::try_from(config.min_insync_replicas).unwrap_or(1);
        let log_config = log_config(&config, &layers);
        let here = ids.iter().filter_map(|id| {
            let partition = topic.partitions.get(&id.partition)?;
            partition.has_replica(me).then(|| Self {
                name: TopicPartition { topic: topic.name.clone(), partition: id.partition },
                id: *id,
                state: partition_state(image, partition, min_isr),
                config: log_config.clone(),
            })
        });
        here.collect()
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
