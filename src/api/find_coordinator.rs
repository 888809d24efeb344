//! FindCoordinator: which node coordinates a group. The offsets topic is made when the first one asks.
//!
//! Kafka: `KafkaApis.handleFindCoordinatorRequest`; KIP-699 (several keys).

use metadata::{Endpoint, Image};
use model::internal_topics::CONSUMER_OFFSETS;
use model::{ErrorCode, GroupId, NodeId, TopicName};
use protocol::messages::find_coordinator_response::Coordinator;
use protocol::messages::{BrokerId, FindCoordinatorRequest, FindCoordinatorResponse};
use protocol::{StrBytes, ToWire};

use crate::text::text;
use crate::{Node, Reply, Session, auto_creation};

/// The first version that asks for several keys.
const KEYS_VERSION: i16 = 4;
const GROUP: i8 = 0;
const TRANSACTION: i8 = 1;

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: FindCoordinatorRequest,
    version: i16,
) -> Reply<FindCoordinatorResponse> {
    if request.key_type == GROUP && node.image().topics.by_name(CONSUMER_OFFSETS).is_none() {
        // Where it was not made the answer says so, and the client asks again.
        let _ = auto_creation::create_missing(node, &[TopicName::from(CONSUMER_OFFSETS)]).await;
    }
    let image = node.image();
    let find = |key: &StrBytes| find(&image, &session.listener, request.key_type, key);
    Reply::Now(if version < KEYS_VERSION {
        lower_one(find(&request.key))
    } else {
        let coordinators = request.coordinator_keys.iter().map(|key| lower(key, find(key)));
        FindCoordinatorResponse::default().with_coordinators(coordinators.collect())
    })
}

type Found<'a> = Result<(NodeId, &'a Endpoint), (ErrorCode, &'static str)>;

fn find<'a>(image: &'a Image, listener: &str, key_type: i8, key: &str) -> Found<'a> {
    match key_type {
        GROUP => find_group(image, listener, &key.into())
            .ok_or((ErrorCode::CoordinatorNotAvailable, "The coordinator is not available.")),
        TRANSACTION => {
            Err((ErrorCode::CoordinatorNotAvailable, "This broker does not coordinate transactions."))
        }
        _ => Err((ErrorCode::InvalidRequest, "The type of coordinator that is asked for is not known here.")),
    }
}

fn find_group<'a>(image: &'a Image, listener: &str, group_id: &GroupId) -> Option<(NodeId, &'a Endpoint)> {
    let topic = image.topics.by_name(CONSUMER_OFFSETS)?;
    let partition = coordinator::partition_for(group_id, i32::try_from(topic.partitions.len()).ok()?);
    let broker = image.brokers.get(topic.partitions.get(&partition)?.leader)?;
    let endpoint = broker.endpoint(listener).filter(|_| broker.is_active())?;
    Some((broker.id, endpoint))
}

fn lower(key: &StrBytes, found: Found<'_>) -> Coordinator {
    let coordinator = Coordinator::default().with_key(key.clone());
    match found {
        Ok((node_id, endpoint)) => coordinator
            .with_node_id(node_id.to_wire())
            .with_host(text(&endpoint.host))
            .with_port(endpoint.port.into()),
        Err((error, message)) => coordinator
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(error.code())
            .with_error_message(Some(StrBytes::from_static_str(message))),
    }
}

fn lower_one(found: Found<'_>) -> FindCoordinatorResponse {
    let response = FindCoordinatorResponse::default();
    match found {
        Ok((node_id, endpoint)) => response
            .with_node_id(node_id.to_wire())
            .with_host(text(&endpoint.host))
            .with_port(endpoint.port.into())
            .with_error_message(Some(StrBytes::from_static_str("NONE"))),
        Err((error, message)) => response
            .with_node_id(BrokerId(-1))
            .with_port(-1)
            .with_error_code(error.code())
            .with_error_message(Some(StrBytes::from_static_str(message))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    #[test]
    fn without_the_offsets_topic_there_is_no_coordinator_yet() {
        let image = Image::default();
        let found = || find(&image, "PLAINTEXT", GROUP, "g");
        let one = lower_one(found());
        assert_eq!((one.error_code, one.node_id.0, one.port), (15, -1, -1));
        encodes("FindCoordinator", |version| match version {
            ..KEYS_VERSION => lower_one(found()),
            _ => FindCoordinatorResponse::default().with_coordinators(vec![lower(&"g".into(), found())]),
        });
    }

    #[test]
    fn a_type_that_nobody_knows_is_refused() {
        let code =
            |key_type| find(&Image::default(), "PLAINTEXT", key_type, "g").map_err(|(error, _)| error).err();
        assert_eq!(code(9), Some(ErrorCode::InvalidRequest));
        assert_eq!(code(TRANSACTION), Some(ErrorCode::CoordinatorNotAvailable));
    }
}
