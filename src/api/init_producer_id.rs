//! InitProducerId: an id for an idempotent producer, which nobody else ever gets.
//!
//! Ids come in blocks from the controller, so that most requests need no metadata record.
//!
//! Kafka: `TransactionCoordinator.handleInitProducerId`, `RPCProducerIdManager`; KIP-98, KIP-730.

use model::{ErrorCode, ProducerEpoch, ProducerId};
use protocol::ToWire;
use protocol::messages::{self, InitProducerIdRequest, InitProducerIdResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: InitProducerIdRequest,
    _version: i16,
) -> Reply<InitProducerIdResponse> {
    if let Err(code) = check(&request) {
        return Reply::Now(error(code));
    }
    Reply::Now(match node.producer_ids.next(node).await {
        Ok(id) => lower(id),
        // The client asks again.
        Err(_) => error(ErrorCode::CoordinatorLoadInProgress),
    })
}

fn check(request: &InitProducerIdRequest) -> Result<(), ErrorCode> {
    let has_id = request.producer_id.0 != ProducerId::NONE.0;
    let has_epoch = request.producer_epoch != ProducerEpoch::NONE.0;
    match &request.transactional_id {
        Some(id) if id.is_empty() => Err(ErrorCode::InvalidRequest),
        _ if has_id != has_epoch => Err(ErrorCode::InvalidRequest),
        // Without a transaction coordinator the producer is told at once, and does not wait for one.
        Some(_) => Err(ErrorCode::UnsupportedVersion),
        None => Ok(()),
    }
}

fn lower(id: ProducerId) -> InitProducerIdResponse {
    InitProducerIdResponse::default().with_producer_id(id.to_wire()).with_producer_epoch(0)
}

fn error(code: ErrorCode) -> InitProducerIdResponse {
    InitProducerIdResponse::default()
        .with_error_code(code.code())
        .with_producer_id(messages::ProducerId(-1))
        .with_producer_epoch(-1)
}

#[cfg(test)]
mod tests {
    use protocol::StrBytes;

    use super::*;
    use crate::testing::encodes;

    fn ask(transactional_id: Option<&'static str>, id: i64, epoch: i16) -> Result<(), ErrorCode> {
        let transactional_id = transactional_id.map(StrBytes::from_static_str).map(messages::TransactionalId);
        let request = InitProducerIdRequest::default()
            .with_transactional_id(transactional_id)
            .with_producer_id(messages::ProducerId(id))
            .with_producer_epoch(epoch);
        check(&request)
    }

    #[test]
    fn an_id_comes_with_an_epoch_or_not_at_all() {
        assert_eq!(ask(None, -1, -1), Ok(()));
        assert_eq!(ask(None, 5, 3), Ok(()));
        assert_eq!(ask(None, 5, -1), Err(ErrorCode::InvalidRequest));
        assert_eq!(ask(None, -1, 3), Err(ErrorCode::InvalidRequest));
        assert_eq!(ask(Some(""), -1, -1), Err(ErrorCode::InvalidRequest));
    }

    #[test]
    fn every_version_can_say_an_id_and_an_error() {
        encodes("InitProducerId", |_| lower(ProducerId(5)));
        encodes("InitProducerId", |_| error(ErrorCode::CoordinatorLoadInProgress));
    }
}
