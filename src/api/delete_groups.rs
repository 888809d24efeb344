//! DeleteGroups: empty groups and all they have committed.
//!
//! Kafka: `KafkaApis.handleDeleteGroupsRequest`, `GroupCoordinatorService.deleteGroups`; KIP-229.

use std::collections::BTreeSet;

use coordinator::DeletedGroup;
use model::{ErrorCode, GroupId};
use protocol::messages::delete_groups_response::DeletableGroupResult;
use protocol::messages::{DeleteGroupsRequest, DeleteGroupsResponse};
use protocol::{FromWire, ToWire};

use crate::text::message;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: DeleteGroupsRequest,
    _version: i16,
) -> Reply<DeleteGroupsResponse> {
    let mut seen = BTreeSet::new();
    let mut results = Vec::new();
    let names = request.groups_names.iter().map(GroupId::from_wire);
    for group_id in names.filter(|group_id| seen.insert(group_id.clone())) {
        let deleted = node.shards.delete(group_id.clone()).await;
        results.push(lower(deleted.unwrap_or_else(|error| DeletedGroup {
            group_id,
            error: ErrorCode::from(error),
            error_message: Some(error.to_string()),
        })));
    }
    Reply::Now(DeleteGroupsResponse::default().with_results(results))
}

fn lower(deleted: DeletedGroup) -> DeletableGroupResult {
    DeletableGroupResult::default()
        .with_group_id(deleted.group_id.to_wire())
        .with_error_code(deleted.error.code())
        .with_error_message(deleted.error_message.as_ref().map(message))
}
