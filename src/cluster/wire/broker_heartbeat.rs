//! BrokerHeartbeat: a broker lives, and wants something.
//!
//! An Ottla broker names in a tagged field of its own, `LostReplicas`, those that it lost records of (`Heartbeat::lost`): a
//! topic id of 16 bytes and a partition of four, big-endian, one after the other. Kafka's controllers skip the tag.
//!
//! Kafka: `ControllerApis.handleBrokerHeartBeatRequest`, `BrokerLifecycleManager.sendBrokerHeartbeat`; KIP-631, 858.

use bytes::{BufMut, Bytes, BytesMut};
use controller::{ConnectionId, Controller, Decision, Heartbeat, HeartbeatReply};
use model::{BrokerEpoch, ErrorCode, Instant, NodeId, Offset, TopicIdPartition, Uuid};
use protocol::messages::{BrokerHeartbeatRequest, BrokerHeartbeatResponse};
use protocol::{FromWire, ToWire};
use tracing::debug;

use super::ControllerApi;

/// One replica of the tagged field.
const LOST_BYTES: usize = 20;

impl ControllerApi for Heartbeat {
    type Request = BrokerHeartbeatRequest;
    type Reply = HeartbeatReply;

    fn decide(self, controller: &mut Controller, now: Instant) -> Decision<Result<Self::Reply, ErrorCode>> {
        let Decision { records, reply } = controller.heartbeat(&self, now);
        let reply = reply.map_err(|error| {
            debug!(broker_id = self.id.0, %error, "a heartbeat was refused");
            ErrorCode::from(&error)
        });
        Decision { records, reply }
    }

    fn ask(self, version: i16) -> Self::Request {
        let offline = self.offline_directories.iter().filter(|_| version >= 1).map(ToWire::to_wire);
        BrokerHeartbeatRequest::default()
            .with_broker_id(self.id.to_wire())
            .with_broker_epoch(self.epoch.0)
            .with_current_metadata_offset(self.metadata_offset.0)
            .with_want_fence(self.want_fence)
            .with_want_shut_down(self.want_shut_down)
            .with_offline_log_dirs(offline.collect())
            .with_lost_replicas((!self.lost.is_empty()).then(|| lost_field(&self.lost)))
    }

    fn read(request: &Self::Request, connection: ConnectionId) -> Result<Self, ErrorCode> {
        let lost = request.lost_replicas.as_deref().map_or(Ok(Vec::new()), lost)?;
        Ok(Self {
            id: NodeId::from_wire(&request.broker_id),
            epoch: BrokerEpoch(request.broker_epoch),
            metadata_offset: Offset(request.current_metadata_offset),
            want_fence: request.want_fence,
            want_shut_down: request.want_shut_down,
            offline_directories: request.offline_log_dirs.iter().map(Uuid::from_wire).collect(),
            lost,
            connection,
        })
    }

    fn answer(result: Result<Self::Reply, ErrorCode>) -> BrokerHeartbeatResponse {
        match result {
            Ok(reply) => BrokerHeartbeatResponse::default()
                .with_is_caught_up(reply.is_caught_up)
                .with_is_fenced(reply.is_fenced)
                .with_should_shut_down(reply.should_shut_down),
            Err(error) => BrokerHeartbeatResponse::default().with_error_code(error.code()),
        }
    }

    fn hear(response: BrokerHeartbeatResponse) -> Result<Self::Reply, ErrorCode> {
        match ErrorCode::told(response.error_code) {
            ErrorCode::None => Ok(HeartbeatReply {
                is_caught_up: response.is_caught_up,
                is_fenced: response.is_fenced,
                should_shut_down: response.should_shut_down,
            }),
            error => Err(error),
        }
    }
}

fn lost_field(lost: &[TopicIdPartition]) -> Bytes {
    let mut field = BytesMut::with_capacity(lost.len() * LOST_BYTES);
    for replica in lost {
        field.put_slice(&replica.topic_id.0);
        field.put_i32(replica.partition);
    }
    field.freeze()
}

fn lost(field: &[u8]) -> Result<Vec<TopicIdPartition>, ErrorCode> {
    let (replicas, rest) = field.as_chunks::<LOST_BYTES>();
    if !rest.is_empty() {
        return Err(ErrorCode::InvalidRequest);
    }
    let replica = |bytes: &[u8; LOST_BYTES]| {
        let (topic_id, partition) = bytes.split_at(16);
        let topic_id = Uuid(topic_id.try_into().ok()?);
        Some(TopicIdPartition { topic_id, partition: i32::from_be_bytes(partition.try_into().ok()?) })
    };
    Ok(replicas.iter().filter_map(replica).collect())
}
