//! AllocateProducerIds: a broker gets a block of ids for its producers.
//!
//! Kafka: `ControllerApis.handleAllocateProducerIdsRequest`; KIP-730.

use cluster::ClusterError;
use controller::{BrokerError, Controller, ProducerIdBlock};
use model::{BrokerEpoch, ErrorCode, NodeId};
use protocol::ToWire;
use protocol::messages::{AllocateProducerIdsRequest, AllocateProducerIdsResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AllocateProducerIdsRequest,
    _version: i16,
) -> Reply<AllocateProducerIdsResponse> {
    let (broker, epoch) = (NodeId(request.broker_id.0), BrokerEpoch(request.broker_epoch));
    let decide = move |controller: &Controller| controller.allocate_producer_ids(broker, epoch);
    Reply::Now(lower(node.decide(session.until, decide).await))
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
