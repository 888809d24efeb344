//! ListGroups: the groups that this node coordinates.
//!
//! Kafka: `KafkaApis.handleListGroupsRequest`; KIP-518 (states), KIP-848 (types).

use coordinator::{List, ListedGroup as Group};
use model::ErrorCode;
use protocol::messages::list_groups_response::ListedGroup;
use protocol::messages::{ListGroupsRequest, ListGroupsResponse};
use protocol::{StrBytes, ToWire};

use crate::text::text;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: ListGroupsRequest,
    _version: i16,
) -> Reply<ListGroupsResponse> {
    let names = |filter: &[StrBytes]| filter.iter().map(ToString::to_string).collect();
    let list = List { states: names(&request.states_filter), types: names(&request.types_filter) };
    let response = ListGroupsResponse::default();
    Reply::Now(match node.shards.list(list).await {
        Ok(groups) => response.with_groups(groups.iter().map(lower).collect()),
        Err(error) => response.with_error_code(ErrorCode::from(error).code()),
    })
}

fn lower(group: &Group) -> ListedGroup {
    ListedGroup::default()
        .with_group_id(group.group_id.to_wire())
        .with_protocol_type(text(&group.protocol_type))
        .with_group_state(text(group.state.as_str()))
        .with_group_type(text(group.group_type))
}
