//! EndQuorumEpoch: a leader of the metadata log steps down.
//!
//! Kafka: `ControllerApis.handleEndQuorumEpoch`; KIP-595, 853.

use protocol::messages::{EndQuorumEpochRequest, EndQuorumEpochResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: EndQuorumEpochRequest,
    version: i16,
) -> Reply<EndQuorumEpochResponse> {
    Reply::Now(node.cluster.handle_end_quorum_epoch(request, version).await)
}
