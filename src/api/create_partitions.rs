//! CreatePartitions: more partitions for topics that are there.
//!
//! Kafka: `ControllerApis.createPartitions`; KIP-195.

use cluster::ClusterError;
use controller::{CreatePartitions, CreatedPartitions, NewPartitions, TopicError};
use model::{ErrorCode, TopicName};
use protocol::messages::create_partitions_request::CreatePartitionsTopic;
use protocol::messages::create_partitions_response::CreatePartitionsTopicResult;
use protocol::messages::{CreatePartitionsRequest, CreatePartitionsResponse};
use protocol::{FromWire, ToWire};

use crate::text::{message, nodes};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: CreatePartitionsRequest,
    _version: i16,
) -> Reply<CreatePartitionsResponse> {
    let command = lift(&request);
    let rng = node.env.rng.clone();
    let created = node
        .decide_where_space_is(session.until, move |controller| {
            controller.create_partitions(&command, &mut || rng.next_u64())
        })
        .await;
    Reply::Now(match created {
        Ok(created) => lower(created),
        Err(cause) => error(&request, cause),
    })
}

fn lift(request: &CreatePartitionsRequest) -> CreatePartitions {
    let topics = request.topics.iter().map(lift_topic).collect();
    CreatePartitions { topics, validate_only: request.validate_only }
}

fn lift_topic(topic: &CreatePartitionsTopic) -> NewPartitions {
    let assignments = topic.assignments.as_ref();
    NewPartitions {
        name: TopicName::from_wire(&topic.name).to_string(),
        count: topic.count,
        assignments: assignments.map(|all| all.iter().map(|one| nodes(&one.broker_ids)).collect()),
    }
}

fn lower(created: Vec<CreatedPartitions>) -> CreatePartitionsResponse {
    let results = created.into_iter().map(|topic| {
        let result = CreatePartitionsTopicResult::default().with_name(TopicName::from(topic.name).to_wire());
        match topic.result {
            Ok(()) => result.with_error_message(None),
            // The code says it all, and Kafka adds nothing.
            Err(cause @ TopicError::UnknownName) => {
                result.with_error_code(ErrorCode::from(&cause).code()).with_error_message(None)
            }
            Err(cause) => result
                .with_error_code(ErrorCode::from(&cause).code())
                .with_error_message(Some(message(&cause))),
        }
    });
    CreatePartitionsResponse::default().with_results(results.collect())
}

fn error(request: &CreatePartitionsRequest, cause: ClusterError) -> CreatePartitionsResponse {
    let results = request.topics.iter().map(|topic| {
        CreatePartitionsTopicResult::default()
            .with_name(TopicName::from_wire(&topic.name).to_wire())
            .with_error_code(ErrorCode::from(cause).code())
            .with_error_message(Some(message(&cause)))
    });
    CreatePartitionsResponse::default().with_results(results.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_what_came_of_a_topic() {
        for result in [Ok(()), Err(TopicError::UnknownName), Err(TopicError::HasPartitions(1))] {
            let created = || vec![CreatedPartitions { name: "t".into(), result: result.clone() }];
            encodes("CreatePartitions", |_| lower(created()));
        }
    }
}
