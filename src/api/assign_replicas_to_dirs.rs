//! AssignReplicasToDirs: a broker says in which of its log folders replicas lie.
//!
//! Kafka: `ControllerApis.handleAssignReplicasToDirs`; KIP-858.

use protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AssignReplicasToDirsRequest,
    _version: i16,
) -> Reply<AssignReplicasToDirsResponse> {
    Reply::Now(node.cluster.handle_assign_replicas_to_dirs(request, session.connection).await)
}
