//! What a node's image says of the one topic that is simulated.

use metadata::config::{BrokerConfig, ConfigValue, topic_key};
use metadata::{Image, Partition};
use model::{NodeId, PartitionIndex};
use replica::PartitionState;

/// The topic's name.
pub(crate) const TOPIC: &str = "t";

pub(crate) fn partition(image: &Image, index: usize) -> Option<&Partition> {
    image.topics.by_name(TOPIC)?.partitions.get(&(index as PartitionIndex))
}

/// What a replica is told of its partition.
pub(crate) fn partition_state(image: &Image, index: usize) -> Option<PartitionState> {
    let partition = partition(image, index)?;
    Some(replication::partition_state(image, partition, min_isr(image)))
}

fn min_isr(image: &Image) -> usize {
    let config = BrokerConfig::default();
    let Some(topic) = image.topics.by_name(TOPIC) else { return 1 };
    let layers = image.configs.topic_layers(&topic.name, NodeId::NONE, config.values());
    let key = topic_key("min.insync.replicas").expect("a key of the table");
    match layers.topic_value(key) {
        Some(ConfigValue::Int(value)) => usize::try_from(value).unwrap_or(1),
        _ => 1,
    }
}
