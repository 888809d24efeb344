//! DescribeQuorum: who votes on the metadata, who leads, and how far everybody is.
//!
//! Kafka: `KafkaRaftClient.handleDescribeQuorumRequest`; KIP-595, KIP-836, KIP-853.

use std::time::Duration;

use cluster::{Endpoint, QuorumDescription, QuorumReplica};
use model::{ErrorCode, NodeId, Offset, Timestamp};
use protocol::messages::describe_quorum_response::{
    self as response, PartitionData, ReplicaState, TopicData,
};
use protocol::messages::{DescribeQuorumRequest, DescribeQuorumResponse, describe_quorum_request};
use protocol::{StrBytes, ToWire};

use crate::text::text;
use crate::{Node, Reply, Session};

const METADATA_TOPIC: &str = "__cluster_metadata";
const UNKNOWN: &str = "This server does not host this topic-partition.";

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: DescribeQuorumRequest,
    version: i16,
) -> Reply<DescribeQuorumResponse> {
    if !asks_for_metadata(&request) {
        return Reply::Now(unknown(&request, version));
    }
    Reply::Now(match node.cluster.describe_quorum().await {
        Ok(quorum) if quorum.is_leader => lower(&quorum, node.env.clock.wall(), version),
        Ok(_) => error(
            ErrorCode::NotLeaderOrFollower,
            "This node does not lead the metadata quorum; ask again.",
            version,
        ),
        Err(cause) => error(cause.into(), &cause.to_string(), version),
    })
}

/// The metadata log is the only one with a quorum, and it is asked for alone.
fn asks_for_metadata(request: &DescribeQuorumRequest) -> bool {
    match request.topics.as_slice() {
        [topic] => {
            topic.topic_name.as_str() == METADATA_TOPIC
                && matches!(topic.partitions.as_slice(), [only] if only.partition_index == 0)
        }
        _ => false,
    }
}

/// Version 1 has times, version 2 also log folders, nodes and a message.
fn lower(quorum: &QuorumDescription, now: Timestamp, version: i16) -> DescribeQuorumResponse {
    let leader = quorum.leader.unwrap_or(NodeId::NONE);
    let replicas = |replicas: &[QuorumReplica]| {
        replicas.iter().map(|replica| lower_replica(replica, now, version)).collect::<Vec<_>>()
    };
    let partition = PartitionData::default()
        .with_error_message(no_message(version))
        .with_leader_id(leader.to_wire())
        .with_leader_epoch(quorum.epoch.0)
        .with_high_watermark(quorum.high_watermark.0)
        .with_current_voters(replicas(&quorum.voters))
        .with_observers(replicas(&quorum.observers));
    let topic = TopicData::default()
        .with_topic_name(model::TopicName::from(METADATA_TOPIC).to_wire())
        .with_partitions(vec![partition]);
    let nodes = if version >= 2 { quorum.endpoints.as_slice() } else { &[] };
    DescribeQuorumResponse::default()
        .with_error_message(no_message(version))
        .with_topics(vec![topic])
        .with_nodes(nodes.iter().map(lower_node).collect())
}

fn lower_node((id, endpoints): &(NodeId, Vec<Endpoint>)) -> response::Node {
    let listener = |endpoint: &Endpoint| {
        response::Listener::default()
            .with_name(text(&endpoint.name))
            .with_host(text(&endpoint.host))
            .with_port(endpoint.port)
    };
    response::Node::default()
        .with_node_id(id.to_wire())
        .with_listeners(endpoints.iter().map(listener).collect())
}

fn no_message(version: i16) -> Option<StrBytes> {
    (version >= 2).then(|| text(""))
}

fn lower_replica(replica: &QuorumReplica, now: Timestamp, version: i16) -> ReplicaState {
    let state = ReplicaState::default()
        .with_replica_id(replica.id.to_wire())
        .with_log_end_offset(replica.log_end.unwrap_or(Offset(-1)).0);
    let seen = |since: Option<Duration>| match since {
        Some(since) if version >= 1 => now.0 - since.as_millis() as i64,
        _ => Timestamp::NONE.0,
    };
    let state = state
        .with_last_fetch_timestamp(seen(replica.since_fetch))
        .with_last_caught_up_timestamp(seen(replica.since_caught_up));
    if version >= 2 { state.with_replica_directory_id(replica.directory.to_wire()) } else { state }
}

/// The answer to partitions that have no quorum.
fn unknown(request: &DescribeQuorumRequest, version: i16) -> DescribeQuorumResponse {
    let partition = |partition: &describe_quorum_request::PartitionData| {
        PartitionData::default()
            .with_partition_index(partition.partition_index)
            .with_error_code(ErrorCode::UnknownTopicOrPartition.code())
            .with_error_message((version >= 2).then(|| text(UNKNOWN)))
    };
    let topics = request.topics.iter().map(|topic| {
        TopicData::default()
            .with_topic_name(topic.topic_name.clone())
            .with_partitions(topic.partitions.iter().map(partition).collect())
    });
    DescribeQuorumResponse::default().with_error_message(no_message(version)).with_topics(topics.collect())
}

fn error(code: ErrorCode, why: &str, version: i16) -> DescribeQuorumResponse {
    DescribeQuorumResponse::default()
        .with_error_code(code.code())
        .with_error_message((version >= 2).then(|| text(why)))
}

#[cfg(test)]
mod tests {
    use model::{LeaderEpoch, Uuid};

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_describe_the_quorum_and_refuse_to() {
        let voter = QuorumReplica {
            id: NodeId(1),
            directory: Uuid([1; 16]),
            log_end: Some(Offset(5)),
            since_fetch: Some(Duration::ZERO),
            since_caught_up: None,
        };
        let endpoint = Endpoint { name: "CONTROLLER".into(), host: "a".into(), port: 9093 };
        let quorum = QuorumDescription {
            leader: Some(NodeId(1)),
            epoch: LeaderEpoch(1),
            high_watermark: Offset(5),
            is_leader: true,
            voters: vec![voter],
            observers: Vec::new(),
            endpoints: vec![(NodeId(1), vec![endpoint])],
        };
        encodes("DescribeQuorum", |version| lower(&quorum, Timestamp(7), version));
        encodes("DescribeQuorum", |version| error(ErrorCode::NotController, "why", version));
        let partition = describe_quorum_request::PartitionData::default();
        let topic = describe_quorum_request::TopicData::default().with_partitions(vec![partition]);
        let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
        encodes("DescribeQuorum", |version| unknown(&request, version));
    }
}
