//! Brokers that are kept away from clients and leadership, and come back.
//!
//! A broker is fenced when its session ends, when it asks for it, and when it is done with a controlled shutdown. It
//! leaves every ISR, and what it led is led by others. Unfenced, it leads again what nobody else leads; into an ISR it
//! comes back by the leader's AlterPartition alone.
//!
//! Several that are gone at the same time are fenced together: whoever is elected is none of them.
//!
//! Kafka: `ReplicationControlManager.handleBrokerFenced`, `handleBrokerUnfenced`, `handleBrokerInControlledShutdown`,
//! `handleBrokerUnregistered`; KIP-631, KIP-841.

use std::collections::BTreeSet;

use metadata::Broker;
use model::{NodeId, TopicIdPartition};
use protocol::records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord, UnregisterBrokerRecord};

use crate::mutant::Mutant;
use crate::partition_changes::{Moves, Wanted, without};
use crate::{BrokerError, Controller, Decision};

const FENCE: i8 = 1;
const UNFENCE: i8 = -1;
const IN_CONTROLLED_SHUTDOWN: i8 = 1;

impl Controller {
    /// Decides that a broker is no part of the cluster any more, until it registers again.
    pub fn unregister_broker(&self, id: NodeId) -> Decision<Result<(), BrokerError>> {
        let Some(broker) = self.image.brokers.get(id) else {
            return Decision::nothing(Err(BrokerError::NotRegistered(id)));
        };
        let gone = [id];
        let mut records = self.changes(Moves { gone: &gone, back: None }, |_, _, partition| {
            let counts = partition.isr.contains(&id) || partition.elr.contains(&id);
            counts.then(|| Wanted { lost: vec![id], ..without(partition, &gone).into() })
        });
        let unregister = UnregisterBrokerRecord { broker_id: id.0, broker_epoch: broker.epoch.0 };
        records.push(unregister.into());
        Decision { records, reply: Ok(()) }
    }

    /// The records that fence these brokers.
    pub(crate) fn fence(&self, gone: &[NodeId]) -> Vec<MetadataRecord> {
        let mut records = self.leave(gone);
        let brokers = gone.iter().filter_map(|id| self.image.brokers.get(*id));
        records.extend(
            brokers
                .map(|broker| BrokerRegistrationChangeRecord { fenced: FENCE, ..change_of(broker) }.into()),
        );
        records
    }

    /// The records that unfence a broker, which reported that it lost committed records of some replicas.
    pub(crate) fn unfence(&self, broker: &Broker, lost: &[TopicIdPartition]) -> Vec<MetadataRecord> {
        let id = broker.id;
        let unfence = BrokerRegistrationChangeRecord { fenced: UNFENCE, ..change_of(broker) };
        let lost: BTreeSet<&TopicIdPartition> = lost.iter().collect();
        let mut records = vec![unfence.into()];
        records.extend(self.changes(Moves { gone: &[], back: Some(id) }, |_, of, partition| {
            let has_lost = lost.contains(&of) && !self.mutation.is(Mutant::LostRecordsIgnored);
            let leaderless = partition.leader == NodeId::NONE && partition.has_replica(id);
            let mut wanted = Wanted::from(partition.clone());
            wanted.lost.extend(Some(id).filter(|_| has_lost));
            (leaderless || has_lost).then_some(wanted)
        }));
        records
    }

    /// The records that begin the controlled shutdown of a broker: it may not lead or be in sync again.
    pub(crate) fn begin_shutdown(&self, broker: &Broker) -> Vec<MetadataRecord> {
        let mut records: Vec<MetadataRecord> = Vec::new();
        if !broker.in_controlled_shutdown {
            let stopping = BrokerRegistrationChangeRecord {
                in_controlled_shutdown: IN_CONTROLLED_SHUTDOWN,
                ..change_of(broker)
            };
            records.push(stopping.into());
        }
        records.extend(self.leave(&[broker.id]));
        records
    }

    pub(crate) fn leads_any(&self, id: NodeId) -> bool {
        let mut partitions = self.image.topics.iter().flat_map(|topic| topic.partitions.values());
        partitions.any(|partition| partition.leader == id)
    }

    /// The changes of the partitions in whose ISR any of these is.
    fn leave(&self, gone: &[NodeId]) -> Vec<MetadataRecord> {
        self.changes(Moves { gone, back: None }, |_, _, partition| {
            let counts = partition.isr.iter().any(|node| gone.contains(node));
            counts.then(|| without(partition, gone).into())
        })
    }
}

/// A record of this registration that changes nothing yet.
pub(crate) fn change_of(broker: &Broker) -> BrokerRegistrationChangeRecord {
    BrokerRegistrationChangeRecord {
        broker_id: broker.id.0,
        broker_epoch: broker.epoch.0,
        ..BrokerRegistrationChangeRecord::default()
    }
}
