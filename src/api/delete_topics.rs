//! DeleteTopics: by name, and from version 6 on also by id.
//!
//! Kafka: `ControllerApis.deleteTopics`; KIP-516.

use cluster::ClusterError;
use controller::{DeleteTopic, DeletedTopic, TopicError};
use model::{ErrorCode, TopicId, TopicName, Uuid};
use protocol::messages::delete_topics_response::DeletableTopicResult;
use protocol::messages::{DeleteTopicsRequest, DeleteTopicsResponse};
use protocol::{FromWire, ToWire};

use crate::text::message;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: DeleteTopicsRequest,
    version: i16,
) -> Reply<DeleteTopicsResponse> {
    let topics = lift(&request, version);
    let asked = topics.clone();
    let deleted = node.decide(session.until, move |controller| controller.delete_topics(&asked)).await;
    Reply::Now(match deleted {
        Ok(deleted) => lower(deleted, version),
        Err(cause) => error(&topics, cause),
    })
}

fn lift(request: &DeleteTopicsRequest, version: i16) -> Vec<DeleteTopic> {
    if version < 6 {
        let name =
            |name: &_| DeleteTopic { name: Some(TopicName::from_wire(name).to_string()), id: Uuid::ZERO };
        return request.topic_names.iter().map(name).collect();
    }
    let topics = request.topics.iter().map(|topic| DeleteTopic {
        name: topic.name.as_ref().map(|name| TopicName::from_wire(name).to_string()),
        id: TopicId::from_wire(&topic.topic_id),
    });
    topics.collect()
}

fn lower(deleted: Vec<DeletedTopic>, version: i16) -> DeleteTopicsResponse {
    let responses = deleted.into_iter().map(|topic| {
        let result = answer(topic.name.as_deref(), topic.id);
        match topic.result {
            Ok(()) => result,
            Err(cause) => {
                result.with_error_code(code(&cause, version).code()).with_error_message(Some(message(&cause)))
            }
        }
    });
    DeleteTopicsResponse::default().with_responses(responses.collect())
}

/// Clients older than version 3 do not know TOPIC_DELETION_DISABLED.
fn code(cause: &TopicError, version: i16) -> ErrorCode {
    match cause {
        TopicError::DeletionDisabled if version < 3 => ErrorCode::InvalidRequest,
        cause => cause.into(),
    }
}

fn answer(name: Option<&str>, id: TopicId) -> DeletableTopicResult {
    DeletableTopicResult::default()
        .with_name(name.map(|name| TopicName::from(name).to_wire()))
        .with_topic_id(id.to_wire())
}

fn error(topics: &[DeleteTopic], cause: ClusterError) -> DeleteTopicsResponse {
    let responses = topics.iter().map(|topic| {
        answer(topic.name.as_deref(), topic.id)
            .with_error_code(ErrorCode::from(cause).code())
            .with_error_message(Some(message(&cause)))
    });
    DeleteTopicsResponse::default().with_responses(responses.collect())
}

#[cfg(test)]
mod tests {
    use protocol::messages::delete_topics_request;

    use super::*;
    use crate::testing::encodes;

    fn deleted(result: Result<(), TopicError>) -> Vec<DeletedTopic> {
        vec![DeletedTopic { name: Some("t".into()), id: Uuid([1; 16]), result }]
    }

    #[test]
    fn every_version_can_say_what_came_of_a_topic() {
        encodes("DeleteTopics", |version| lower(deleted(Ok(())), version));
        encodes("DeleteTopics", |version| lower(deleted(Err(TopicError::UnknownName)), version));
    }

    #[test]
    fn old_clients_are_told_of_disabled_deletion_by_a_code_that_they_know() {
        let code =
            |version| lower(deleted(Err(TopicError::DeletionDisabled)), version).responses[0].error_code;
        assert_eq!(code(2), ErrorCode::InvalidRequest.code());
        assert_eq!(code(3), ErrorCode::TopicDeletionDisabled.code());
    }

    #[test]
    fn names_come_alone_before_version_six_and_ids_from_then_on() {
        let request = DeleteTopicsRequest::default().with_topic_names(vec![TopicName::from("t").to_wire()]);
        let by_name = DeleteTopic { name: Some("t".into()), id: Uuid::ZERO };
        assert_eq!(lift(&request, 5), [by_name]);
        let state = delete_topics_request::DeleteTopicState::default()
            .with_name(None)
            .with_topic_id(Uuid([1; 16]).to_wire());
        let request = DeleteTopicsRequest::default().with_topics(vec![state]);
        assert_eq!(lift(&request, 6), [DeleteTopic { name: None, id: Uuid([1; 16]) }]);
    }
}
