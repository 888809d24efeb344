//! Partitions change as Kafka's do.
//!
//! Each line of the table is a change that Kafka 4.4.0's `PartitionChangeBuilder` was asked for, with random states, and
//! the partition that it made of it. Where we differ, we do so on purpose, and `as_we_do` says how.

use metadata::{LeaderRecovery, Partition};
use model::{LeaderEpoch, NodeId, PartitionEpoch};

use crate::change::{Election, Rules, settle};
use crate::mutant::Mutation;

const TABLE: &str = include_str!("testdata/kafka_4.4_partition_changes.tsv");

/// A line: the partition before (8 columns), what is wanted and the rules (6), the partition after (10).
struct Line<'a>(Vec<&'a str>);

impl Line<'_> {
    fn nodes(&self, column: usize) -> Vec<NodeId> {
        let ids = self.0[column].split(',').filter(|id| !id.is_empty());
        ids.map(|id| NodeId(id.parse().expect("a number"))).collect()
    }

    fn number(&self, column: usize) -> i32 {
        self.0[column].parse().expect("a number")
    }

    fn partition(&self, column: usize, leader_epoch: i32, partition_epoch: i32) -> Partition {
        let replicas = self.nodes(column);
        Partition {
            directories: vec![Partition::UNASSIGNED; replicas.len()],
            replicas,
            isr: self.nodes(column + 1),
            adding_replicas: self.nodes(column + 2),
            removing_replicas: self.nodes(column + 3),
            elr: self.nodes(column + 4),
            last_known_elr: self.nodes(column + 5),
            leader: NodeId(self.number(column + 6)),
            recovery: match self.number(column + 7) {
                1 => LeaderRecovery::Recovering,
                _ => LeaderRecovery::Recovered,
            },
            leader_epoch: LeaderEpoch(leader_epoch),
            partition_epoch: PartitionEpoch(partition_epoch),
        }
    }

    fn rules(&self) -> Rules {
        Rules {
            candidates: self.nodes(9),
            election: [Election::Preferred, Election::Online, Election::Unclean][self.number(10) as usize],
            isr_min: self.number(11) as usize,
            elr: self.0[12] == "true",
            lost: self.nodes(13),
            mutation: Mutation::default(),
        }
    }
}

/// Kafka's partition without what we do not do: brokers that are no replicas do not stay eligible or known as the last
/// leader, nobody is eligible when enough are in sync, a single replica has nothing to recover, and the same eligible
/// replicas in another order are no change.
fn as_we_do(mut kafka: Partition, ours: &Partition, rules: &Rules) -> Partition {
    let replicas = kafka.replicas.clone();
    kafka.elr.retain(|node| replicas.contains(node));
    kafka.last_known_elr.retain(|node| replicas.contains(node));
    if kafka.isr.len() >= rules.isr_min.min(replicas.len()) {
        kafka.elr.clear();
    }
    if replicas.len() == 1 {
        kafka.recovery = ours.recovery;
    }
    kafka.elr.sort_unstable();
    kafka
}

#[test]
fn a_partition_becomes_what_kafka_makes_of_it() {
    for line in TABLE.lines() {
        let columns = Line(line.split('\t').collect());
        let (before, rules) = (columns.partition(0, 5, 7), columns.rules());
        let wanted = Partition { isr: columns.nodes(8), ..before.clone() };
        let mut ours = settle(&before, wanted, &rules);
        let changed = ours != before;
        ours.elr.sort_unstable();
        let kafka = columns.partition(14, columns.number(22), columns.number(23));
        let mut kafka = as_we_do(kafka, &ours, &rules);
        if !changed {
            kafka.partition_epoch = ours.partition_epoch;
        }
        assert_eq!(ours, kafka, "{line}");
    }
}
