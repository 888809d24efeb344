//! BrokerRegistration: a broker's run begins.
//!
//! Kafka: `ControllerApis.handleBrokerRegistration`; KIP-631, 858.

use model::{BrokerEpoch, ErrorCode, NodeId};
use protocol::FromWire;
use protocol::messages::{BrokerRegistrationRequest, BrokerRegistrationResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: BrokerRegistrationRequest,
    _version: i16,
) -> Reply<BrokerRegistrationResponse> {
    let id = NodeId::from_wire(&request.broker_id);
    let response = node.cluster.handle_broker_registration(request, session.connection).await;
    if response.error_code == ErrorCode::None.code() {
        session.broker = Some((id, BrokerEpoch(response.broker_epoch)));
    }
    Reply::Now(response)
}
