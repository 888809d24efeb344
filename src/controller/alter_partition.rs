//! Leaders that ask for another ISR.
//!
//! A leader is answered on what the controller knows, never on what the leader believes: epochs first, in both
//! directions, then whether each replica that it names may be in sync at all. A leader that is ahead of this controller
//! shows that another controller has taken over.
//!
//! Kafka: `ReplicationControlManager.alterPartition`; KIP-497, KIP-841 (fenced and stopping replicas), KIP-903 (the run of
//! the broker that was seen to be in sync), KAFKA-14154.

use std::collections::BTreeSet;

use metadata::{LeaderRecovery, Partition, Topic};
use model::{BrokerEpoch, LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, TopicIdPartition};
use protocol::records::metadata::MetadataRecord;

use crate::mutant::Mutant;
use crate::partition_changes::Moves;
use crate::{AlterPartitionError, BrokerError, ConnectionId, Controller, Decision, change};

/// What a broker asks for the partitions that it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartition {
    /// The leader.
    pub broker: NodeId,
    /// The epoch of its registration.
    pub broker_epoch: BrokerEpoch,
    /// Its partitions.
    pub partitions: Vec<NewIsr>,
}

/// The ISR that a leader asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewIsr {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
    /// The epoch that it leads in.
    pub leader_epoch: LeaderEpoch,
    /// What it takes for the partition's epoch.
    pub partition_epoch: PartitionEpoch,
    /// Who shall be in sync, each with the epoch of the run that was seen to be; none where that is not known.
    pub isr: Vec<(NodeId, Option<BrokerEpoch>)>,
    /// Whether the leader has cleaned up after an unclean election.
    pub recovery: LeaderRecovery,
}

/// What came of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredPartition {
    /// The topic.
    pub topic: TopicId,
    /// The partition.
    pub partition: PartitionIndex,
    /// What it is like now, or why it is not what was asked for.
    pub result: Result<Partition, AlterPartitionError>,
}

impl Controller {
    /// Whether a broker's AlterPartition may be carried out that came in on this connection: it has not used a later one.
    pub fn takes_changes_from(&mut self, id: NodeId, epoch: BrokerEpoch, connection: ConnectionId) -> bool {
        self.sessions.alters(id, epoch, connection)
    }

    /// Decides on new ISRs, in the order of the request.
    pub fn alter_partition(
        &self,
        command: &AlterPartition,
    ) -> Decision<Result<Vec<AlteredPartition>, BrokerError>> {
        if let Err(error) = self.check_epoch(command.broker, command.broker_epoch) {
            return Decision::nothing(Err(error));
        }
        let (mut records, mut seen) = (Vec::new(), BTreeSet::new());
        let alter = |wanted: &NewIsr| AlteredPartition {
            topic: wanted.topic,
            partition: wanted.partition,
            // The second change of a partition would be decided on what was before the first.
            result: if seen.insert((wanted.topic, wanted.partition)) {
                self.alter_isr(command.broker, wanted, &mut records)
            } else {
                Err(AlterPartitionError::OldPartitionEpoch)
            },
        };
        let reply = command.partitions.iter().map(alter).collect();
        Decision { records, reply: Ok(reply) }
    }

    fn alter_isr(
        &self,
        sender: NodeId,
        wanted: &NewIsr,
        records: &mut Vec<MetadataRecord>,
    ) -> Result<Partition, AlterPartitionError> {
        let (topic, before) = self.found(wanted)?;
        self.check_new_isr(sender, before, wanted)?;
        let isr = wanted.isr.iter().map(|(node, _)| *node).collect();
        let target = Partition { isr, recovery: wanted.recovery, ..before.clone() };
        let after = self.settled(topic, before, target.into(), Moves::default());
        let of = TopicIdPartition { topic_id: topic.id, partition: wanted.partition };
        records.extend(change::record(of, before, &after).map(MetadataRecord::from));
        // The new ISR ended a reassignment, and with it the leadership of who asked.
        if after.leader != sender {
            return Err(AlterPartitionError::NewLeaderElected);
        }
        Ok(after)
    }

    fn found(&self, wanted: &NewIsr) -> Result<(&Topic, &Partition), AlterPartitionError> {
        let topic = self.image.topics.by_id(wanted.topic).ok_or(AlterPartitionError::UnknownTopic)?;
        let partition = topic.partitions.get(&wanted.partition);
        Ok((topic, partition.ok_or(AlterPartitionError::UnknownPartition)?))
    }

    fn check_new_isr(
        &self,
        sender: NodeId,
        partition: &Partition,
        wanted: &NewIsr,
    ) -> Result<(), AlterPartitionError> {
        let is_ahead = wanted.leader_epoch > partition.leader_epoch
            || wanted.partition_epoch > partition.partition_epoch;
        let is_stale = wanted.partition_epoch < partition.partition_epoch
            && !self.mutation.is(Mutant::StaleAlterPartitionTaken);
        if is_ahead {
            return Err(AlterPartitionError::AheadOfController);
        }
        if wanted.leader_epoch < partition.leader_epoch {
            return Err(AlterPartitionError::OldLeaderEpoch);
        }
        if sender != partition.leader {
            return Err(AlterPartitionError::NotLeader);
        }
        if is_stale {
            return Err(AlterPartitionError::OldPartitionEpoch);
        }
        check_members(partition, wanted)?;
        let is_ineligible = |(node, epoch): &&(NodeId, Option<BrokerEpoch>)| !self.may_join(*node, *epoch);
        match wanted.isr.iter().find(is_ineligible) {
            Some((node, _)) => Err(AlterPartitionError::Ineligible(*node)),
            None => Ok(()),
        }
    }

    /// Whether a replica may be in sync: its broker is active, and still in the run that was seen to be.
    fn may_join(&self, node: NodeId, epoch: Option<BrokerEpoch>) -> bool {
        let Some(broker) = self.image.brokers.get(node) else { return false };
        let is_active = broker.is_active() || self.mutation.is(Mutant::FencedReplicaAdded);
        let is_same_run =
            epoch.is_none_or(|epoch| epoch == broker.epoch) || self.mutation.is(Mutant::OldBrokerEpochTaken);
        is_active && is_same_run
    }
}

/// Whether these may be the ISR, whoever they are.
fn check_members(partition: &Partition, wanted: &NewIsr) -> Result<(), AlterPartitionError> {
    let isr: Vec<NodeId> = wanted.isr.iter().map(|(node, _)| *node).collect();
    let once = isr.iter().enumerate().all(|(place, node)| !isr[..place].contains(node));
    if !once || !isr.iter().all(|node| partition.has_replica(*node)) || !isr.contains(&partition.leader) {
        return Err(AlterPartitionError::InvalidIsr);
    }
    let recovering = wanted.recovery == LeaderRecovery::Recovering;
    if recovering && (isr.len() > 1 || partition.recovery == LeaderRecovery::Recovered) {
        return Err(AlterPartitionError::InvalidRecovery);
    }
    Ok(())
}
