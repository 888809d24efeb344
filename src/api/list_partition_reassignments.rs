//! ListPartitionReassignments: the reassignments that are under way.
//!
//! Kafka: `ControllerApis.handleListPartitionReassignments`; KIP-455.

use std::collections::BTreeMap;

use cluster::ClusterError;
use controller::{Decision, OngoingReassignment};
use model::{ErrorCode, PartitionIndex, TopicName};
use protocol::messages::list_partition_reassignments_request::ListPartitionReassignmentsTopics;
use protocol::messages::list_partition_reassignments_response::{
    OngoingPartitionReassignment, OngoingTopicReassignment,
};
use protocol::messages::{ListPartitionReassignmentsRequest, ListPartitionReassignmentsResponse};
use protocol::{FromWire, ToWire};

use crate::text::{broker_ids, message};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: ListPartitionReassignmentsRequest,
    _version: i16,
) -> Reply<ListPartitionReassignmentsResponse> {
    let topics = lift(&request);
    // A decision about nothing: it is answered when all before it is committed.
    let ongoing = node
        .decide(session.until, move |controller| Decision {
            records: Vec::new(),
            reply: controller.list_partition_reassignments(topics.as_deref()),
        })
        .await;
    Reply::Now(match ongoing {
        Ok(ongoing) => lower(ongoing),
        Err(cause) => error(cause),
    })
}

fn lift(request: &ListPartitionReassignmentsRequest) -> Option<Vec<(String, Vec<PartitionIndex>)>> {
    let topic = |topic: &ListPartitionReassignmentsTopics| {
        (TopicName::from_wire(&topic.name).to_string(), topic.partition_indexes.clone())
    };
    request.topics.as_ref().map(|topics| topics.iter().map(topic).collect())
}

fn lower(ongoing: Vec<OngoingReassignment>) -> ListPartitionReassignmentsResponse {
    let mut topics: BTreeMap<String, Vec<OngoingPartitionReassignment>> = BTreeMap::new();
    for reassignment in ongoing {
        let partition = OngoingPartitionReassignment::default()
            .with_partition_index(reassignment.partition)
            .with_replicas(broker_ids(&reassignment.replicas))
            .with_adding_replicas(broker_ids(&reassignment.adding))
            .with_removing_replicas(broker_ids(&reassignment.removing));
        topics.entry(reassignment.topic).or_default().push(partition);
    }
    let topics = topics.into_iter().map(|(name, partitions)| {
        OngoingTopicReassignment::default()
            .with_name(TopicName::from(name).to_wire())
            .with_partitions(partitions)
    });
    ListPartitionReassignmentsResponse::default().with_error_message(None).with_topics(topics.collect())
}

fn error(cause: ClusterError) -> ListPartitionReassignmentsResponse {
    ListPartitionReassignmentsResponse::default()
        .with_error_code(ErrorCode::from(cause).code())
        .with_error_message(Some(message(&cause)))
}

#[cfg(test)]
mod tests {
    use model::NodeId;

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_what_is_under_way_and_a_refusal() {
        let moves = |partition| OngoingReassignment {
            topic: "t".into(),
            partition,
            replicas: vec![NodeId(2), NodeId(1)],
            adding: vec![NodeId(2)],
            removing: vec![NodeId(1)],
        };
        let response = lower(vec![moves(0), moves(1)]);
        assert_eq!(response.topics.len(), 1, "partitions of one topic stand together");
        encodes("ListPartitionReassignments", |_| response.clone());
        encodes("ListPartitionReassignments", |_| error(ClusterError::NotController));
    }
}
