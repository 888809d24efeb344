//! Vote: a candidate asks for this node's vote on the metadata log.
//!
//! Kafka: `ControllerApis.handleVote`; KIP-595, 853, 996.

use protocol::messages::{VoteRequest, VoteResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: VoteRequest,
    version: i16,
) -> Reply<VoteResponse> {
    Reply::Now(node.cluster.handle_vote(request, version).await)
}
