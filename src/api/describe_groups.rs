//! DescribeGroups: groups with their members and what these do.
//!
//! Kafka: `KafkaApis.handleDescribeGroupsRequest`; KIP-430 (operations), KIP-1043 (`GROUP_ID_NOT_FOUND`).

use coordinator::{DescribedGroup as Group, DescribedMember as Member};
use model::ErrorCode;
use protocol::messages::describe_groups_response::{DescribedGroup, DescribedGroupMember};
use protocol::messages::{DescribeGroupsRequest, DescribeGroupsResponse};
use protocol::{FromWire, ToWire};

use crate::authorized::{self, if_asked};
use crate::group_wire::instance_to_wire;
use crate::text::{message, text};
use crate::{Node, Reply, Session};

/// The first version that says of a group that it does not exist.
const NOT_FOUND_VERSION: i16 = 6;

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: DescribeGroupsRequest,
    version: i16,
) -> Reply<DescribeGroupsResponse> {
    let mut groups = Vec::new();
    for group_id in &request.groups {
        groups.push(match node.shards.describe(FromWire::from_wire(group_id)).await {
            Ok(group) => lower(group, request.include_authorized_operations, version),
            Err(error) => DescribedGroup::default()
                .with_group_id(group_id.clone())
                .with_error_code(ErrorCode::from(error).code()),
        });
    }
    Reply::Now(DescribeGroupsResponse::default().with_groups(groups))
}

fn lower(group: Group, with_operations: bool, version: i16) -> DescribedGroup {
    let described = DescribedGroup::default()
        .with_group_id(group.group_id.to_wire())
        .with_group_state(text(group.state.as_str()))
        .with_protocol_type(text(&group.protocol_type))
        .with_protocol_data(text(&group.protocol))
        .with_members(group.members.into_iter().map(lower_member).collect())
        .with_authorized_operations(if_asked(with_operations && group.error.is_none(), authorized::GROUP));
    if version < NOT_FOUND_VERSION {
        return described;
    }
    described
        .with_error_code(group.error.code())
        .with_error_message(group.error_message.as_ref().map(message))
}

fn lower_member(member: Member) -> DescribedGroupMember {
    DescribedGroupMember::default()
        .with_member_id(member.member_id.to_wire())
        .with_group_instance_id(instance_to_wire(member.group_instance_id.as_ref()))
        .with_client_id(text(&member.client_id))
        .with_client_host(text(&member.client_host))
        .with_member_metadata(member.metadata)
        .with_member_assignment(member.assignment)
}

#[cfg(test)]
mod tests {
    use coordinator::GroupState;

    use super::*;
    use crate::testing::encodes;

    fn dead() -> Group {
        Group {
            group_id: "g".into(),
            error: ErrorCode::GroupIdNotFound,
            error_message: Some("Group g not found.".into()),
            state: GroupState::Dead,
            protocol_type: "".into(),
            protocol: "".into(),
            members: Vec::new(),
        }
    }

    #[test]
    fn a_group_that_does_not_exist_is_dead_and_from_version_6_on_an_error() {
        let old = lower(dead(), true, 5);
        assert_eq!((old.error_code, &*old.group_state, old.authorized_operations), (0, "Dead", i32::MIN));
        let new = lower(dead(), true, 6);
        assert_eq!((new.error_code, new.error_message.as_deref()), (69, Some("Group g not found.")));
        encodes("DescribeGroups", |version| {
            DescribeGroupsResponse::default().with_groups(vec![lower(dead(), true, version)])
        });
    }
}
