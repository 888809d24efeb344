//! BeginQuorumEpoch: a new leader of the metadata log makes itself known.
//!
//! Kafka: `ControllerApis.handleBeginQuorumEpoch`; KIP-595, 853.

use protocol::messages::{BeginQuorumEpochRequest, BeginQuorumEpochResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: BeginQuorumEpochRequest,
    version: i16,
) -> Reply<BeginQuorumEpochResponse> {
    Reply::Now(node.cluster.handle_begin_quorum_epoch(request, version).await)
}
