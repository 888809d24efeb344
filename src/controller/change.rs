//! How a partition changes: who is in sync, who is eligible, who leads, when a reassignment is done.
//!
//! A change begins with what is wanted of the partition: another ISR, other replicas, another folder. From there
//! [`settle`] goes on in a fixed order: a reassignment that has all it needs ends; who leaves the ISR while it is small
//! stays eligible; a leader is elected; the last known leader is noted; the epochs grow.
//!
//! A replica is elected in this order: the current leader, if it may go on; one that is in sync, in the order of the
//! assignment; where nobody is in sync, one that is eligible; the last known leader; any other, where unclean election
//! is allowed. Without one there is no leader.
//!
//! Invariants: in sync and eligible are replicas; the leader is in sync; a replica is in sync or eligible, never both;
//! nobody is eligible while there are as many in sync as `min.insync.replicas` asks for, for then the high watermark may
//! pass those who are not. With eligible leader replicas switched off, the last replica in sync stays so, whatever
//! becomes of it.
//!
//! Kafka: `PartitionChangeBuilder`; KIP-966, KAFKA-15021 (a smaller ISR is no new leader epoch).

use metadata::{LeaderRecovery, Partition};
use model::{LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition};
use protocol::records::metadata::PartitionChangeRecord;

use crate::mutant::{Mutant, Mutation};
use crate::reassignments::complete_if_done;

/// What a change goes by.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Who may lead: active, and its folder works.
    pub(crate) candidates: Vec<NodeId>,
    /// Whether eligible leader replicas are kept.
    pub(crate) elr: bool,
    /// `min.insync.replicas` of the topic.
    pub(crate) isr_min: usize,
    /// How a leader is elected.
    pub(crate) election: Election,
    /// Who may have lost records that were committed.
    pub(crate) lost: Vec<NodeId>,
    pub(crate) mutation: Mutation,
}

/// How a leader is elected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Election {
    /// The preferred replica, if it may; else as `Online`.
    Preferred,
    /// Only who holds all that was committed, or led last.
    Online,
    /// Anybody, if need be.
    Unclean,
}

/// Who won an election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Winner {
    InSync(NodeId),
    Eligible(NodeId),
    Unclean(NodeId),
    Nobody,
}

/// What becomes of `before` when `wanted` is wanted of it. Its epochs have grown if anything changed.
pub(crate) fn settle(before: &Partition, wanted: Partition, rules: &Rules) -> Partition {
    let mut after = wanted;
    complete_if_done(&mut after, rules.mutation);
    keep_eligible(&mut after, before, rules);
    elect(&mut after, before, rules);
    if !rules.elr && after.isr.is_empty() {
        after.isr = before.isr.iter().copied().filter(|node| after.has_replica(*node)).collect();
    }
    note_last_leader(&mut after, before, rules);
    if after == *before {
        return after;
    }
    let has_lost_replica = before.replicas.iter().any(|node| !after.has_replica(*node));
    let is_new_epoch = after.leader != before.leader || has_lost_replica;
    after.leader_epoch = LeaderEpoch(before.leader_epoch.0.saturating_add(i32::from(is_new_epoch)));
    after.partition_epoch = PartitionEpoch(before.partition_epoch.0.saturating_add(1));
    after
}

/// Who was in sync stays eligible while there are not enough in sync.
fn keep_eligible(after: &mut Partition, before: &Partition, rules: &Rules) {
    if !rules.elr || has_enough(after, rules) {
        after.elr.clear();
        return;
    }
    let left = before.isr.iter().filter(|node| !before.elr.contains(node));
    let candidates: Vec<NodeId> = before.elr.iter().chain(left).copied().collect();
    let stays =
        |node: &NodeId| after.has_replica(*node) && !after.isr.contains(node) && !rules.lost.contains(node);
    after.elr = candidates.into_iter().filter(stays).collect();
}

fn has_enough(partition: &Partition, rules: &Rules) -> bool {
    partition.isr.len() >= rules.isr_min.min(partition.replicas.len())
}

fn elect(after: &mut Partition, before: &Partition, rules: &Rules) {
    match winner(after, before, rules) {
        Winner::InSync(node) => after.leader = node,
        Winner::Eligible(node) => lead_alone(after, node, rules),
        Winner::Unclean(node) => {
            lead_alone(after, node, rules);
            after.elr.clear();
            // A single replica has nobody that it could differ from.
            if after.replicas.len() > 1 {
                after.recovery = LeaderRecovery::Recovering;
            }
        }
        Winner::Nobody => after.leader = NodeId::NONE,
    }
}

fn winner(after: &Partition, before: &Partition, rules: &Rules) -> Winner {
    let candidates = || after.replicas.iter().copied().filter(|node| rules.candidates.contains(node));
    let is_valid = |node: &NodeId| {
        let set = if after.isr.is_empty() { &after.elr } else { &after.isr };
        set.contains(node) && rules.candidates.contains(node) && after.has_replica(*node)
    };
    let preferred = after.replicas.first().filter(|_| rules.election == Election::Preferred);
    let valid = preferred.copied().filter(is_valid);
    let valid = valid.or_else(|| Some(before.leader).filter(is_valid));
    match valid.or_else(|| candidates().find(is_valid)) {
        Some(node) if after.isr.contains(&node) => return Winner::InSync(node),
        Some(node) => return Winner::Eligible(node),
        None => {}
    }
    if let Some(node) = last_known_leader(after, rules) {
        return Winner::Unclean(node);
    }
    let anybody = candidates().next().filter(|_| rules.election == Election::Unclean);
    anybody.map_or(Winner::Nobody, Winner::Unclean)
}

/// Who led last, where neither a replica in sync nor an eligible one is left.
fn last_known_leader(after: &Partition, rules: &Rules) -> Option<NodeId> {
    let [only] = after.last_known_elr.as_slice() else { return None };
    let is_last_resort = rules.elr && after.isr.is_empty() && after.elr.is_empty();
    let may_lead = rules.candidates.contains(only) || rules.mutation.is(Mutant::FencedLastKnownLeaderElected);
    (is_last_resort && may_lead && after.has_replica(*only)).then_some(*only)
}

fn lead_alone(partition: &mut Partition, node: NodeId, rules: &Rules) {
    partition.leader = node;
    partition.isr = vec![node];
    partition.elr.retain(|replica| *replica != node);
    if has_enough(partition, rules) {
        partition.elr.clear();
    }
}

/// When nobody leads any more it is noted who did, until somebody leads again.
fn note_last_leader(after: &mut Partition, before: &Partition, rules: &Rules) {
    if after.leader != NodeId::NONE {
        after.last_known_elr.clear();
    } else if rules.elr && after.has_replica(before.leader) {
        after.last_known_elr = vec![before.leader];
    }
}

/// The record that makes `after`, which was settled, of `before`; `None` if they are the same.
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
    let is_new_epoch = before.leader_epoch != after.leader_epoch;
    Some(PartitionChangeRecord {
        partition_id: of.partition,
        topic_id: of.topic_id,
        replicas: changed(&before.replicas, &after.replicas),
        adding_replicas: changed(&before.adding_replicas, &after.adding_replicas),
        removing_replicas: changed(&before.removing_replicas, &after.removing_replicas),
        directories: (before.directories != after.directories).then(|| after.directories.clone()),
        isr: changed(&before.isr, &after.isr),
        leader: if is_new_epoch { after.leader.0 } else { unchanged.leader },
        leader_recovery_state: if before.recovery == after.recovery {
            unchanged.leader_recovery_state
        } else {
            after.recovery as i8
        },
        eligible_leader_replicas: changed(&before.elr, &after.elr),
        last_known_elr: changed(&before.last_known_elr, &after.last_known_elr),
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

    fn rules(candidates: &[i32], isr_min: usize) -> Rules {
        Rules {
            candidates: nodes(candidates),
            elr: true,
            isr_min,
            election: Election::Online,
            lost: Vec::new(),
            mutation: Mutation::default(),
        }
    }

    /// The partition after `node` stopped, or lost what it had.
    fn without(partition: &Partition, node: i32, lost: bool, rules: &Rules) -> Partition {
        let mut wanted = partition.clone();
        wanted.isr.retain(|replica| *replica != NodeId(node));
        let lost = if lost { nodes(&[node]) } else { Vec::new() };
        settle(partition, wanted, &Rules { lost, ..rules.clone() })
    }

    fn with_leader(partition: &Partition, rules: &Rules) -> Partition {
        settle(partition, partition.clone(), rules)
    }

    #[test]
    fn the_next_replica_in_sync_takes_over() {
        let after = without(&partition(&[1, 2, 3]), 1, false, &rules(&[2, 3], 1));
        assert_eq!((after.leader, after.isr), (NodeId(2), nodes(&[2, 3])));
        assert!(after.elr.is_empty(), "two in sync are enough");
    }

    #[test]
    fn below_the_minimum_who_was_in_sync_stays_eligible() {
        let after = without(&partition(&[1, 2]), 1, false, &rules(&[2], 2));
        assert_eq!((after.leader, after.isr, after.elr), (NodeId(2), nodes(&[2]), nodes(&[1])));
    }

    #[test]
    fn a_single_replica_leads_again_after_a_clean_stop_and_after_a_loss() {
        for lost in [false, true] {
            let stopped = without(&partition(&[1]), 1, lost, &rules(&[], 1));
            assert_eq!((stopped.leader, stopped.isr.len()), (NodeId::NONE, 0));
            assert_eq!(stopped.elr.is_empty(), lost);
            let back = with_leader(&stopped, &rules(&[1, 2], 1));
            assert_eq!((back.leader, &back.isr), (NodeId(1), &nodes(&[1])));
            assert!(back.elr.is_empty() && back.last_known_elr.is_empty());
            assert_eq!(back.recovery, LeaderRecovery::Recovered);
        }
    }

    #[test]
    fn the_last_known_leader_of_several_replicas_has_to_recover() {
        let alone = Partition { isr: nodes(&[1]), ..partition(&[1, 2]) };
        let stopped = without(&alone, 1, true, &rules(&[], 1));
        assert_eq!(stopped.last_known_elr, nodes(&[1]));
        let back = with_leader(&stopped, &rules(&[1, 2], 1));
        assert_eq!((back.leader, back.recovery), (NodeId(1), LeaderRecovery::Recovering));
    }

    #[test]
    fn a_replica_that_is_neither_in_sync_nor_eligible_leads_only_where_that_is_allowed() {
        let alone = Partition { isr: nodes(&[1]), ..partition(&[1, 2]) };
        let clean = without(&alone, 1, false, &rules(&[2], 1));
        assert_eq!((clean.leader, &clean.elr), (NodeId::NONE, &nodes(&[1])));
        let allowed = Rules { election: Election::Unclean, ..rules(&[2], 1) };
        let unclean = without(&alone, 1, false, &allowed);
        assert_eq!((unclean.leader, unclean.isr), (NodeId(2), nodes(&[2])));
        assert_eq!(unclean.recovery, LeaderRecovery::Recovering);
    }

    #[test]
    fn without_eligible_replicas_the_last_one_in_sync_stays_so() {
        let off = Rules { elr: false, ..rules(&[], 1) };
        let stopped = without(&partition(&[1]), 1, false, &off);
        assert_eq!((stopped.leader, stopped.isr), (NodeId::NONE, nodes(&[1])));
    }

    #[test]
    fn a_record_has_only_what_changed() {
        let before = partition(&[1, 2]);
        let of = TopicIdPartition { topic_id: model::Uuid([1; 16]), partition: 0 };
        assert_eq!(record(of, &before, &before), None);
        let after = without(&before, 2, false, &rules(&[1, 2], 1));
        let change = record(of, &before, &after).expect("a change");
        assert_eq!((change.isr, change.leader), (Some(vec![1]), -2));
        assert_eq!(change.eligible_leader_replicas, None);
    }
}
