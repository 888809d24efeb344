//! OffsetCommit: appended in the order of the requests, answered when it is durable.
//!
//! Kafka: `KafkaApis.handleOffsetCommitRequest`, `OffsetCommitResponse.Builder`; KIP-516 (topic ids).

use std::time::Duration;

use coordinator::{Commit, CommitPartition, CommitTopic, Generation, TopicErrors, all_failed};
use metadata::Image;
use model::{ErrorCode, LeaderEpoch, Offset, PartitionIndex, TopicId, TopicName};
use protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use protocol::messages::{OffsetCommitRequest, OffsetCommitResponse};
use protocol::{FromWire, ToWire};

use crate::group_wire::{instance_id, member_id, merged, text_of};
use crate::{Node, Reply, Session};

/// The first version that names topics by their ids.
const TOPIC_IDS_VERSION: i16 = 10;
/// The first version that knows `GROUP_ID_NOT_FOUND`.
const NOT_FOUND_VERSION: i16 = 9;

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: OffsetCommitRequest,
    version: i16,
) -> Reply<OffsetCommitResponse> {
    let (commit, unknown) = lift(&node.image(), &request, version);
    if commit.topics.is_empty() {
        return Reply::Now(lower(unknown, Vec::new()));
    }
    let topics = commit.topics.clone();
    match node.shards.commit(commit).await {
        Err(error) => Reply::Now(lower(unknown, all_failed(topics, error.into()))),
        Ok(appended) => Reply::Later(Box::pin(async move {
            let committed = appended.committed().await;
            lower(unknown, committed.unwrap_or_else(|error| all_failed(topics, error.into())))
        })),
    }
}

/// The commit, and what of it names no partition that there is.
fn lift(image: &Image, request: &OffsetCommitRequest, version: i16) -> (Commit, Vec<TopicErrors>) {
    let mut unknown = Vec::new();
    let topics =
        request.topics.iter().filter_map(|topic| lift_topic(image, topic, version, &mut unknown)).collect();
    // -1 leaves it to the broker.
    let retention = u64::try_from(request.retention_time_ms).ok().map(Duration::from_millis);
    let commit = Commit {
        group_id: FromWire::from_wire(&request.group_id),
        generation: Generation(request.generation_id_or_member_epoch),
        member_id: member_id(&request.member_id),
        group_instance_id: instance_id(request.group_instance_id.as_ref()),
        retention,
        knows_group_id_not_found: version >= NOT_FOUND_VERSION,
        topics,
    };
    (commit, unknown)
}

fn lift_topic(
    image: &Image,
    wire: &OffsetCommitRequestTopic,
    version: i16,
    unknown: &mut Vec<TopicErrors>,
) -> Option<CommitTopic> {
    let by_id = version >= TOPIC_IDS_VERSION;
    let topic_id = TopicId::from_wire(&wire.topic_id);
    let topic = if by_id { image.topics.by_id(topic_id) } else { image.topics.by_name(&wire.name) };
    let error =
        if by_id && topic.is_none() { ErrorCode::UnknownTopicId } else { ErrorCode::UnknownTopicOrPartition };
    let is_known = |index: PartitionIndex| topic.is_some_and(|topic| topic.partitions.contains_key(&index));
    // The id is kept with the offset, whichever way the client named the topic.
    let (name, topic_id) = topic
        .map_or_else(|| (TopicName::from_wire(&wire.name), topic_id), |topic| (topic.name.clone(), topic.id));
    let (known, missing): (Vec<_>, Vec<_>) =
        wire.partitions.iter().partition(|p| is_known(p.partition_index));
    if !missing.is_empty() || topic.is_none() {
        let partitions = missing.iter().map(|partition| (partition.partition_index, error)).collect();
        unknown.push(TopicErrors { topic: name.clone(), topic_id, partitions });
    }
    let partitions: Vec<_> = known.into_iter().map(lift_partition).collect();
    (!partitions.is_empty()).then_some(CommitTopic { topic: name, topic_id, partitions })
}

fn lift_partition(wire: &OffsetCommitRequestPartition) -> CommitPartition {
    CommitPartition {
        partition: wire.partition_index,
        offset: Offset(wire.committed_offset),
        leader_epoch: LeaderEpoch(wire.committed_leader_epoch),
        metadata: wire.committed_metadata.as_ref().map_or_else(|| "".into(), text_of),
    }
}

fn lower(unknown: Vec<TopicErrors>, committed: Vec<TopicErrors>) -> OffsetCommitResponse {
    let topics = merged(unknown, committed).into_iter().map(lower_topic);
    OffsetCommitResponse::default().with_topics(topics.collect())
}

fn lower_topic(topic: TopicErrors) -> OffsetCommitResponseTopic {
    let partitions = topic.partitions.into_iter().map(|(partition, error)| {
        OffsetCommitResponsePartition::default().with_partition_index(partition).with_error_code(error.code())
    });
    OffsetCommitResponseTopic::default()
        .with_name(topic.topic.to_wire())
        .with_topic_id(topic.topic_id.to_wire())
        .with_partitions(partitions.collect())
}

#[cfg(test)]
mod tests {
    use model::Uuid;

    use super::*;
    use crate::testing::encodes;

    fn errors(topic: &str, partitions: &[(i32, ErrorCode)]) -> TopicErrors {
        TopicErrors { topic: topic.into(), topic_id: Uuid([7; 16]), partitions: partitions.to_vec() }
    }

    #[test]
    fn what_was_not_known_comes_before_what_was_committed() {
        let lowered = || {
            let unknown = vec![errors("a", &[(7, ErrorCode::UnknownTopicOrPartition)])];
            lower(unknown, vec![errors("a", &[(0, ErrorCode::None)]), errors("b", &[(1, ErrorCode::None)])])
        };
        let topics = lowered().topics;
        let of_a: Vec<_> = topics[0].partitions.iter().map(|p| (p.partition_index, p.error_code)).collect();
        assert_eq!((topics.len(), of_a), (2, vec![(7, 3), (0, 0)]));
        encodes("OffsetCommit", |_| lowered());
    }

    #[test]
    fn partitions_that_are_not_there_are_not_committed() {
        let partition = OffsetCommitRequestPartition::default();
        let topic =
            OffsetCommitRequestTopic::default().with_name(protocol::messages::TopicName("ghost".into()));
        let request =
            OffsetCommitRequest::default().with_topics(vec![topic.with_partitions(vec![partition])]);
        for (version, error) in [(9, ErrorCode::UnknownTopicOrPartition), (10, ErrorCode::UnknownTopicId)] {
            let (commit, unknown) = lift(&Image::default(), &request, version);
            assert_eq!((commit.topics.len(), unknown[0].partitions[0]), (0, (0, error)));
        }
    }

    #[test]
    fn a_retention_of_minus_one_is_the_brokers() {
        let lifted =
            |ms| lift(&Image::default(), &OffsetCommitRequest::default().with_retention_time_ms(ms), 2).0;
        assert_eq!(lifted(-1).retention, None);
        assert_eq!(lifted(5).retention, Some(Duration::from_millis(5)));
    }
}
