//! OffsetDelete: an administrator forgets offsets of topics that the group no longer consumes.
//!
//! Kafka: `KafkaApis.handleOffsetDeleteRequest`, `OffsetDeleteResponse.Builder`; KIP-496.

use coordinator::{DeleteOffsets, TopicErrors, TopicPartitions};
use metadata::Image;
use model::{ErrorCode, TopicId, TopicName};
use protocol::messages::offset_delete_request::OffsetDeleteRequestTopic;
use protocol::messages::offset_delete_response::{OffsetDeleteResponsePartition, OffsetDeleteResponseTopic};
use protocol::messages::{OffsetDeleteRequest, OffsetDeleteResponse};
use protocol::{FromWire, ToWire};

use crate::group_wire::merged;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: OffsetDeleteRequest,
    _version: i16,
) -> Reply<OffsetDeleteResponse> {
    let (delete, unknown) = lift(&node.image(), &request);
    if delete.group_id.as_str().is_empty() {
        return Reply::Now(error(ErrorCode::InvalidGroupId));
    }
    Reply::Now(match node.shards.delete_offsets(delete).await {
        Ok(Ok(deleted)) => lower(unknown, deleted),
        Ok(Err(code)) => error(code),
        Err(failure) => error(failure.into()),
    })
}

/// What to delete, and what of it names no partition that there is.
fn lift(image: &Image, request: &OffsetDeleteRequest) -> (DeleteOffsets, Vec<TopicErrors>) {
    let mut unknown = Vec::new();
    let topics = request.topics.iter().filter_map(|topic| lift_topic(image, topic, &mut unknown)).collect();
    (DeleteOffsets { group_id: FromWire::from_wire(&request.group_id), topics }, unknown)
}

fn lift_topic(
    image: &Image,
    wire: &OffsetDeleteRequestTopic,
    unknown: &mut Vec<TopicErrors>,
) -> Option<TopicPartitions> {
    let topic = TopicName::from_wire(&wire.name);
    let known = image.topics.by_name(topic.as_str());
    let is_known = |index: &i32| known.is_some_and(|topic| topic.partitions.contains_key(index));
    let (partitions, missing): (Vec<_>, Vec<_>) =
        wire.partitions.iter().map(|partition| partition.partition_index).partition(is_known);
    if !missing.is_empty() {
        let partitions =
            missing.into_iter().map(|index| (index, ErrorCode::UnknownTopicOrPartition)).collect();
        unknown.push(TopicErrors { topic: topic.clone(), topic_id: TopicId::ZERO, partitions });
    }
    (!partitions.is_empty()).then_some(TopicPartitions { topic, topic_id: TopicId::ZERO, partitions })
}

fn error(code: ErrorCode) -> OffsetDeleteResponse {
    OffsetDeleteResponse::default().with_error_code(code.code())
}

fn lower(unknown: Vec<TopicErrors>, deleted: Vec<TopicErrors>) -> OffsetDeleteResponse {
    let topics = merged(unknown, deleted).into_iter().map(lower_topic);
    OffsetDeleteResponse::default().with_topics(topics.collect())
}

fn lower_topic(topic: TopicErrors) -> OffsetDeleteResponseTopic {
    let partitions = topic.partitions.into_iter().map(|(partition, error)| {
        OffsetDeleteResponsePartition::default().with_partition_index(partition).with_error_code(error.code())
    });
    OffsetDeleteResponseTopic::default()
        .with_name(topic.topic.to_wire())
        .with_partitions(partitions.collect())
}
