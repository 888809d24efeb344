//! Leadership goes back to the preferred replicas that are in sync, so that no broker leads more than its share for long.
//!
//! Kafka: `ReplicationControlManager.maybeBalancePartitionLeaders`.

use protocol::records::metadata::MetadataRecord;

use crate::Controller;
use crate::change::Election;
use crate::partition_changes::{Moves, Wanted};

/// So many leaders move at once.
const ELECTIONS_MAX: usize = 1_000;

impl Controller {
    /// The records that give leadership back, and whether there is more to give.
    pub(crate) fn balance(&self) -> (Vec<MetadataRecord>, bool) {
        let mut records = self.changes(Moves::default(), |_, _, partition| {
            let preferred = partition.replicas.first()?;
            let moves = partition.leader != *preferred && self.is_active(*preferred);
            moves.then(|| Wanted { election: Some(Election::Preferred), ..partition.clone().into() })
        });
        let has_more = records.len() > ELECTIONS_MAX;
        records.truncate(ELECTIONS_MAX);
        (records, has_more)
    }
}
