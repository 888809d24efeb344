//! Which producer ids were given out: all below the next one, in blocks.
//!
//! Kafka: `ProducerIdsImage`; KIP-730.

use protocol::records::metadata::{MetadataRecord, ProducerIdsRecord};

use crate::Delta;

/// Where the next block of producer ids begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProducerIds {
    next: i64,
}

impl ProducerIds {
    /// The first id that no block has; 0 if none was given out.
    pub fn next(self) -> i64 {
        self.next
    }

    pub(crate) fn set(&mut self, record: &ProducerIdsRecord, delta: &mut Delta) {
        self.next = record.next_producer_id;
        delta.producer_ids_changed = true;
    }

    /// Nobody owns a block in a snapshot.
    pub(crate) fn write(self, records: &mut Vec<MetadataRecord>) {
        if self.next > 0 {
            let record = ProducerIdsRecord { broker_id: -1, broker_epoch: -1, next_producer_id: self.next };
            records.push(MetadataRecord::ProducerIds(record));
        }
    }
}
