//! Where the replicas of new partitions go: round robin over the brokers, from a random one on.
//!
//! Invariants: no partition has two replicas on one broker; leaders are spread evenly over the brokers that are active;
//! a broker that is fenced gets replicas only when there are not enough active ones.
//!
//! Kafka: `StripedReplicaPlacer`, without racks.

use metadata::Image;
use model::{DirectoryId, NodeId};

use crate::{Random, TopicError};

/// The replicas of `count` new partitions, the leader of each first.
pub(crate) fn place(
    image: &Image,
    count: usize,
    factor: i16,
    random: Random<'_>,
) -> Result<Vec<Vec<NodeId>>, TopicError> {
    let (active, fenced): (Vec<_>, Vec<_>) = image.brokers.iter().partition(|broker| broker.is_active());
    let ids = |brokers: Vec<&std::sync::Arc<metadata::Broker>>| -> Vec<NodeId> {
        brokers.into_iter().map(|broker| broker.id).collect()
    };
    let (active, fenced) = (ids(active), ids(fenced));
    check(active.len(), fenced.len(), factor)?;
    let start = random() as usize % active.len();
    Ok((0..count).map(|i| replicas(&active, &fenced, start + i, factor as usize)).collect())
}

fn check(active: usize, fenced: usize, factor: i16) -> Result<(), TopicError> {
    let refuse = |reason: String| Err(TopicError::Unreplicable { factor, reason });
    if active == 0 {
        return refuse(
            "All brokers are currently fenced, or have all their log directories cordoned.".into(),
        );
    }
    if factor as usize > active + fenced {
        return refuse(format!(
            "The target replication factor of {factor} cannot be reached because only {} broker(s) are registered \
             or some brokers have all their log directories cordoned.",
            active + fenced
        ));
    }
    Ok(())
}

fn replicas(active: &[NodeId], fenced: &[NodeId], turn: usize, factor: usize) -> Vec<NodeId> {
    // Each full turn moves the followers by one more, so that the load of a lost leader goes to all others.
    let shift = 1 + (turn / active.len()) % active.len().max(2).saturating_sub(1);
    let leader = active[turn % active.len()];
    let followers = (0..active.len()).map(|k| active[(turn + shift + k) % active.len()]);
    let followers = followers.filter(|node| *node != leader).chain(fenced.iter().copied());
    std::iter::once(leader).chain(followers).take(factor).collect()
}

/// The folder that a new replica on `node` goes to: its only one, or any.
pub(crate) fn directory(image: &Image, node: NodeId) -> DirectoryId {
    match image.brokers.get(node).map(|broker| broker.directories.as_slice()) {
        Some([only]) => *only,
        _ => metadata::Partition::UNASSIGNED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing;

    #[test]
    fn leaders_are_spread_and_no_broker_has_two_replicas() {
        let image = testing::cluster(&[1, 2, 3], &[4]);
        let placed = place(&image, 9, 3, &mut || 5).expect("three brokers");
        for node in [1, 2, 3] {
            assert_eq!(placed.iter().filter(|replicas| replicas[0] == NodeId(node)).count(), 3);
        }
        for replicas in &placed {
            let mut sorted = replicas.clone();
            sorted.sort_unstable();
            sorted.dedup();
            assert_eq!(sorted.len(), 3);
            assert!(!replicas.contains(&NodeId(4)), "the fenced broker is not needed");
        }
    }

    #[test]
    fn a_fenced_broker_takes_a_replica_only_when_it_must() {
        let image = testing::cluster(&[1, 2], &[4]);
        let placed = place(&image, 2, 3, &mut || 0).expect("three brokers");
        assert!(placed.iter().all(|replicas| replicas[2] == NodeId(4)));
    }

    #[test]
    fn without_enough_brokers_the_refusal_says_how_many_there_are() {
        let error = place(&testing::cluster(&[1], &[]), 1, 2, &mut || 0).expect_err("one broker");
        assert_eq!(
            error.to_string(),
            "Unable to replicate the partition 2 time(s): The target replication factor of 2 cannot be reached \
             because only 1 broker(s) are registered or some brokers have all their log directories cordoned."
        );
        let error = place(&testing::cluster(&[], &[1]), 1, 1, &mut || 0).expect_err("all fenced");
        assert!(error.to_string().contains("All brokers are currently fenced"));
    }
}
