//! Changes of partitions, from what is wanted of them to the records.
//!
//! Kafka: `ReplicationControlManager.generateLeaderAndIsrUpdates`, `LeaderAcceptor`.

use metadata::config::{ConfigValue, topic_key};
use metadata::{Partition, Topic};
use model::{NodeId, TopicIdPartition};
use protocol::records::metadata::MetadataRecord;

use crate::Controller;
use crate::change::{self, Election, Rules};

/// Brokers that come and go with the decision that is being made: the image does not know of it yet.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Moves<'a> {
    /// They may not lead from now on.
    pub(crate) gone: &'a [NodeId],
    /// It may.
    pub(crate) back: Option<NodeId>,
}

/// What is wanted of a partition.
#[derive(Clone, Debug)]
pub(crate) struct Wanted {
    pub(crate) partition: Partition,
    /// Replicas that may have lost records which were committed.
    pub(crate) lost: Vec<NodeId>,
    /// How a leader is elected, where it is not as the topic says.
    pub(crate) election: Option<Election>,
}

impl From<Partition> for Wanted {
    fn from(partition: Partition) -> Self {
        Self { partition, lost: Vec::new(), election: None }
    }
}

impl Controller {
    /// The records that give every partition what is wanted of it.
    pub(crate) fn changes(
        &self,
        moves: Moves<'_>,
        wanted: impl Fn(&Topic, TopicIdPartition, &Partition) -> Option<Wanted>,
    ) -> Vec<MetadataRecord> {
        let mut records = Vec::new();
        for topic in self.image.topics.iter() {
            for (index, partition) in &topic.partitions {
                let of = TopicIdPartition { topic_id: topic.id, partition: *index };
                let Some(wanted) = wanted(topic, of, partition) else { continue };
                let after = self.settled(topic, partition, wanted, moves);
                records.extend(change::record(of, partition, &after).map(Into::into));
            }
        }
        records
    }

    /// What becomes of a partition when this is wanted of it.
    pub(crate) fn settled(
        &self,
        topic: &Topic,
        before: &Partition,
        wanted: Wanted,
        moves: Moves<'_>,
    ) -> Partition {
        let candidates = wanted.partition.replicas.iter().copied();
        let may_lead = |node: &NodeId| {
            let directory = wanted.partition.directory(*node);
            let broker = self.image.brokers.get(*node);
            self.is_active_after(*node, moves) && broker.is_some_and(|broker| broker.has_directory(directory))
        };
        let rules = Rules {
            candidates: candidates.filter(may_lead).collect(),
            elr: self.elr_is_on(),
            isr_min: self.isr_min(topic),
            election: wanted.election.unwrap_or_else(|| self.topic_election(topic)),
            lost: wanted.lost,
            mutation: self.mutation,
        };
        change::settle(before, wanted.partition, &rules)
    }

    fn is_active_after(&self, node: NodeId, moves: Moves<'_>) -> bool {
        !moves.gone.contains(&node) && (moves.back == Some(node) || self.is_active(node))
    }

    /// How a leader is elected where nobody says otherwise.
    pub(crate) fn topic_election(&self, topic: &Topic) -> Election {
        match self.topic_value(topic, "unclean.leader.election.enable") {
            ConfigValue::Boolean(true) => Election::Unclean,
            _ => Election::Online,
        }
    }

    pub(crate) fn isr_min(&self, topic: &Topic) -> usize {
        self.topic_value(topic, "min.insync.replicas").integer().map_or(1, |min| min.max(1) as usize)
    }

    pub(crate) fn topic_value(&self, topic: &Topic, key: &str) -> ConfigValue {
        let layers =
            self.image.configs.topic_layers(&topic.name, self.config.node, self.config.broker.values());
        let key = topic_key(key).expect("a key of the table");
        layers.topic_value(key).expect("every topic key has a default")
    }
}

/// The partition without these in the ISR.
pub(crate) fn without(partition: &Partition, gone: &[NodeId]) -> Partition {
    let mut wanted = partition.clone();
    wanted.isr.retain(|node| !gone.contains(node));
    wanted
}
