//! OffsetFetch: what groups have committed.
//!
//! `require_stable` asks nothing more: an answer always waits until all that it says is committed.
//!
//! Kafka: `KafkaApis.handleOffsetFetchRequest`, `OffsetFetchRequest`, `OffsetFetchResponse`; KIP-447, KIP-516, KIP-709.

use coordinator::{FetchOffsets, FetchedPartition, FetchedTopic, TopicPartitions};
use metadata::Image;
use model::{ErrorCode, GroupId, LeaderEpoch, Offset, TopicId};
use protocol::messages::offset_fetch_request::{OffsetFetchRequestGroup, OffsetFetchRequestTopic};
use protocol::messages::offset_fetch_response::{
    OffsetFetchResponseGroup, OffsetFetchResponsePartition, OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic, OffsetFetchResponseTopics,
};
use protocol::messages::{OffsetFetchRequest, OffsetFetchResponse};
use protocol::{FromWire, ToWire};

use crate::text::text;
use crate::{Node, Reply, Session};

/// The first version that names topics by their ids.
const TOPIC_IDS_VERSION: i16 = 10;
/// The first version that asks for several groups.
const GROUPS_VERSION: i16 = 8;
/// The first version that has an error of the group as a whole.
const GROUP_ERROR_VERSION: i16 = 2;

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: OffsetFetchRequest,
    version: i16,
) -> Reply<OffsetFetchResponse> {
    let image = node.image();
    let mut groups = Vec::new();
    for asked in lift(request, version) {
        groups.push(fetch(node, &image, asked, version).await);
    }
    Reply::Now(if version < GROUPS_VERSION { lower_one(groups, version) } else { lower(groups) })
}

/// What one group is asked for; no topics are all of them.
struct Asked {
    group_id: GroupId,
    topics: Option<Vec<TopicPartitions>>,
}

struct Fetched {
    group_id: GroupId,
    error: ErrorCode,
    topics: Vec<(FetchedTopic, ErrorCode)>,
}

fn lift(request: OffsetFetchRequest, version: i16) -> Vec<Asked> {
    if version < GROUPS_VERSION {
        let topics = request.topics.map(|topics| topics.iter().map(lift_topic).collect());
        return vec![Asked { group_id: FromWire::from_wire(&request.group_id), topics }];
    }
    request.groups.iter().map(lift_group).collect()
}

fn lift_topic(topic: &OffsetFetchRequestTopic) -> TopicPartitions {
    let partitions = topic.partition_indexes.clone();
    TopicPartitions { topic: FromWire::from_wire(&topic.name), topic_id: TopicId::ZERO, partitions }
}

fn lift_group(group: &OffsetFetchRequestGroup) -> Asked {
    let lift = |topics: &Vec<_>| topics.iter().map(lift_topic_of_group).collect();
    Asked { group_id: FromWire::from_wire(&group.group_id), topics: group.topics.as_ref().map(lift) }
}

fn lift_topic_of_group(
    topic: &protocol::messages::offset_fetch_request::OffsetFetchRequestTopics,
) -> TopicPartitions {
    let partitions = topic.partition_indexes.clone();
    TopicPartitions {
        topic: FromWire::from_wire(&topic.name),
        topic_id: FromWire::from_wire(&topic.topic_id),
        partitions,
    }
}

async fn fetch(node: &Node, image: &Image, asked: Asked, version: i16) -> Fetched {
    let (topics, unknown) = match asked.topics {
        Some(topics) if version >= TOPIC_IDS_VERSION => {
            let (known, unknown) = by_id(image, topics);
            (Some(known), unknown)
        }
        topics => (topics, Vec::new()),
    };
    let wanted = topics.clone();
    let is_all = topics.is_none();
    match node.shards.fetch_offsets(FetchOffsets { group_id: asked.group_id.clone(), topics }).await {
        Ok(mut found) => {
            if is_all && version >= TOPIC_IDS_VERSION {
                found = with_ids(image, found);
            }
            let found = found.into_iter().map(|topic| (topic, ErrorCode::None));
            let unknown = unknown.into_iter().map(|topic| (missing(topic), ErrorCode::UnknownTopicId));
            Fetched {
                group_id: asked.group_id,
                error: ErrorCode::None,
                topics: found.chain(unknown).collect(),
            }
        }
        Err(error) => {
            let error = ErrorCode::from(error);
            let failed = wanted.into_iter().flatten().map(|topic| (missing(topic), error));
            Fetched { group_id: asked.group_id, error, topics: failed.collect() }
        }
    }
}

/// Topics with the names that belong to their ids, and those whose id nobody has.
fn by_id(image: &Image, topics: Vec<TopicPartitions>) -> (Vec<TopicPartitions>, Vec<TopicPartitions>) {
    let named = |mut topic: TopicPartitions| match image.topics.by_id(topic.topic_id) {
        Some(known) => {
            topic.topic = known.name.clone();
            topic
        }
        None => topic,
    };
    let is_known = |topic: &TopicPartitions| image.topics.by_id(topic.topic_id).is_some();
    topics.into_iter().map(named).partition(is_known)
}

/// Topics that have an id now: the client does not know the others.
fn with_ids(image: &Image, topics: Vec<FetchedTopic>) -> Vec<FetchedTopic> {
    let with_id = |topic: FetchedTopic| {
        let known = image.topics.by_name(topic.topic.as_str())?;
        Some(FetchedTopic { topic_id: known.id, ..topic })
    };
    topics.into_iter().filter_map(with_id).collect()
}

fn missing(topic: TopicPartitions) -> FetchedTopic {
    let partitions = topic.partitions.iter().map(|partition| FetchedPartition {
        partition: *partition,
        offset: Offset(-1),
        leader_epoch: LeaderEpoch::NONE,
        metadata: "".into(),
    });
    FetchedTopic { topic: topic.topic, topic_id: topic.topic_id, partitions: partitions.collect() }
}

fn lower(groups: Vec<Fetched>) -> OffsetFetchResponse {
    let groups = groups.into_iter().map(|group| {
        let topics = if group.error.is_none() { group.topics } else { Vec::new() };
        OffsetFetchResponseGroup::default()
            .with_group_id(group.group_id.to_wire())
            .with_error_code(group.error.code())
            .with_topics(topics.into_iter().map(lower_topic_of_group).collect())
    });
    OffsetFetchResponse::default().with_groups(groups.collect())
}

fn lower_topic_of_group((topic, error): (FetchedTopic, ErrorCode)) -> OffsetFetchResponseTopics {
    let partitions = topic.partitions.into_iter().map(|partition| {
        OffsetFetchResponsePartitions::default()
            .with_partition_index(partition.partition)
            .with_committed_offset(partition.offset.0)
            .with_committed_leader_epoch(partition.leader_epoch.0)
            .with_metadata(Some(text(&partition.metadata)))
            .with_error_code(error.code())
    });
    OffsetFetchResponseTopics::default()
        .with_name(topic.topic.to_wire())
        .with_topic_id(topic.topic_id.to_wire())
        .with_partitions(partitions.collect())
}

/// The oldest versions say an error of the group at each partition.
fn lower_one(groups: Vec<Fetched>, version: i16) -> OffsetFetchResponse {
    let mut response = OffsetFetchResponse::default();
    for group in groups {
        let keep_topics = group.error.is_none() || version < GROUP_ERROR_VERSION;
        let topics = if keep_topics { group.topics } else { Vec::new() };
        response = response
            .with_error_code(if version < GROUP_ERROR_VERSION { 0 } else { group.error.code() })
            .with_topics(topics.into_iter().map(lower_topic).collect());
    }
    response
}

fn lower_topic((topic, error): (FetchedTopic, ErrorCode)) -> OffsetFetchResponseTopic {
    let partitions = topic.partitions.into_iter().map(|partition| {
        OffsetFetchResponsePartition::default()
            .with_partition_index(partition.partition)
            .with_committed_offset(partition.offset.0)
            .with_committed_leader_epoch(partition.leader_epoch.0)
            .with_metadata(Some(text(&partition.metadata)))
            .with_error_code(error.code())
    });
    OffsetFetchResponseTopic::default().with_name(topic.topic.to_wire()).with_partitions(partitions.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    fn fetched(error: ErrorCode) -> Vec<Fetched> {
        let topic = TopicPartitions { topic: "t".into(), topic_id: TopicId::ZERO, partitions: vec![0] };
        vec![Fetched { group_id: "g".into(), error, topics: vec![(missing(topic), error)] }]
    }

    #[test]
    fn every_version_carries_the_answer() {
        for error in [ErrorCode::None, ErrorCode::NotCoordinator] {
            encodes("OffsetFetch", |version| match version {
                ..GROUPS_VERSION => lower_one(fetched(error), version),
                _ => lower(fetched(error)),
            });
        }
    }

    #[test]
    fn an_error_of_the_group_stands_where_the_version_has_room_for_it() {
        let error = ErrorCode::CoordinatorLoadInProgress;
        let first = lower_one(fetched(error), 1);
        assert_eq!((first.error_code, first.topics[0].partitions[0].error_code), (0, error.code()));
        let second = lower_one(fetched(error), 2);
        assert_eq!((second.error_code, second.topics.len()), (error.code(), 0));
        let groups = lower(fetched(error)).groups;
        assert_eq!((groups[0].error_code, groups[0].topics.len()), (error.code(), 0));
    }

    #[test]
    fn null_topics_are_all_topics() {
        let request = OffsetFetchRequest::default().with_topics(None);
        assert!(lift(request, 7)[0].topics.is_none());
        let group = OffsetFetchRequestGroup::default().with_topics(None);
        assert!(lift(OffsetFetchRequest::default().with_groups(vec![group]), 8)[0].topics.is_none());
    }
}
