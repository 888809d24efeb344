//! Fetch on a controller's listener: a replica fetches the metadata log. The connection waits with it.
//!
//! Kafka: `ControllerApis.handleFetch`; KIP-595, 853, 1166.

use protocol::messages::{FetchRequest, FetchResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: FetchRequest,
    version: i16,
) -> Reply<FetchResponse> {
    Reply::Now(node.cluster.handle_fetch(request, version).await)
}
