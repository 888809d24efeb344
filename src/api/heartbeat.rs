//! Heartbeat: a member lives.
//!
//! Kafka: `KafkaApis.handleHeartbeatRequest`, `GroupCoordinatorService.heartbeat`.

use coordinator::{Generation, Heartbeat};
use model::ErrorCode;
use protocol::FromWire;
use protocol::messages::{HeartbeatRequest, HeartbeatResponse};
use shards::ShardError;

use crate::group_wire::{instance_id, member_id};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: HeartbeatRequest,
    _version: i16,
) -> Reply<HeartbeatResponse> {
    let heartbeat = Heartbeat {
        group_id: FromWire::from_wire(&request.group_id),
        generation: Generation(request.generation_id),
        member_id: member_id(&request.member_id),
        group_instance_id: instance_id(request.group_instance_id.as_ref()),
    };
    let error = match node.shards.heartbeat(heartbeat).await {
        Ok(error) => error,
        // Sessions begin anew when the group is loaded, so nothing is lost by a yes.
        Err(ShardError::LoadInProgress) => ErrorCode::None,
        Err(error) => error.into(),
    };
    Reply::Now(HeartbeatResponse::default().with_error_code(error.code()))
}
