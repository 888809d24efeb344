//! AlterPartitionReassignments: partitions get other replicas, or keep those that they had.
//!
//! Kafka: `ControllerApis.handleAlterPartitionReassignments`; KIP-455, KIP-860.

use cluster::ClusterError;
use controller::{AlterPartitionReassignments, AlteredReassignment, Reassignment};
use model::{ErrorCode, TopicName};
use protocol::messages::alter_partition_reassignments_response::{
    ReassignablePartitionResponse, ReassignableTopicResponse,
};
use protocol::messages::{AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse};
use protocol::{FromWire, StrBytes};

use crate::text::{message, nodes};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: AlterPartitionReassignmentsRequest,
    _version: i16,
) -> Reply<AlterPartitionReassignmentsResponse> {
    if request.topics.is_empty() {
        return Reply::Now(AlterPartitionReassignmentsResponse::default());
    }
    let command = lift(&request);
    let altered = node
        .decide(session.until, move |controller| controller.alter_partition_reassignments(&command))
        .await;
    Reply::Now(match altered {
        Ok(altered) => lower(&request, altered),
        Err(cause) => error(&request, cause),
    })
}

fn lift(request: &AlterPartitionReassignmentsRequest) -> AlterPartitionReassignments {
    let reassignments = request.topics.iter().flat_map(|topic| {
        topic.partitions.iter().map(|partition| Reassignment {
            topic: TopicName::from_wire(&topic.name).to_string(),
            partition: partition.partition_index,
            replicas: partition.replicas.as_deref().map(nodes),
        })
    });
    AlterPartitionReassignments {
        allow_replication_factor_change: request.allow_replication_factor_change,
        reassignments: reassignments.collect(),
    }
}

/// `altered` has one for each partition of the request, in its order.
fn lower(
    request: &AlterPartitionReassignmentsRequest,
    altered: Vec<AlteredReassignment>,
) -> AlterPartitionReassignmentsResponse {
    let mut altered = altered.into_iter();
    answer(request, || {
        let cause = altered.next().and_then(|altered| altered.result.err());
        (cause.as_ref().map_or(ErrorCode::None, ErrorCode::from), cause.as_ref().map(message))
    })
}

fn error(
    request: &AlterPartitionReassignmentsRequest,
    cause: ClusterError,
) -> AlterPartitionReassignmentsResponse {
    answer(request, || (cause.into(), Some(message(&cause))))
        .with_error_code(ErrorCode::from(cause).code())
        .with_error_message(Some(message(&cause)))
}

fn answer(
    request: &AlterPartitionReassignmentsRequest,
    mut result: impl FnMut() -> (ErrorCode, Option<StrBytes>),
) -> AlterPartitionReassignmentsResponse {
    let responses = request.topics.iter().map(|topic| {
        let partitions = topic.partitions.iter().map(|partition| {
            let (code, message) = result();
            ReassignablePartitionResponse::default()
                .with_partition_index(partition.partition_index)
                .with_error_code(code.code())
                .with_error_message(message)
        });
        ReassignableTopicResponse::default()
            .with_name(topic.name.clone())
            .with_partitions(partitions.collect())
    });
    AlterPartitionReassignmentsResponse::default()
        .with_allow_replication_factor_change(request.allow_replication_factor_change)
        .with_error_message(None)
        .with_responses(responses.collect())
}

#[cfg(test)]
mod tests {
    use controller::ReassignmentError;
    use model::NodeId;
    use protocol::ToWire;
    use protocol::messages::BrokerId;
    use protocol::messages::alter_partition_reassignments_request::{
        ReassignablePartition, ReassignableTopic,
    };

    use super::*;
    use crate::testing::encodes;

    fn request() -> AlterPartitionReassignmentsRequest {
        let partition = |index, replicas: Option<&[i32]>| {
            let replicas = replicas.map(|replicas| replicas.iter().copied().map(BrokerId).collect());
            ReassignablePartition::default().with_partition_index(index).with_replicas(replicas)
        };
        let topic = ReassignableTopic::default()
            .with_name(TopicName::from("t").to_wire())
            .with_partitions(vec![partition(0, Some(&[1, 2])), partition(1, None)]);
        AlterPartitionReassignmentsRequest::default().with_topics(vec![topic])
    }

    fn altered(partition: i32, result: Result<(), ReassignmentError>) -> AlteredReassignment {
        AlteredReassignment { topic: "t".into(), partition, result }
    }

    #[test]
    fn no_replicas_call_a_reassignment_off() {
        let replicas: Vec<_> =
            lift(&request()).reassignments.into_iter().map(|reassignment| reassignment.replicas).collect();
        assert_eq!(replicas, [Some(vec![NodeId(1), NodeId(2)]), None]);
    }

    #[test]
    fn every_version_can_say_what_came_of_each_partition() {
        let results = || vec![altered(0, Ok(())), altered(1, Err(ReassignmentError::NotInProgress))];
        let response = lower(&request(), results());
        let codes: Vec<_> = response.responses[0].partitions.iter().map(|one| one.error_code).collect();
        assert_eq!(codes, [0, ErrorCode::NoReassignmentInProgress.code()]);
        encodes("AlterPartitionReassignments", |_| lower(&request(), results()));
        encodes("AlterPartitionReassignments", |_| error(&request(), ClusterError::NotController));
    }
}
