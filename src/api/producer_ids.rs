//! The producer ids that this node may give out.
//!
//! Kafka: `RPCProducerIdManager`; KIP-730.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use cluster::ClusterError;
use model::{BrokerEpoch, ErrorCode, ProducerId};
use protocol::ToWire;
use protocol::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};

use crate::forwarding::{ASIDE_WITHIN, ask};
use crate::{Node, allocate_producer_ids};

/// What is left of the block that the controller gave this node last.
#[derive(Debug, Default)]
pub(crate) struct ProducerIds(Mutex<Range<i64>>);

/// There is no id for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProducerIdError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the controller gave none: error code {0}")]
    Refused(i16),
}

impl ProducerIds {
    /// An id that nobody had before.
    pub(crate) async fn next(&self, node: &Node) -> Result<ProducerId, ProducerIdError> {
        if let Some(id) = self.take() {
            return Ok(id);
        }
        let block = read(&allocate(node).await?)?;
        Ok(self.refill(block))
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

/// Asks the controller for a block, as the broker that this node is by now.
async fn allocate(node: &Node) -> Result<AllocateProducerIdsResponse, ClusterError> {
    let id = node.cluster.node_id();
    let epoch = node.image().brokers.get(id).map_or(BrokerEpoch(-1), |broker| broker.epoch);
    let request =
        AllocateProducerIdsRequest::default().with_broker_id(id.to_wire()).with_broker_epoch(epoch.0);
    let until = node.env.clock.now().plus(ASIDE_WITHIN);
    match ask(node, until, &request).await? {
        Some(response) => Ok(response),
        None => Ok(allocate_producer_ids::allocate(node, until, &request).await),
    }
}

fn read(response: &AllocateProducerIdsResponse) -> Result<Range<i64>, ProducerIdError> {
    let first = response.producer_id_start.0;
    let end = first.checked_add(i64::from(response.producer_id_len)).filter(|end| *end > first);
    match end {
        Some(end) if response.error_code == ErrorCode::None.code() => Ok(first..end),
        _ => Err(ProducerIdError::Refused(response.error_code)),
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

    #[test]
    fn a_refusal_is_no_block_and_neither_is_an_empty_one() {
        let block = |start, length, code| {
            let response = AllocateProducerIdsResponse::default()
                .with_producer_id_start(ProducerId(start).to_wire())
                .with_producer_id_len(length)
                .with_error_code(code);
            read(&response).ok()
        };
        assert_eq!(block(1000, 1000, 0), Some(1000..2000));
        assert_eq!(block(1000, 1000, ErrorCode::StaleBrokerEpoch.code()), None);
        assert_eq!(block(1000, 0, 0), None);
        assert_eq!(block(i64::MAX - 1, 1000, 0), None);
    }
}
