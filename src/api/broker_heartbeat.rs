//! BrokerHeartbeat: a broker lives, and wants something.
//!
//! Kafka: `ControllerApis.handleBrokerHeartBeatRequest`; KIP-631.

use model::{BrokerEpoch, ErrorCode, NodeId};
use protocol::FromWire;
use protocol::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: BrokerHeartbeatRequest,
    _version: i16,
) -> Reply<BrokerHeartbeatResponse> {
    let run = (NodeId::from_wire(&request.broker_id), BrokerEpoch(request.broker_epoch));
    let response = node.cluster.handle_broker_heartbeat(request, session.connection).await;
    if response.error_code == ErrorCode::None.code() {
        session.broker = Some(run);
    }
    Reply::Now(response)
}
