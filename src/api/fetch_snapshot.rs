//! FetchSnapshot: a replica fetches a snapshot of the metadata in pieces.
//!
//! Kafka: `ControllerApis.handleFetchSnapshot`; KIP-630, 853.

use protocol::messages::{FetchSnapshotRequest, FetchSnapshotResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: FetchSnapshotRequest,
    version: i16,
) -> Reply<FetchSnapshotResponse> {
    Reply::Now(node.cluster.handle_fetch_snapshot(request, version).await)
}
