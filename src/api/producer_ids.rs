//! The producer ids that this node may give out.
//!
//! Kafka: `RPCProducerIdManager`; KIP-730.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cluster::{Cluster, ClusterError};
use model::ProducerId;

/// What is left of the block that the controller gave this node last.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds(Mutex<Range<i64>>);

/// There is no id for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProducerIdError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Controller(#[from] controller::BrokerError),
}

impl ProducerIds {
    /// An id that nobody had before.
    pub(crate) async fn next(&self, cluster: &Cluster) -> Result<ProducerId, ProducerIdError> {
        if let Some(id) = self.take() {
            return Ok(id);
        }
        let node = cluster.node_id();
        let block = cluster
            .decide(move |controller| {
                let epoch = controller.image().brokers.get(node).map(|broker| broker.epoch);
                controller.allocate_producer_ids(node, epoch.unwrap_or(model::BrokerEpoch(-1)))
            })
            .await??;
        Ok(self.refill(block.first.0..block.first.0 + i64::from(block.count)))
    }

    fn take(&self) -> Option<ProducerId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).next().map(ProducerId)
    }

    /// Gives the first id of a new block. Its rest is kept, unless somebody else was faster; then it is lost.
    fn refill(&self, mut block: Range<i64>) -> ProducerId {
        let first = block.next().map(ProducerId).expect("a block is not empty");
        let mut left = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if left.is_empty() {
            *left = block;
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_of_a_block_is_given_out_once() {
        let ids = ProducerIds::default();
        assert_eq!(ids.take(), None);
        assert_eq!(ids.refill(1000..1003), ProducerId(1000));
        assert_eq!(ids.refill(2000..2003), ProducerId(2000), "the rest of the second block is lost");
        assert_eq!(
            (ids.take(), ids.take(), ids.take()),
            (Some(ProducerId(1001)), Some(ProducerId(1002)), None)
        );
    }
}
