//! CreateTopics: new topics, each created or refused by itself.
//!
//! Kafka: `ControllerApis.createTopics`; KIP-464 (defaults), KIP-525 (what is told back).

use cluster::ClusterError;
use controller::{Assignment, CreateTopics, CreatedTopic, NewTopic, TopicCreated, TopicError};
use metadata::config::Described;
use model::{ErrorCode, Instant, TopicName};
use protocol::messages::create_topics_request::CreatableTopic;
use protocol::messages::create_topics_response::{CreatableTopicConfigs, CreatableTopicResult};
use protocol::messages::{CreateTopicsRequest, CreateTopicsResponse};
use protocol::{FromWire, ToWire};

use crate::text::{message, nodes, text};
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: CreateTopicsRequest,
    _version: i16,
) -> Reply<CreateTopicsResponse> {
    Reply::Now(create(node, session.until, &request).await)
}

/// Lets this node's controller create topics.
pub(crate) async fn create(
    node: &Node,
    until: Instant,
    request: &CreateTopicsRequest,
) -> CreateTopicsResponse {
    let command = lift(request);
    let rng = node.env.rng.clone();
    let created = node
        .decide_where_space_is(until, move |controller| {
            controller.create_topics(&command, &mut || rng.next_u64())
        })
        .await;
    match created {
        Ok(created) => lower(created),
        Err(cause) => error(request, cause),
    }
}

fn lift(request: &CreateTopicsRequest) -> CreateTopics {
    CreateTopics {
        topics: request.topics.iter().map(lift_topic).collect(),
        validate_only: request.validate_only,
    }
}

fn lift_topic(topic: &CreatableTopic) -> NewTopic {
    let assignments = topic.assignments.iter().map(|assignment| Assignment {
        partition: assignment.partition_index,
        replicas: nodes(&assignment.broker_ids),
    });
    let configs = topic
        .configs
        .iter()
        .map(|config| (config.name.to_string(), config.value.as_ref().map(ToString::to_string)));
    NewTopic {
        name: topic.name.to_string(),
        partitions: topic.num_partitions,
        replication_factor: topic.replication_factor,
        assignments: assignments.collect(),
        configs: configs.collect(),
    }
}

fn lower(created: Vec<CreatedTopic>) -> CreateTopicsResponse {
    let topics = created.into_iter().map(|topic| match topic.result {
        Ok(created) => lower_created(&topic.name, &created),
        Err(cause) => refused(&topic.name, &cause),
    });
    CreateTopicsResponse::default().with_topics(topics.collect())
}

fn lower_created(name: &str, created: &TopicCreated) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(TopicName::from(name).to_wire())
        .with_topic_id(created.id.to_wire())
        .with_error_message(None)
        .with_num_partitions(created.partitions)
        .with_replication_factor(created.replication_factor)
        .with_configs(Some(created.configs.iter().map(lower_config).collect()))
}

fn lower_config(config: &Described) -> CreatableTopicConfigs {
    CreatableTopicConfigs::default()
        .with_name(text(config.name))
        .with_value(config.value.as_deref().map(text))
        .with_read_only(config.read_only)
        .with_config_source(config.source.code())
        .with_is_sensitive(config.sensitive)
}

fn refused(name: &str, cause: &TopicError) -> CreatableTopicResult {
    CreatableTopicResult::default()
        .with_name(TopicName::from(name).to_wire())
        .with_error_code(ErrorCode::from(cause).code())
        .with_error_message(Some(message(cause)))
        .with_configs(Some(Vec::new()))
}

pub(crate) fn error(request: &CreateTopicsRequest, cause: ClusterError) -> CreateTopicsResponse {
    let topics = request.topics.iter().map(|topic| {
        CreatableTopicResult::default()
            .with_name(TopicName::from_wire(&topic.name).to_wire())
            .with_error_code(ErrorCode::from(cause).code())
            .with_error_message(Some(message(&cause)))
            .with_configs(Some(Vec::new()))
    });
    CreateTopicsResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use metadata::config::{Layers, Overrides};
    use model::Uuid;

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn a_name_as_long_as_a_message_carries_is_refused_in_every_version() {
        let name = "x".repeat(32_767);
        let cause = controller::validate_topic_name(&name).expect_err("too long");
        encodes("CreateTopics", |_| {
            CreateTopicsResponse::default().with_topics(vec![refused(&name, &cause)])
        });
    }

    #[test]
    fn every_version_can_say_what_came_of_a_topic() {
        let created = TopicCreated {
            id: Uuid([1; 16]),
            partitions: 1,
            replication_factor: 1,
            configs: Layers::fixed(&Overrides::new()).describe_topic(|_| true),
        };
        let topic = |result| vec![CreatedTopic { name: "t".into(), result }];
        encodes("CreateTopics", |_| lower(topic(Ok(created.clone()))));
        encodes("CreateTopics", |_| lower(topic(Err(TopicError::InvalidPartitions))));
        let request = CreateTopicsRequest::default().with_topics(vec![CreatableTopic::default()]);
        encodes("CreateTopics", |_| error(&request, ClusterError::NotController));
    }
}
