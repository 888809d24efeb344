//! How a partition changes when a broker goes or comes: who is in sync, who is eligible, who leads.
//!
//! A replica is elected in this order: one that is in sync, in the order of the assignment; one that is eligible; the
//! last known leader; any other, where unclean election is allowed. Without one there is no leader.
//!
//! Invariants: the leader is in sync; a replica is in sync or eligible, never both; nobody is eligible while there are
//! as many in sync as `min.insync.replicas` asks for. With eligible leader replicas switched off, the last replica in
//! sync stays so, whatever becomes of it.
//!
//! Kafka: `PartitionChangeBuilder`; KIP-966.

use metadata::{LeaderRecovery, Partition};
use model::{NodeId, TopicIdPartition};
use protocol::records::metadata::PartitionChangeRecord;

/// What a change goes by.
pub(crate) struct Rules<'a> {
    /// Whether a broker may lead.
    pub is_active: &'a dyn Fn(NodeId) -> bool,
    /// Whether eligible leader replicas are kept.
    pub elr: bool,
    /// `min.insync.replicas` of the topic.
    pub isr_min: usize,
    /// `unclean.leader.election.enable` of the topic.
    pub unclean: bool,
}

/// The partition without `node`, which stopped. `lost` says that it may have lost records which were committed.
pub(crate) fn without(partition: &Partition, node: NodeId, lost: bool, rules: &Rules<'_>) -> Partition {
    let mut after = partition.clone();
    after.isr.retain(|replica| *replica != node);
    if rules.elr {
        keep_eligible(&mut after, partition, rules);
        if lost {
            after.elr.retain(|replica| *replica != node);
        }
        if after.isr.is_empty() && partition.leader != NodeId::NONE {
            after.last_known_elr = vec![partition.leader];
        }
    } else if after.isr.is_empty() {
        after.isr.clone_from(&partition.isr);
    }
    elect(&mut after, rules);
    after
}

/// The partition after it was tried to give it a leader.
pub(crate) fn with_leader(partition: &Partition, rules: &Rules<'_>) -> Partition {
    let mut after = partition.clone();
    elect(&mut after, rules);
    after
}

/// Who was in sync stays eligible while there are not enough in sync.
fn keep_eligible(after: &mut Partition, before: &Partition, rules: &Rules<'_>) {
    if has_enough(after, rules) {
        after.elr.clear();
        after.last_known_elr.clear();
        return;
    }
    for replica in &before.isr {
        if !after.isr.contains(replica) && !after.elr.contains(replica) {
            after.elr.push(*replica);
        }
    }
}

fn has_enough(partition: &Partition, rules: &Rules<'_>) -> bool {
    partition.isr.len() >= rules.isr_min.min(partition.replicas.len())
}

fn elect(partition: &mut Partition, rules: &Rules<'_>) {
    let is_active = rules.is_active;
    if partition.leader != NodeId::NONE
        && partition.isr.contains(&partition.leader)
        && is_active(partition.leader)
    {
        return;
    }
    let candidates: Vec<NodeId> =
        partition.replicas.iter().copied().filter(|node| is_active(*node)).collect();
    let among = |set: &[NodeId]| candidates.iter().copied().find(|node| set.contains(node));
    if let Some(node) = among(&partition.isr) {
        partition.leader = node;
    } else if let Some(node) = among(&partition.elr) {
        lead_alone(partition, node, LeaderRecovery::Recovered, rules);
    } else if let Some(node) = last_known_leader(partition).filter(|node| is_active(*node)) {
        // A single replica has nobody that it could differ from.
        let recovery = if partition.replicas.len() == 1 {
            LeaderRecovery::Recovered
        } else {
            LeaderRecovery::Recovering
        };
        lead_alone(partition, node, recovery, rules);
    } else if let Some(node) = candidates.first().copied().filter(|_| rules.unclean) {
        lead_alone(partition, node, LeaderRecovery::Recovering, rules);
    } else {
        partition.leader = NodeId::NONE;
    }
}

/// Who led last, where neither a replica in sync nor an eligible one is left.
fn last_known_leader(partition: &Partition) -> Option<NodeId> {
    match partition.last_known_elr.as_slice() {
        [only] if partition.isr.is_empty() && partition.elr.is_empty() => Some(*only),
        _ => None,
    }
}

fn lead_alone(partition: &mut Partition, node: NodeId, recovery: LeaderRecovery, rules: &Rules<'_>) {
    partition.leader = node;
    partition.isr = vec![node];
    partition.recovery = recovery;
    partition.elr.retain(|replica| *replica != node);
    partition.last_known_elr.clear();
    if has_enough(partition, rules) {
        partition.elr.clear();
    }
}

/// The record that makes `after` of `before`; `None` if they are the same.
pub(crate) fn record(
    of: TopicIdPartition,
    before: &Partition,
    after: &Partition,
) -> Option<PartitionChangeRecord> {
    if before == after {
        return None;
    }
    let changed = |before: &[NodeId], after: &[NodeId]| {
        (before != after).then(|| after.iter().map(|node| node.0).collect::<Vec<i32>>())
    };
    let unchanged = PartitionChangeRecord::default();
    Some(PartitionChangeRecord {
        partition_id: of.partition,
        topic_id: of.topic_id,
        isr: changed(&before.isr, &after.isr),
        leader: if before.leader == after.leader { unchanged.leader } else { after.leader.0 },
        leader_recovery_state: if before.recovery == after.recovery {
            unchanged.leader_recovery_state
        } else {
            after.recovery as i8
        },
        eligible_leader_replicas: changed(&before.elr, &after.elr),
        last_known_elr: changed(&before.last_known_elr, &after.last_known_elr),
        ..unchanged
    })
}

#[cfg(test)]
mod tests {
    use model::{LeaderEpoch, PartitionEpoch};

    use super::*;

    fn nodes(ids: &[i32]) -> Vec<NodeId> {
        ids.iter().copied().map(NodeId).collect()
    }

    fn partition(replicas: &[i32]) -> Partition {
        Partition {
            replicas: nodes(replicas),
            directories: vec![Partition::UNASSIGNED; replicas.len()],
            isr: nodes(replicas),
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            leader: NodeId(replicas[0]),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            recovery: LeaderRecovery::Recovered,
        }
    }

    fn rules(is_active: &dyn Fn(NodeId) -> bool, isr_min: usize) -> Rules<'_> {
        Rules { is_active, elr: true, isr_min, unclean: false }
    }

    #[test]
    fn the_next_replica_in_sync_takes_over() {
        let is_active = |node| node != NodeId(1);
        let after = without(&partition(&[1, 2, 3]), NodeId(1), false, &rules(&is_active, 1));
        assert_eq!((after.leader, after.isr), (NodeId(2), nodes(&[2, 3])));
        assert!(after.elr.is_empty(), "two in sync are enough");
    }

    #[test]
    fn below_the_minimum_who_was_in_sync_stays_eligible() {
        let is_active = |node| node != NodeId(1);
        let after = without(&partition(&[1, 2]), NodeId(1), false, &rules(&is_active, 2));
        assert_eq!((after.leader, after.isr, after.elr), (NodeId(2), nodes(&[2]), nodes(&[1])));
    }

    #[test]
    fn a_single_replica_leads_again_after_a_clean_stop_and_after_a_loss() {
        for lost in [false, true] {
            let stopped = without(&partition(&[1]), NodeId(1), lost, &rules(&|_| false, 1));
            assert_eq!((stopped.leader, stopped.isr.len()), (NodeId::NONE, 0));
            assert_eq!(stopped.elr.is_empty(), lost);
            let back = with_leader(&stopped, &rules(&|_| true, 1));
            assert_eq!((back.leader, &back.isr), (NodeId(1), &nodes(&[1])));
            assert!(back.elr.is_empty() && back.last_known_elr.is_empty());
            assert_eq!(back.recovery, LeaderRecovery::Recovered);
        }
    }

    #[test]
    fn the_last_known_leader_of_several_replicas_has_to_recover() {
        let alone = Partition { isr: nodes(&[1]), ..partition(&[1, 2]) };
        let stopped = without(&alone, NodeId(1), true, &rules(&|_| false, 1));
        assert_eq!(stopped.last_known_elr, nodes(&[1]));
        let back = with_leader(&stopped, &rules(&|_| true, 1));
        assert_eq!((back.leader, back.recovery), (NodeId(1), LeaderRecovery::Recovering));
    }

    #[test]
    fn a_replica_that_is_neither_in_sync_nor_eligible_leads_only_where_that_is_allowed() {
        let is_active = |node| node == NodeId(2);
        let alone = Partition { isr: nodes(&[1]), ..partition(&[1, 2]) };
        let clean = without(&alone, NodeId(1), false, &rules(&is_active, 1));
        assert_eq!((clean.leader, &clean.elr), (NodeId::NONE, &nodes(&[1])));
        let allowed = Rules { unclean: true, ..rules(&is_active, 1) };
        let unclean = without(&alone, NodeId(1), false, &allowed);
        assert_eq!((unclean.leader, unclean.isr), (NodeId(2), nodes(&[2])));
        assert_eq!(unclean.recovery, LeaderRecovery::Recovering);
    }

    #[test]
    fn without_eligible_replicas_the_last_one_in_sync_stays_so() {
        let off = Rules { elr: false, ..rules(&|_| false, 1) };
        let stopped = without(&partition(&[1]), NodeId(1), false, &off);
        assert_eq!((stopped.leader, stopped.isr), (NodeId::NONE, nodes(&[1])));
    }

    #[test]
    fn a_record_has_only_what_changed() {
        let before = partition(&[1, 2]);
        let of = TopicIdPartition { topic_id: model::Uuid([1; 16]), partition: 0 };
        assert_eq!(record(of, &before, &before), None);
        let after = without(&before, NodeId(2), false, &rules(&|_| true, 1));
        let change = record(of, &before, &after).expect("a change");
        assert_eq!((change.isr, change.leader), (Some(vec![1]), -2));
        assert_eq!(change.eligible_leader_replicas, None);
    }
}
