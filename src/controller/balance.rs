//! Leadership goes back to the preferred replicas, so that no broker leads more than its share for long.
//!
//! A broker whose partitions are led by others to more than `leader.imbalance.per.broker.percentage` gets them back, where
//! it is in sync.
//!
//! Kafka: `ReplicationControlManager.maybeBalancePartitionLeaders`; of the percentage, `KafkaController` before 4.0.

use std::collections::BTreeMap;

use model::NodeId;
use protocol::records::metadata::MetadataRecord;

use crate::Controller;
use crate::change::Election;
use crate::partition_changes::{Moves, Wanted};

/// So many leaders move at once.
const ELECTIONS_MAX: usize = 1_000;

impl Controller {
    /// The records that give leadership back, and whether there is more to give.
    pub(crate) fn balance(&self) -> (Vec<MetadataRecord>, bool) {
        let imbalanced = self.imbalanced();
        let mut records = self.changes(Moves::default(), |_, _, partition| {
            let preferred = partition.replicas.first()?;
            let moves = partition.leader != *preferred && imbalanced.contains(preferred);
            moves.then(|| Wanted { election: Some(Election::Preferred), ..partition.clone().into() })
        });
        let has_more = records.len() > ELECTIONS_MAX;
        records.truncate(ELECTIONS_MAX);
        (records, has_more)
    }

    /// The active brokers that lead too few of the partitions that prefer them.
    fn imbalanced(&self) -> Vec<NodeId> {
        let allowed = self.config.broker.layers().integer("leader.imbalance.per.broker.percentage");
        let mut counts: BTreeMap<NodeId, (i64, i64)> = BTreeMap::new();
        for partition in self.image.topics.iter().flat_map(|topic| topic.partitions.values()) {
            let Some(preferred) = partition.replicas.first() else { continue };
            let (all, elsewhere) = counts.entry(*preferred).or_default();
            *all += 1;
            *elsewhere += i64::from(partition.leader != *preferred);
        }
        let is_imbalanced = |(all, elsewhere): (i64, i64)| elsewhere * 100 > all * allowed;
        let counts =
            counts.into_iter().filter(|(node, count)| self.is_active(*node) && is_imbalanced(*count));
        counts.map(|(node, _)| node).collect()
    }
}
