//! SyncGroup: a member asks for its assignment, the leader brings all; awaited until the sync phase ends.
//!
//! Kafka: `KafkaApis.handleSyncGroupRequest`; KIP-559.

use bytes::Bytes;
use coordinator::{Generation, Sync, SyncReply};
use model::ErrorCode;
use protocol::FromWire;
use protocol::messages::{SyncGroupRequest, SyncGroupResponse};

use crate::group_wire::{instance_id, member_id, text_of};
use crate::text::text;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: SyncGroupRequest,
    version: i16,
) -> Reply<SyncGroupResponse> {
    // From version 5 on the member says which protocol it follows.
    if version >= 5 && (request.protocol_type.is_none() || request.protocol_name.is_none()) {
        return Reply::Now(lower(SyncReply::refused(ErrorCode::InconsistentGroupProtocol)));
    }
    // The request ends here: while it waits for the leader, the frame that it came in is wanted.
    let sync = lift(request);
    let reply = node.shards.sync(sync).await;
    Reply::Now(lower(reply.unwrap_or_else(|error| SyncReply::refused(error.into()))))
}

#[expect(clippy::needless_pass_by_value, reason = "nothing of the request must be kept")]
fn lift(request: SyncGroupRequest) -> Sync {
    // A copy: the member would hold the whole frame as long as it lives.
    let copied = |assignment: &Bytes| Bytes::copy_from_slice(assignment);
    let assignments =
        request.assignments.iter().map(|one| (member_id(&one.member_id), copied(&one.assignment)));
    Sync {
        group_id: FromWire::from_wire(&request.group_id),
        generation: Generation(request.generation_id),
        member_id: member_id(&request.member_id),
        group_instance_id: instance_id(request.group_instance_id.as_ref()),
        protocol_type: request.protocol_type.as_ref().map(text_of),
        protocol_name: request.protocol_name.as_ref().map(text_of),
        assignments: assignments.collect(),
    }
}

fn lower(reply: SyncReply) -> SyncGroupResponse {
    SyncGroupResponse::default()
        .with_error_code(reply.error.code())
        .with_protocol_type(reply.protocol_type.as_deref().map(text))
        .with_protocol_name(reply.protocol_name.as_deref().map(text))
        .with_assignment(reply.assignment)
}

#[cfg(test)]
mod tests {
    use protocol::StrBytes;
    use protocol::messages::sync_group_request::SyncGroupRequestAssignment;

    use super::*;
    use crate::testing::{encodes, requested};

    #[test]
    fn a_member_that_waits_keeps_nothing_of_its_frame() {
        let assignment = SyncGroupRequestAssignment::default()
            .with_member_id(StrBytes::from_static_str("me"))
            .with_assignment(Bytes::from(vec![7; 20_000]));
        let request = SyncGroupRequest::default()
            .with_protocol_name(Some(StrBytes::from_static_str("range")))
            .with_assignments(vec![assignment]);
        let frame = requested(14, 5, &request);
        let sync = lift(protocol::decode(5, frame.clone()).expect("a request"));
        assert_eq!(sync.assignments[0].1.len(), 20_000);
        assert!(frame.is_unique());
    }

    #[test]
    fn every_version_carries_the_answer() {
        let reply = || SyncReply {
            error: ErrorCode::None,
            protocol_type: Some("consumer".into()),
            protocol_name: Some("range".into()),
            assignment: Bytes::from_static(b"x"),
        };
        encodes("SyncGroup", |_| lower(reply()));
        encodes("SyncGroup", |_| lower(SyncReply::refused(ErrorCode::RebalanceInProgress)));
    }
}
