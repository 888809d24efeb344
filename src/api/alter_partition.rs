//! AlterPartition: a leader asks for another ISR.
//!
//! Kafka: `ControllerApis.handleAlterPartitionRequest`; KIP-497, 841, 903.

use protocol::messages::{AlterPartitionRequest, AlterPartitionResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AlterPartitionRequest,
    _version: i16,
) -> Reply<AlterPartitionResponse> {
    Reply::Now(node.cluster.handle_alter_partition(request, session.connection).await)
}
