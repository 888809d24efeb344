//! DescribeQuorum: who votes on the metadata, who leads, and how far everybody is.
//!
//! Kafka: `KafkaRaftClient.handleDescribeQuorumRequest`; KIP-595, KIP-836, KIP-853.

use cluster::{QuorumDescription, QuorumReplica};
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
    let voters = quorum.voters.iter().map(|voter| lower_replica(voter, leader, now, version)).collect();
    let partition = PartitionData::default()
        .with_error_message(no_message(version))
        .with_leader_id(leader.to_wire())
        .with_leader_epoch(quorum.epoch.0)
        .with_high_watermark(quorum.high_watermark.0)
        .with_current_voters(voters);
    let topic = TopicData::default()
        .with_topic_name(model::TopicName::from(METADATA_TOPIC).to_wire())
        .with_partitions(vec![partition]);
    let node = |voter: &QuorumReplica| response::Node::default().with_node_id(voter.id.to_wire());
    let nodes = if version >= 2 { quorum.voters.as_slice() } else { &[] };
    DescribeQuorumResponse::default()
        .with_error_message(no_message(version))
        .with_topics(vec![topic])
        .with_nodes(nodes.iter().map(node).collect())
}

fn no_message(version: i16) -> Option<StrBytes> {
    (version >= 2).then(|| text(""))
}

/// The leader has everything that it has, now.
fn lower_replica(replica: &QuorumReplica, leader: NodeId, now: Timestamp, version: i16) -> ReplicaState {
    let state = ReplicaState::default()
        .with_replica_id(replica.id.to_wire())
        .with_log_end_offset(replica.log_end.unwrap_or(Offset(-1)).0);
    let seen = if replica.id == leader && version >= 1 { now } else { Timestamp::NONE };
    let state = state.with_last_fetch_timestamp(seen.0).with_last_caught_up_timestamp(seen.0);
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
            last_fetch: None,
            last_caught_up: None,
        };
        let quorum = QuorumDescription {
            leader: Some(NodeId(1)),
            epoch: LeaderEpoch(1),
            high_watermark: Offset(5),
            is_leader: true,
            voters: vec![voter],
        };
        encodes("DescribeQuorum", |version| lower(&quorum, Timestamp(7), version));
        encodes("DescribeQuorum", |version| error(ErrorCode::NotController, "why", version));
        let partition = describe_quorum_request::PartitionData::default();
        let topic = describe_quorum_request::TopicData::default().with_partitions(vec![partition]);
        let request = DescribeQuorumRequest::default().with_topics(vec![topic]);
        encodes("DescribeQuorum", |version| unknown(&request, version));
    }
}
