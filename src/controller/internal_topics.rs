//! Internal topics that grow with the cluster.
//!
//! A node that was alone made `__consumer_offsets` with one replica. When others join, its partitions get replicas there,
//! up to what the topic's replication factor asks for; and when those are in sync, a write waits for one more than the
//! leader. So a cluster that grew by and by ends as one that was there at once. What somebody set by hand stays.
//!
//! Kafka has nothing like it: there the first broker's choice stays until somebody reassigns.

use std::collections::BTreeMap;

use metadata::config::broker_key;
use metadata::{ConfigResource, Partition, Topic};
use model::NodeId;
use protocol::records::metadata::{ConfigRecord, MetadataRecord};

use crate::Controller;
use crate::configs::MIN_INSYNC_REPLICAS;
use crate::partition_changes::Moves;
use model::internal_topics::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};

/// `min.insync.replicas` of a topic that has no key for it.
const MIN_ISR: usize = 2;

/// The prefixes of the broker's keys that speak of internal topics.
const PREFIXES: [(&str, &str); 3] = [
    (CONSUMER_OFFSETS, "offsets.topic"),
    (TRANSACTION_STATE, "transaction.state.log"),
    (SHARE_GROUP_STATE, "share.coordinator.state.topic"),
];

impl Controller {
    /// The next step of the first internal topic that has one to go.
    pub(crate) fn grow_internal_topics(&self) -> Vec<MetadataRecord> {
        let topics = PREFIXES.iter().filter_map(|(name, prefix)| {
            let topic = self.image.topics.by_name(name)?;
            Some(self.grow(topic, prefix)).filter(|records| !records.is_empty())
        });
        topics.into_iter().next().unwrap_or_default()
    }

    fn grow(&self, topic: &Topic, prefix: &str) -> Vec<MetadataRecord> {
        let asked = self.config.broker.layers().integer(&format!("{prefix}.replication.factor"));
        let factor = usize::try_from(asked).unwrap_or_default().min(self.active().len());
        if topic.partitions.values().any(Partition::is_reassigning) {
            return Vec::new();
        }
        if topic.partitions.values().any(|partition| partition.replicas.len() < factor) {
            return self.add_replicas(topic, factor);
        }
        self.raise_min_isr(topic, self.min_isr_asked(prefix))
    }

    fn add_replicas(&self, topic: &Topic, factor: usize) -> Vec<MetadataRecord> {
        let mut loads: BTreeMap<NodeId, usize> = self.active().into_iter().map(|node| (node, 0)).collect();
        for node in topic.partitions.values().flat_map(|partition| &partition.replicas) {
            loads.entry(*node).and_modify(|load| *load += 1);
        }
        let mut targets = BTreeMap::new();
        for (index, partition) in &topic.partitions {
            let mut target = partition.replicas.clone();
            while target.len() < factor {
                let Some(node) = self.least_loaded(&loads, &target) else { break };
                loads.entry(node).and_modify(|load| *load += 1);
                target.push(node);
            }
            targets.insert(*index, target);
        }
        self.changes(Moves::default(), |of_topic, of, partition| {
            let target = targets.get(&of.partition).filter(|_| of_topic.id == topic.id)?;
            let grows = target.len() > partition.replicas.len();
            grows.then(|| self.moving(partition, target).into())
        })
    }

    /// The broker that gets the next replica beside those on `chosen`: in a rack that has none of them, with few others.
    fn least_loaded(&self, loads: &BTreeMap<NodeId, usize>, chosen: &[NodeId]) -> Option<NodeId> {
        let rack = |node: &NodeId| self.image.brokers.get(*node).and_then(|broker| broker.rack.clone());
        let in_rack = |node: &NodeId| chosen.iter().filter(|other| rack(other) == rack(node)).count();
        let free = loads.iter().filter(|(node, _)| !chosen.contains(node));
        free.min_by_key(|(node, load)| (in_rack(node), **load)).map(|(node, _)| *node)
    }

    fn min_isr_asked(&self, prefix: &str) -> usize {
        let key = format!("{prefix}.min.isr");
        let asked = broker_key(&key).map(|_| self.config.broker.layers().integer(&key));
        asked.and_then(|asked| usize::try_from(asked).ok()).unwrap_or(MIN_ISR)
    }

    /// As many as are asked for, but so that one may be away; and not before all partitions have them in sync, or the next
    /// write would be refused.
    fn raise_min_isr(&self, topic: &Topic, asked: usize) -> Vec<MetadataRecord> {
        let target = ConfigResource::topic(topic.name.as_str());
        let is_set = self.image.configs.of(&target).contains_key(MIN_INSYNC_REPLICAS);
        let factor = topic.partitions.values().map(|partition| partition.replicas.len()).min();
        let wanted = factor.unwrap_or_default().saturating_sub(1).min(asked);
        let in_sync = topic.partitions.values().all(|partition| partition.isr.len() >= wanted);
        if is_set || !in_sync || wanted <= self.isr_min(topic) {
            return Vec::new();
        }
        let raise = ConfigRecord {
            resource_type: target.kind.code(),
            resource_name: target.name,
            name: MIN_INSYNC_REPLICAS.into(),
            value: Some(wanted.to_string()),
        };
        vec![raise.into()]
    }

    fn active(&self) -> Vec<NodeId> {
        let active = self.image.brokers.iter().filter(|broker| broker.is_active());
        active.map(|broker| broker.id).collect()
    }
}
