//! Where the replicas of new partitions go: leaders round robin over the brokers, from a random one on, each partition's
//! replicas over as many racks as there are.
//!
//! Invariants: no partition has two replicas on one broker; leaders are spread evenly over the brokers that are active; a
//! rack gets a second replica of a partition when every other rack has one; within a rack, a broker that is fenced gets
//! replicas only when there are not enough active ones.
//!
//! Kafka: `StripedReplicaPlacer`.

use metadata::{Broker, Image};
use model::{DirectoryId, NodeId};

use crate::{Random, TopicError};

/// The brokers of one rack, or of none.
#[derive(Clone, Debug)]
struct Rack<'a> {
    name: Option<&'a str>,
    active: Vec<NodeId>,
    fenced: Vec<NodeId>,
}

/// The replicas of `count` new partitions, the leader of each first.
pub(crate) fn place(
    image: &Image,
    count: usize,
    factor: i16,
    random: Random<'_>,
) -> Result<Vec<Vec<NodeId>>, TopicError> {
    let racks = racks(image);
    let leaders = leaders(&racks);
    let fenced = racks.iter().map(|rack| rack.fenced.len()).sum();
    check(leaders.len(), fenced, factor)?;
    let start = random() as usize % leaders.len();
    Ok((0..count).map(|i| replicas(&racks, &leaders, start + i, factor as usize)).collect())
}

/// The brokers that may get replicas, by rack. One that is stopping gets none.
fn racks(image: &Image) -> Vec<Rack<'_>> {
    let mut racks: Vec<Rack<'_>> = Vec::new();
    for broker in image.brokers.iter().filter(|broker| is_usable(broker)) {
        let name = broker.rack.as_deref();
        let place = racks.iter().position(|rack| rack.name == name).unwrap_or_else(|| {
            racks.push(Rack { name, active: Vec::new(), fenced: Vec::new() });
            racks.len() - 1
        });
        let rack = &mut racks[place];
        if broker.fenced { rack.fenced.push(broker.id) } else { rack.active.push(broker.id) }
    }
    racks
}

fn is_usable(broker: &Broker) -> bool {
    let cordoned = broker.cordoned_directories.as_deref().unwrap_or_default();
    let has_room =
        broker.directories.is_empty() || broker.directories.iter().any(|id| !cordoned.contains(id));
    has_room && (broker.fenced || !broker.in_controlled_shutdown)
}

/// The active brokers with the places of their racks: the first of every rack, then the second of every rack, and so on.
fn leaders(racks: &[Rack<'_>]) -> Vec<(usize, NodeId)> {
    let most = racks.iter().map(|rack| rack.active.len()).max().unwrap_or_default();
    let round =
        |i| racks.iter().enumerate().filter_map(move |(place, rack)| Some((place, *rack.active.get(i)?)));
    (0..most).flat_map(round).collect()
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

fn replicas(racks: &[Rack<'_>], leaders: &[(usize, NodeId)], turn: usize, factor: usize) -> Vec<NodeId> {
    let (home, leader) = leaders[turn % leaders.len()];
    // Each full turn moves the followers by one more, so that the load of a lost leader goes to all others.
    let full_turns = turn / leaders.len();
    let shift = |among: usize| 1 + full_turns % among.saturating_sub(1).max(1);
    let first = turn / racks.len() + shift(leaders.len());
    let mut queues: Vec<_> = racks.iter().map(|rack| rack.queue(first, leader)).collect();
    let mut replicas = vec![leader];
    let mut visits = (0..).map(|k| (home + shift(racks.len()) + k) % racks.len());
    // The leader's own rack has its first replica already.
    let mut is_home_due = racks.len() == 1;
    while replicas.len() < factor {
        let Some(rack) = visits.next() else { break };
        if rack == home && !is_home_due {
            is_home_due = true;
            continue;
        }
        replicas.extend(queues[rack].next());
    }
    replicas
}

impl Rack<'_> {
    /// Its brokers but the leader, active ones first, from some place on.
    fn queue(&self, first: usize, leader: NodeId) -> impl Iterator<Item = NodeId> {
        let turned = |nodes: &[NodeId]| {
            let mut nodes = nodes.to_vec();
            let by = first % nodes.len().max(1);
            nodes.rotate_left(by);
            nodes
        };
        turned(&self.active).into_iter().chain(turned(&self.fenced)).filter(move |node| *node != leader)
    }
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

    /// Six brokers in three racks; those that are fenced are in a fourth.
    fn in_racks(fenced: &[i32]) -> Image {
        let image = testing::cluster(&[1, 2, 3, 4, 5, 6], fenced);
        let in_rack = |broker: &std::sync::Arc<Broker>| {
            let rack = Some(format!("rack{}", if broker.fenced { 3 } else { broker.id.0 % 3 }));
            Broker { rack, ..(**broker).clone() }.to_record().into()
        };
        let records: Vec<_> = image.brokers.iter().map(in_rack).collect();
        image.apply(&records, image.end()).expect("the same brokers").0
    }

    #[test]
    fn a_broker_that_is_stopping_or_has_no_room_gets_nothing() {
        let image = testing::cluster(&[1, 2, 3], &[]);
        let changed = |id: i32, change: &dyn Fn(&mut Broker)| {
            let mut broker = (**image.brokers.get(NodeId(id)).expect("a broker")).clone();
            change(&mut broker);
            broker.to_record().into()
        };
        let records = [
            changed(1, &|broker| broker.in_controlled_shutdown = true),
            changed(2, &|broker| broker.cordoned_directories = Some(broker.directories.clone())),
        ];
        let image = image.apply(&records, image.end()).expect("the same brokers").0;
        assert_eq!(place(&image, 2, 1, &mut || 0), Ok(vec![vec![NodeId(3)]; 2]));
        assert!(place(&image, 1, 2, &mut || 0).is_err());
    }

    #[test]
    fn each_rack_gets_a_replica_before_one_gets_two() {
        let image = in_racks(&[7]);
        let rack = |node: &NodeId| image.brokers.get(*node).and_then(|broker| broker.rack.clone());
        for replicas in place(&image, 60, 4, &mut || 3).expect("enough brokers") {
            let racks: std::collections::BTreeSet<_> = replicas.iter().map(rack).collect();
            assert_eq!(racks.len(), 4, "{replicas:?}");
        }
    }

    #[test]
    fn leaders_and_followers_are_spread_over_racks_and_brokers() {
        let image = testing::cluster(&[1, 2, 3, 4, 5, 6], &[]);
        for image in [image, in_racks(&[])] {
            let placed = place(&image, 60, 3, &mut || 1).expect("enough brokers");
            let leads = |node| placed.iter().filter(|replicas| replicas[0] == NodeId(node)).count();
            assert_eq!((1..=6).map(leads).collect::<Vec<_>>(), [10; 6]);
            let has = |node| placed.iter().filter(|replicas| replicas.contains(&NodeId(node))).count();
            let loads: Vec<usize> = (1..=6).map(has).collect();
            assert!(loads.iter().all(|load| (24..=36).contains(load)), "{loads:?}");
        }
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
