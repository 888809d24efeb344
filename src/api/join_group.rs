//! JoinGroup: a member joins its group; awaited until the join phase ends.
//!
//! Kafka: `KafkaApis.handleJoinGroupRequest`, `JoinGroupRequest`, `JoinGroupResponse`; KIP-394, KIP-345, KIP-814.

use coordinator::{Join, JoinReply, Protocol};
use model::Uuid;
use protocol::messages::join_group_response::JoinGroupResponseMember;
use protocol::messages::{JoinGroupRequest, JoinGroupResponse};
use protocol::{FromWire, StrBytes, ToWire};

use crate::group_wire::{client_host, instance_id, instance_to_wire, member_id, millis, text_of};
use crate::text::text;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: JoinGroupRequest,
    version: i16,
) -> Reply<JoinGroupResponse> {
    // The request ends here: while it waits for the others, the frame that it came in is wanted.
    let join = lift(session, request, version, node.env.rng.uuid());
    let member_id = join.member_id.clone();
    let reply = node.shards.join(join).await;
    Reply::Now(lower(reply.unwrap_or_else(|error| JoinReply::refused(member_id, error.into())), version))
}

#[expect(clippy::needless_pass_by_value, reason = "nothing of the request must be kept")]
fn lift(session: &Session, request: JoinGroupRequest, version: i16, fresh_id: Uuid) -> Join {
    // Version 0 has one timeout for both.
    let rebalance_ms = if version == 0 { request.session_timeout_ms } else { request.rebalance_timeout_ms };
    let protocols = request.protocols.iter().map(|protocol| Protocol {
        name: text_of(&protocol.name),
        // A copy: the member would hold the whole frame as long as it lives.
        metadata: bytes::Bytes::copy_from_slice(&protocol.metadata),
    });
    Join {
        group_id: FromWire::from_wire(&request.group_id),
        member_id: member_id(&request.member_id),
        group_instance_id: instance_id(request.group_instance_id.as_ref()),
        client_id: session.client_id.as_str().into(),
        client_host: client_host(session.peer),
        protocol_type: text_of(&request.protocol_type),
        protocols: protocols.collect(),
        session_timeout: millis(request.session_timeout_ms),
        rebalance_timeout: millis(rebalance_ms),
        member_id_required: version >= 4,
        skip_assignment: version >= 9,
        fresh_id,
    }
}

fn lower(reply: JoinReply, version: i16) -> JoinGroupResponse {
    let members = reply.members.into_iter().map(|member| {
        JoinGroupResponseMember::default()
            .with_member_id(member.member_id.to_wire())
            .with_group_instance_id(instance_to_wire(member.group_instance_id.as_ref()))
            .with_metadata(member.metadata)
    });
    let protocol_name = reply.protocol_name.as_deref().map(text);
    JoinGroupResponse::default()
        .with_error_code(reply.error.code())
        .with_generation_id(reply.generation.0)
        .with_protocol_type(reply.protocol_type.as_deref().map(text))
        // It may be null from version 7 on.
        .with_protocol_name(if version < 7 {
            protocol_name.or(Some(StrBytes::default()))
        } else {
            protocol_name
        })
        .with_leader(reply.leader.to_wire())
        .with_skip_assignment(reply.skip_assignment)
        .with_member_id(reply.member_id.to_wire())
        .with_members(members.collect())
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use controller::ConnectionId;
    use coordinator::{Generation, JoinMember};
    use model::ErrorCode;
    use protocol::messages::join_group_request::JoinGroupRequestProtocol;

    use super::*;
    use crate::Side;
    use crate::testing::{encodes, requested};

    fn reply(version: i16) -> JoinReply {
        let member = JoinMember {
            member_id: "m".into(),
            group_instance_id: Some("static".into()),
            metadata: bytes::Bytes::from_static(b"x"),
        };
        JoinReply {
            generation: Generation(3),
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            leader: "m".into(),
            skip_assignment: version >= 9,
            members: vec![member],
            ..JoinReply::refused("m".into(), ErrorCode::None)
        }
    }

    #[test]
    fn every_version_carries_the_answer() {
        encodes("JoinGroup", |version| lower(reply(version), version));
        encodes("JoinGroup", |version| {
            lower(JoinReply::refused("".into(), ErrorCode::MemberIdRequired), version)
        });
    }

    #[test]
    fn a_member_that_waits_keeps_nothing_of_its_frame() {
        let protocol = JoinGroupRequestProtocol::default()
            .with_name(StrBytes::from_static_str("range"))
            .with_metadata(bytes::Bytes::from(vec![7; 20_000]));
        let request = JoinGroupRequest::default()
            .with_group_id(protocol::messages::GroupId(StrBytes::from_static_str("group")))
            .with_member_id(StrBytes::from_static_str("me"))
            .with_group_instance_id(Some(StrBytes::from_static_str("me")))
            .with_protocols(vec![protocol]);
        let frame = requested(11, 9, &request);
        let decoded = protocol::decode(9, frame.clone()).expect("a request");
        let peer = SocketAddr::from(([127, 0, 0, 1], 1));
        let session = Session::new("PLAINTEXT", peer, Side::Broker, ConnectionId(1));
        let join = lift(&session, decoded, 9, Uuid::ZERO);
        assert_eq!(join.protocols[0].metadata.len(), 20_000);
        assert!(frame.is_unique());
    }

    #[test]
    fn a_protocol_that_is_not_chosen_is_empty_in_old_versions_and_null_in_new_ones() {
        let refused = || JoinReply::refused("".into(), ErrorCode::UnknownMemberId);
        assert_eq!(lower(refused(), 6).protocol_name, Some(StrBytes::default()));
        assert_eq!(lower(refused(), 7).protocol_name, None);
    }
}
