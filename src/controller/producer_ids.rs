//! Blocks of producer ids for brokers to give out.
//!
//! Kafka: `ProducerIdControlManager`; KIP-730.

use model::{BrokerEpoch, NodeId, ProducerId};
use protocol::records::metadata::ProducerIdsRecord;

use crate::{BrokerError, Controller, Decision};

const BLOCK_SIZE: i64 = 1000;

/// Producer ids that one broker may give out, and nobody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProducerIdBlock {
    /// The first one.
    pub first: ProducerId,
    /// How many there are.
    pub count: i32,
}

impl Controller {
    /// Decides on a block for a broker that is registered with this epoch.
    pub fn allocate_producer_ids(
        &self,
        broker: NodeId,
        epoch: BrokerEpoch,
    ) -> Decision<Result<ProducerIdBlock, BrokerError>> {
        if let Err(error) = self.check_epoch(broker, epoch) {
            return Decision::nothing(Err(error));
        }
        let first = self.image.producer_ids.next();
        let Some(next) = first.checked_add(BLOCK_SIZE) else {
            return Decision::nothing(Err(BrokerError::NoMoreProducerIds));
        };
        let record = ProducerIdsRecord { broker_id: broker.0, broker_epoch: epoch.0, next_producer_id: next };
        let block = ProducerIdBlock { first: ProducerId(first), count: BLOCK_SIZE as i32 };
        Decision { records: vec![record.into()], reply: Ok(block) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{commit, controller};

    #[test]
    fn no_id_is_given_out_twice() {
        let mut controller = controller(&[1, 2], &[]);
        let mut firsts = Vec::new();
        for (broker, epoch) in [(1, 10), (2, 20), (1, 10)] {
            let decision = controller.allocate_producer_ids(NodeId(broker), BrokerEpoch(epoch));
            let block = commit(&mut controller, decision).expect("a block");
            assert_eq!(block.count, 1000);
            firsts.push(block.first.0);
        }
        assert_eq!(firsts, [0, 1000, 2000]);
    }

    #[test]
    fn an_old_or_unknown_broker_gets_none() {
        let controller = controller(&[1], &[]);
        let reply =
            |broker, epoch| controller.allocate_producer_ids(NodeId(broker), BrokerEpoch(epoch)).reply;
        let stale = BrokerError::StaleEpoch { expected: BrokerEpoch(10), got: BrokerEpoch(9) };
        assert_eq!(reply(1, 9), Err(stale));
        assert_eq!(reply(5, 9), Err(BrokerError::NoRegistration(NodeId(5))));
    }
}
