//! UnregisterBroker: a broker that is gone for good is forgotten.
//!
//! Kafka: `ControllerApis.handleUnregisterBroker`; KIP-631.

use cluster::ClusterError;
use controller::BrokerError;
use model::{ErrorCode, NodeId};
use protocol::messages::{UnregisterBrokerRequest, UnregisterBrokerResponse};

use crate::text::message;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: UnregisterBrokerRequest,
    _version: i16,
) -> Reply<UnregisterBrokerResponse> {
    let broker = NodeId(request.broker_id.0);
    let decided = node.decide(session.until, move |controller| controller.unregister_broker(broker)).await;
    Reply::Now(lower(decided))
}

fn lower(decided: Result<Result<(), BrokerError>, ClusterError>) -> UnregisterBrokerResponse {
    let refused = |code: ErrorCode, cause: &dyn std::fmt::Display| {
        UnregisterBrokerResponse::default()
            .with_error_code(code.code())
            .with_error_message(Some(message(&cause)))
    };
    match decided {
        Ok(Ok(())) => UnregisterBrokerResponse::default(),
        Ok(Err(cause)) => refused((&cause).into(), &cause),
        Err(cause) => refused(cause.into(), &cause),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_that_a_broker_is_gone_or_was_never_there() {
        let unknown = lower(Ok(Err(BrokerError::NotRegistered(NodeId(9)))));
        assert_eq!(unknown.error_code, ErrorCode::BrokerIdNotRegistered.code());
        encodes("UnregisterBroker", |_| unknown.clone());
        encodes("UnregisterBroker", |_| lower(Ok(Ok(()))));
        encodes("UnregisterBroker", |_| lower(Err(ClusterError::NotController)));
    }
}
