//! DescribeConfigs: the values that count, where they come from, and what they mean.
//!
//! Kafka: `ConfigHelper`; KIP-226 (synonyms), KIP-569 (types and documentation).

use controller::{TopicError, validate_topic_name};
use metadata::ResourceType;
use metadata::config::{Described, Synonym};
use model::{ErrorCode, NodeId, TopicName};
use protocol::messages::describe_configs_request::DescribeConfigsResource;
use protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};

use crate::text::{message, text};
use crate::{Node, Reply, Session};

/// Why a resource is not described.
#[derive(Debug, thiserror::Error)]
enum DescribeConfigsError {
    #[error(transparent)]
    TopicName(TopicError),
    /// Kafka says nothing more.
    #[error("")]
    UnknownTopic,
    #[error("Unexpected broker id, expected {expected}{but} received {received}")]
    OtherBroker { expected: NodeId, but: &'static str, received: String },
    #[error("Broker id must be an integer, but it is: {0}")]
    BrokerNotNumber(String),
    #[error("Group name must not be empty")]
    NoGroup,
    #[error("Unsupported resource type: {0}")]
    UnknownResourceType(i8),
}

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: DescribeConfigsRequest,
    _version: i16,
) -> Reply<DescribeConfigsResponse> {
    let asked = Asked { synonyms: request.include_synonyms, documentation: request.include_documentation };
    let results = request.resources.iter().map(|resource| match describe(node, resource) {
        Ok(described) => lower(resource, &described, asked),
        Err(cause) => error(resource, &cause),
    });
    Reply::Now(DescribeConfigsResponse::default().with_results(results.collect()))
}

/// What the client wants beside the values.
#[derive(Clone, Copy)]
struct Asked {
    synonyms: bool,
    documentation: bool,
}

fn describe(node: &Node, resource: &DescribeConfigsResource) -> Result<Vec<Described>, DescribeConfigsError> {
    let name = resource.resource_name.as_str();
    // No list is all keys, and so is an empty one.
    let keys = resource.configuration_keys.as_deref().filter(|keys| !keys.is_empty());
    let wanted = |key: &str| keys.is_none_or(|keys| keys.iter().any(|wanted| wanted.as_str() == key));
    match ResourceType::from_code(resource.resource_type) {
        Some(ResourceType::Topic) => describe_topic(node, name, wanted),
        Some(ResourceType::Broker) => describe_broker(node, name, wanted),
        Some(ResourceType::BrokerLogger) => check_broker(node, name, " but").map(|()| Vec::new()),
        Some(ResourceType::Group) if name.is_empty() => Err(DescribeConfigsError::NoGroup),
        Some(ResourceType::Group | ResourceType::ClientMetrics) => Ok(Vec::new()),
        None => Err(DescribeConfigsError::UnknownResourceType(resource.resource_type)),
    }
}

fn describe_topic(
    node: &Node,
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Described>, DescribeConfigsError> {
    validate_topic_name(name).map_err(DescribeConfigsError::TopicName)?;
    let image = node.image();
    if image.topics.by_name(name).is_none() {
        return Err(DescribeConfigsError::UnknownTopic);
    }
    let fixed = node.cluster.broker_config().values();
    let layers = image.configs.topic_layers(&TopicName::from(name), node.cluster.node_id(), fixed);
    Ok(layers.describe_topic(wanted))
}

fn describe_broker(
    node: &Node,
    name: &str,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<Described>, DescribeConfigsError> {
    let image = node.image();
    let layers = image.configs.broker_layers(node.cluster.node_id(), node.cluster.broker_config().values());
    if name.is_empty() {
        return Ok(layers.describe_cluster(wanted));
    }
    check_broker(node, name, " or empty string, but")?;
    Ok(layers.describe_broker(wanted))
}

/// A broker knows only its own values.
fn check_broker(node: &Node, name: &str, but: &'static str) -> Result<(), DescribeConfigsError> {
    let expected = node.cluster.node_id();
    match name.parse::<i32>() {
        Ok(id) if NodeId(id) == expected => Ok(()),
        Ok(_) => Err(DescribeConfigsError::OtherBroker { expected, but, received: name.to_owned() }),
        Err(_) => Err(DescribeConfigsError::BrokerNotNumber(name.to_owned())),
    }
}

fn lower(resource: &DescribeConfigsResource, described: &[Described], asked: Asked) -> DescribeConfigsResult {
    answer(resource)
        .with_error_message(Some(text("")))
        .with_configs(described.iter().map(|config| lower_config(config, asked)).collect())
}

fn lower_config(config: &Described, asked: Asked) -> DescribeConfigsResourceResult {
    let synonyms = if asked.synonyms { config.synonyms.as_slice() } else { &[] };
    DescribeConfigsResourceResult::default()
        .with_name(text(config.name))
        .with_value(config.value.as_deref().map(text))
        .with_read_only(config.read_only)
        .with_config_source(config.source.code())
        .with_is_sensitive(config.sensitive)
        .with_synonyms(synonyms.iter().map(lower_synonym).collect())
        .with_config_type(config.kind.code())
        .with_documentation(asked.documentation.then(|| text(config.doc)))
}

fn lower_synonym(synonym: &Synonym) -> DescribeConfigsSynonym {
    DescribeConfigsSynonym::default()
        .with_name(text(synonym.name))
        .with_value(synonym.value.as_deref().map(text))
        .with_source(synonym.source.code())
}

fn answer(resource: &DescribeConfigsResource) -> DescribeConfigsResult {
    DescribeConfigsResult::default()
        .with_resource_type(resource.resource_type)
        .with_resource_name(resource.resource_name.clone())
}

fn error(resource: &DescribeConfigsResource, cause: &DescribeConfigsError) -> DescribeConfigsResult {
    let code = match cause {
        DescribeConfigsError::TopicName(cause) => cause.into(),
        DescribeConfigsError::UnknownTopic => ErrorCode::UnknownTopicOrPartition,
        DescribeConfigsError::OtherBroker { .. }
        | DescribeConfigsError::BrokerNotNumber(_)
        | DescribeConfigsError::NoGroup
        | DescribeConfigsError::UnknownResourceType(_) => ErrorCode::InvalidRequest,
    };
    answer(resource).with_error_code(code.code()).with_error_message(Some(message(cause)))
}

#[cfg(test)]
mod tests {
    use metadata::config::{Layers, Overrides};

    use super::*;
    use crate::testing::encodes;

    #[test]
    fn every_version_can_say_all_values_and_every_refusal() {
        let described = Layers::fixed(&Overrides::new()).describe_broker(|_| true);
        let resource = DescribeConfigsResource::default();
        // Documentation can only be asked for from version 3 on.
        let asked = |version| Asked { synonyms: true, documentation: version >= 3 };
        encodes("DescribeConfigs", |version| {
            DescribeConfigsResponse::default().with_results(vec![lower(
                &resource,
                &described,
                asked(version),
            )])
        });
        let refused = DescribeConfigsError::NoGroup;
        encodes("DescribeConfigs", |_| {
            DescribeConfigsResponse::default().with_results(vec![error(&resource, &refused)])
        });
    }
}
