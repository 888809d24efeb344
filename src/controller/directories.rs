//! Log folders of brokers: those that fail, and which replica is in which.
//!
//! A replica in a folder that failed is out of the ISR and leads nothing, while the broker's others go on. One that moves
//! from a folder which works to another has its records with it; one that turns up in another folder while its own is
//! away was begun anew, and is empty.
//!
//! Kafka: `ReplicationControlManager.handleDirectoriesOffline`, `handleAssignReplicasToDirs`; KIP-112, KIP-858.

use std::collections::BTreeMap;

use metadata::{Broker, Partition};
use model::{BrokerEpoch, DirectoryId, NodeId, TopicIdPartition};
use protocol::records::metadata::{BrokerRegistrationChangeRecord, MetadataRecord};

use crate::brokers::forget_last_leader;
use crate::fencing::change_of;
use crate::mutant::Mutant;
use crate::partition_changes::{Moves, Wanted, without};
use crate::{AssignReplicaError, BrokerError, Controller, Decision};

/// Where a broker has its replicas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignReplicasToDirs {
    /// The broker.
    pub broker: NodeId,
    /// The epoch of its registration.
    pub broker_epoch: BrokerEpoch,
    /// The folder of each; where one is named twice, the later counts.
    pub replicas: Vec<(DirectoryId, TopicIdPartition)>,
}

/// What came of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedReplica {
    /// The folder.
    pub directory: DirectoryId,
    /// The partition.
    pub partition: TopicIdPartition,
    /// Why it is not noted.
    pub result: Result<(), AssignReplicaError>,
}

impl Controller {
    /// Decides to note in which folders a broker has its replicas.
    pub fn assign_replicas_to_dirs(
        &self,
        command: &AssignReplicasToDirs,
    ) -> Decision<Result<Vec<AssignedReplica>, BrokerError>> {
        if let Err(error) = self.check_epoch(command.broker, command.broker_epoch) {
            return Decision::nothing(Err(error));
        }
        let assigned = |(directory, of): &(DirectoryId, TopicIdPartition)| AssignedReplica {
            directory: *directory,
            partition: *of,
            result: self.check_replica(command.broker, *of),
        };
        let reply: Vec<AssignedReplica> = command.replicas.iter().map(assigned).collect();
        let taken = reply.iter().filter(|replica| replica.result.is_ok());
        let folders: BTreeMap<_, _> = taken.map(|replica| (replica.partition, replica.directory)).collect();
        let records = self.changes(Moves::default(), |_, of, partition| {
            let directory = folders.get(&of)?;
            Some(self.in_directory(command.broker, partition, *directory))
        });
        Decision { records, reply: Ok(reply) }
    }

    fn check_replica(&self, broker: NodeId, of: TopicIdPartition) -> Result<(), AssignReplicaError> {
        let topic = self.image.topics.by_id(of.topic_id).ok_or(AssignReplicaError::UnknownTopic)?;
        let partition = topic.partitions.get(&of.partition).ok_or(AssignReplicaError::UnknownPartition)?;
        if partition.has_replica(broker) { Ok(()) } else { Err(AssignReplicaError::NotReplica) }
    }

    /// The partition with the replica on `node` in this folder, and out of the ISR if that has failed.
    fn in_directory(&self, node: NodeId, partition: &Partition, directory: DirectoryId) -> Wanted {
        let works =
            |directory| self.image.brokers.get(node).is_some_and(|broker| broker.has_directory(directory));
        let before = partition.directory(node);
        let is_new = before != directory && !works(before) && !self.mutation.is(Mutant::EmptyDiskCounted);
        let goes = is_new || !works(directory);
        let mut wanted = Wanted::from(if goes { without(partition, &[node]) } else { partition.clone() });
        if is_new {
            wanted.lost.push(node);
            forget_last_leader(&mut wanted.partition, node);
        }
        for (replica, place) in partition.replicas.iter().zip(&mut wanted.partition.directories) {
            if *replica == node {
                *place = directory;
            }
        }
        wanted
    }

    /// The records that take a broker's folders out of use; none if they already are.
    pub(crate) fn directories_offline(
        &self,
        broker: &Broker,
        offline: &[DirectoryId],
    ) -> Vec<MetadataRecord> {
        let (failed, online): (Vec<DirectoryId>, Vec<DirectoryId>) =
            broker.directories.iter().copied().partition(|directory| offline.contains(directory));
        // A broker without any folder ends by itself, and the record cannot say it.
        if failed.is_empty() || online.is_empty() {
            return Vec::new();
        }
        let gone = [broker.id];
        let mut records = self.changes(Moves { gone: &gone, back: None }, |_, _, partition| {
            let is_there =
                partition.has_replica(broker.id) && failed.contains(&partition.directory(broker.id));
            is_there.then(|| without(partition, &gone).into())
        });
        records.push(BrokerRegistrationChangeRecord { log_dirs: online, ..change_of(broker) }.into());
        records
    }
}
