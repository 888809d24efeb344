//! LeaveGroup: members leave their group, or an administrator takes them out.
//!
//! Kafka: `KafkaApis.handleLeaveGroupRequest`, `LeaveGroupRequest`, `LeaveGroupResponse`; KIP-345.

use coordinator::{Leave, LeaveReply, LeavingMember};
use model::ErrorCode;
use protocol::messages::leave_group_response::MemberResponse;
use protocol::messages::{LeaveGroupRequest, LeaveGroupResponse};
use protocol::{FromWire, ToWire};

use crate::group_wire::{instance_id, instance_to_wire, member_id};
use crate::{Node, Reply, Session};

/// The first version that names more than one member.
const BATCH_VERSION: i16 = 3;

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: LeaveGroupRequest,
    version: i16,
) -> Reply<LeaveGroupResponse> {
    let reply = node.shards.leave(lift(&request, version)).await;
    let refused = |error: shards::ShardError| LeaveReply { error: error.into(), members: Vec::new() };
    Reply::Now(lower(reply.unwrap_or_else(refused), version))
}

fn lift(request: &LeaveGroupRequest, version: i16) -> Leave {
    let members = if version < BATCH_VERSION {
        vec![LeavingMember { member_id: member_id(&request.member_id), group_instance_id: None }]
    } else {
        let leaving = request.members.iter().map(|member| LeavingMember {
            member_id: member_id(&member.member_id),
            group_instance_id: instance_id(member.group_instance_id.as_ref()),
        });
        leaving.collect()
    };
    Leave { group_id: FromWire::from_wire(&request.group_id), members }
}

fn lower(reply: LeaveReply, version: i16) -> LeaveGroupResponse {
    if version < BATCH_VERSION {
        let of_member = reply.members.first().map_or(ErrorCode::None, |(_, error)| *error);
        let error = if reply.error.is_none() { of_member } else { reply.error };
        return LeaveGroupResponse::default().with_error_code(error.code());
    }
    let members = reply.members.into_iter().map(|(member, error)| {
        MemberResponse::default()
            .with_member_id(member.member_id.to_wire())
            .with_group_instance_id(instance_to_wire(member.group_instance_id.as_ref()))
            .with_error_code(error.code())
    });
    LeaveGroupResponse::default().with_error_code(reply.error.code()).with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    fn reply(error: ErrorCode, of_member: ErrorCode) -> LeaveReply {
        let member = LeavingMember { member_id: "m".into(), group_instance_id: Some("static".into()) };
        LeaveReply { error, members: vec![(member, of_member)] }
    }

    #[test]
    fn every_version_carries_the_answer() {
        encodes("LeaveGroup", |version| lower(reply(ErrorCode::None, ErrorCode::None), version));
    }

    #[test]
    fn old_versions_have_one_error_for_the_request_and_its_only_member() {
        let code = |reply, version| ErrorCode::from_code(lower(reply, version).error_code);
        let unknown = || reply(ErrorCode::None, ErrorCode::UnknownMemberId);
        assert_eq!(code(unknown(), 2), Some(ErrorCode::UnknownMemberId));
        assert_eq!(code(unknown(), 3), Some(ErrorCode::None));
        assert_eq!(
            code(reply(ErrorCode::NotCoordinator, ErrorCode::None), 2),
            Some(ErrorCode::NotCoordinator)
        );
    }

    #[test]
    fn an_old_request_names_one_member() {
        let request = LeaveGroupRequest::default().with_member_id("m".into());
        assert_eq!(lift(&request, 2).members.len(), 1);
        assert_eq!(lift(&request, 3).members.len(), 0);
    }
}
