//! Reassignments that are under way.
//!
//! Kafka: `PartitionReassignmentReplicas`; KIP-455, KAFKA-15665, KAFKA-19975.

use metadata::Partition;
use model::NodeId;

use crate::mutant::{Mutant, Mutation};

/// Ends a reassignment whose replicas are ready: those that are removed go.
///
/// Ready is who was added and is in sync. Where there will be fewer replicas than before, all that stay must be in sync,
/// or the copies that go would have been the last ones.
pub(crate) fn complete_if_done(partition: &mut Partition, mutation: Mutation) {
    if !partition.is_reassigning() {
        return;
    }
    let stays = |node: &NodeId| !partition.removing_replicas.contains(node);
    let replicas: Vec<NodeId> = partition.replicas.iter().copied().filter(stays).collect();
    let isr: Vec<NodeId> = partition.isr.iter().copied().filter(stays).collect();
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
