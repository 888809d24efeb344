//! Replicas that move from brokers to brokers.
//!
//! A reassignment first adds: the partition has the replicas of both assignments, and knows which come and which go. When
//! those that come are in sync, whatever change brings that about ends it: those that go are gone. Called off, it is the
//! other way round.
//!
//! Invariants: a replica leaves only with a new leader epoch, so that no leader counts it by mistake; a reassignment to
//! fewer replicas does not end with fewer copies than it leaves.
//!
//! Kafka: `ReplicationControlManager.alterPartitionReassignments`, `PartitionReassignmentReplicas`,
//! `PartitionReassignmentRevert`; KIP-455, KIP-860 (the replication factor), KAFKA-15665, KAFKA-19975.

use std::collections::BTreeSet;

use metadata::{Partition, Topic};
use model::{NodeId, PartitionIndex, TopicIdPartition};
use protocol::records::metadata::MetadataRecord;

use crate::change::Election;
use crate::mutant::{Mutant, Mutation};
use crate::partition_changes::Moves;
use crate::{Controller, Decision, ReassignmentError, change, placement};

/// Reassignments to begin, to change, or to call off.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlterPartitionReassignments {
    /// Whether a partition may get more or fewer replicas.
    pub allow_replication_factor_change: bool,
    /// One after the other; each is taken or refused by itself.
    pub reassignments: Vec<Reassignment>,
}

/// What replicas a partition shall have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reassignment {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// Its replicas, the preferred leader first; `None` calls the reassignment off.
    pub replicas: Option<Vec<NodeId>>,
}

/// What came of a reassignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlteredReassignment {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// Why it is refused.
    pub result: Result<(), ReassignmentError>,
}

/// A reassignment that is under way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OngoingReassignment {
    /// The topic.
    pub topic: String,
    /// The partition.
    pub partition: PartitionIndex,
    /// All its replicas, those that come and go included.
    pub replicas: Vec<NodeId>,
    /// Those that come.
    pub adding: Vec<NodeId>,
    /// Those that go.
    pub removing: Vec<NodeId>,
}

impl Controller {
    /// Decides on reassignments, in the order of the request.
    pub fn alter_partition_reassignments(
        &self,
        command: &AlterPartitionReassignments,
    ) -> Decision<Vec<AlteredReassignment>> {
        let (mut records, mut seen) = (Vec::new(), BTreeSet::new());
        let mut reply = Vec::with_capacity(command.reassignments.len());
        for reassignment in &command.reassignments {
            let Reassignment { topic, partition, .. } = reassignment;
            let result = if seen.insert((topic, *partition)) {
                self.reassign(reassignment, command.allow_replication_factor_change)
            } else {
                Err(ReassignmentError::Twice)
            };
            let result = result.map(|record| records.extend(record));
            reply.push(AlteredReassignment { topic: topic.clone(), partition: *partition, result });
        }
        Decision { records, reply }
    }

    /// The reassignments of these topics' partitions, or all, that are under way.
    pub fn list_partition_reassignments(
        &self,
        topics: Option<&[(String, Vec<PartitionIndex>)]>,
    ) -> Vec<OngoingReassignment> {
        let of_all = || self.image.topics.iter().flat_map(|topic| ongoing(topic, topic.partitions.keys()));
        let Some(topics) = topics else { return of_all().collect() };
        let named =
            topics.iter().filter_map(|(name, indexes)| Some((self.image.topics.by_name(name)?, indexes)));
        named.flat_map(|(topic, indexes)| ongoing(topic, indexes)).collect()
    }

    fn reassign(
        &self,
        reassignment: &Reassignment,
        may_resize: bool,
    ) -> Result<Option<MetadataRecord>, ReassignmentError> {
        let Reassignment { topic: name, partition: index, replicas } = reassignment;
        let topic = self.image.topics.by_name(name);
        let topic = topic.ok_or_else(|| ReassignmentError::UnknownTopic(name.clone()))?;
        let unknown = || ReassignmentError::UnknownPartition { topic: name.clone(), partition: *index };
        let before = topic.partitions.get(index).ok_or_else(unknown)?;
        let wanted = match replicas {
            Some(replicas) => self.reassigned(before, replicas, may_resize)?,
            None => self.reverted(topic, *index, before)?,
        };
        let after = self.settled(topic, before, wanted.into(), Moves::default());
        let of = TopicIdPartition { topic_id: topic.id, partition: *index };
        Ok(change::record(of, before, &after).map(Into::into))
    }

    /// The partition on its way to `target`.
    fn reassigned(
        &self,
        before: &Partition,
        target: &[NodeId],
        may_resize: bool,
    ) -> Result<Partition, ReassignmentError> {
        let from = before.replicas.len() - before.removing_replicas.len();
        if !may_resize && from != target.len() {
            return Err(ReassignmentError::OtherFactor { from, to: target.len() });
        }
        self.check_assignment(target, None)?;
        Ok(self.moving(before, target))
    }

    /// The partition with the replicas of both assignments. Who came with an earlier reassignment is still coming.
    pub(crate) fn moving(&self, before: &Partition, target: &[NodeId]) -> Partition {
        let original = original(before);
        let removing = difference(&before.replicas, target);
        let adding = difference(target, &original);
        let replicas = target.iter().chain(&removing).copied().collect();
        let moved = self.with_replicas(before, replicas);
        Partition { adding_replicas: adding, removing_replicas: removing, ..moved }
    }

    /// The partition as it was before its reassignment.
    fn reverted(
        &self,
        topic: &Topic,
        index: PartitionIndex,
        before: &Partition,
    ) -> Result<Partition, ReassignmentError> {
        if !before.is_reassigning() {
            return Err(ReassignmentError::NotInProgress);
        }
        let original = original(before);
        let mut holders = before.isr.iter().chain(&before.elr).peekable();
        let is_unclean = holders.peek().is_some() && !holders.any(|node| original.contains(node));
        if is_unclean && self.topic_election(topic) != Election::Unclean {
            return Err(ReassignmentError::UncleanRevert { topic: topic.name.to_string(), partition: index });
        }
        let mut reverted = self.with_replicas(before, original);
        reverted.isr.retain(|node| reverted.replicas.contains(node));
        Ok(Partition { adding_replicas: Vec::new(), removing_replicas: Vec::new(), ..reverted })
    }

    /// The partition with these replicas, each in the folder that it has, or that its broker gives it.
    fn with_replicas(&self, before: &Partition, replicas: Vec<NodeId>) -> Partition {
        let directory = |node: &NodeId| {
            if before.has_replica(*node) {
                before.directory(*node)
            } else {
                placement::directory(&self.image, *node)
            }
        };
        Partition { directories: replicas.iter().map(directory).collect(), replicas, ..before.clone() }
    }
}

/// The reassignments of these partitions that are under way.
fn ongoing<'a>(
    topic: &'a Topic,
    indexes: impl IntoIterator<Item = &'a PartitionIndex>,
) -> impl Iterator<Item = OngoingReassignment> {
    let partitions = indexes.into_iter().filter_map(|index| topic.partitions.get_key_value(index));
    let moving = partitions.filter(|(_, partition)| partition.is_reassigning());
    moving.map(|(index, partition)| OngoingReassignment {
        topic: topic.name.to_string(),
        partition: *index,
        replicas: partition.replicas.clone(),
        adding: partition.adding_replicas.clone(),
        removing: partition.removing_replicas.clone(),
    })
}

/// Who is in `all` and not in `others`, by number.
fn difference(all: &[NodeId], others: &[NodeId]) -> Vec<NodeId> {
    let mut rest: Vec<NodeId> = all.iter().copied().filter(|node| !others.contains(node)).collect();
    rest.sort_unstable();
    rest
}

/// The replicas without those that come.
fn original(partition: &Partition) -> Vec<NodeId> {
    let replicas = partition.replicas.iter().copied();
    replicas.filter(|node| !partition.adding_replicas.contains(node)).collect()
}

/// Ends a reassignment that is done: those who come are in sync. Where the partition gets fewer replicas than it had, all
/// that stay must be, too: they are the copies that are left.
pub(crate) fn complete_if_done(partition: &mut Partition, mutation: Mutation) {
    if !partition.is_reassigning() {
        return;
    }
    let goes = |node: &NodeId| partition.removing_replicas.contains(node);
    let replicas: Vec<NodeId> = partition.replicas.iter().copied().filter(|node| !goes(node)).collect();
    let isr: Vec<NodeId> = partition.isr.iter().copied().filter(|node| !goes(node)).collect();
    let shrinks = partition.removing_replicas.len() > partition.adding_replicas.len();
    let needed = if shrinks { &replicas } else { &partition.adding_replicas };
    let is_ready = needed.iter().all(|node| isr.contains(node)) || mutation.is(Mutant::ReassignmentEndsEarly);
    if isr.is_empty() || replicas.is_empty() || !is_ready {
        return;
    }
    partition.directories = replicas.iter().map(|node| partition.directory(*node)).collect();
    partition.replicas = replicas;
    partition.isr = isr;
    partition.removing_replicas.clear();
    partition.adding_replicas.clear();
}
