//! AllocateProducerIds: a broker gets a block of ids for its producers.
//!
//! Kafka: `ControllerApis.handleAllocateProducerIdsRequest`; KIP-730.

use cluster::ClusterError;
use controller::{BrokerError, ProducerIdBlock};
use model::{BrokerEpoch, ErrorCode, Instant, NodeId};
use protocol::ToWire;
use protocol::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AllocateProducerIdsRequest,
    _version: i16,
) -> Reply<AllocateProducerIdsResponse> {
    Reply::Now(allocate(node, session.until, &request).await)
}

/// Lets this node's controller give out a block.
pub(crate) async fn allocate(
    node: &Node,
    until: Instant,
    request: &AllocateProducerIdsRequest,
) -> AllocateProducerIdsResponse {
    let (broker, epoch) = (NodeId(request.broker_id.0), BrokerEpoch(request.broker_epoch));
    lower(node.decide(until, move |controller| controller.allocate_producer_ids(broker, epoch)).await)
}

fn lower(decided: Result<Result<ProducerIdBlock, BrokerError>, ClusterError>) -> AllocateProducerIdsResponse {
    let refused = |code: ErrorCode| AllocateProducerIdsResponse::default().with_error_code(code.code());
    match decided {
        Ok(Ok(block)) => AllocateProducerIdsResponse::default()
            .with_producer_id_start(block.first.to_wire())
            .with_producer_id_len(block.count),
        Ok(Err(cause)) => refused((&cause).into()),
        Err(cause) => refused(cause.into()),
    }
}

#[cfg(test)]
mod tests {
    use model::ProducerId;

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_a_block_and_a_refusal() {
        let block = ProducerIdBlock { first: ProducerId(1000), count: 1000 };
        encodes("AllocateProducerIds", |_| lower(Ok(Ok(block))));
        encodes("AllocateProducerIds", |_| lower(Ok(Err(BrokerError::NoRegistration(NodeId(1))))));
        encodes("AllocateProducerIds", |_| lower(Err(ClusterError::NotController)));
    }
}
