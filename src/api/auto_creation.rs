//! Topics that a request needs and that are not there: the active controller creates them, as this broker's configuration
//! says.
//!
//! Kafka: `DefaultAutoTopicCreationManager`.

use std::collections::BTreeMap;

use controller::NewTopic;
use model::{ErrorCode, TopicName};
use protocol::messages::CreateTopicsRequest;
use protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use protocol::{FromWire, ToWire};
use tracing::debug;

use crate::forwarding::{ASIDE_WITHIN, ask};
use crate::text::text;
use crate::{Node, create_topics};

/// Creates topics; why some were not. Another request may have been first, and then they are there.
pub(crate) async fn create_missing(node: &Node, names: &[TopicName]) -> BTreeMap<TopicName, ErrorCode> {
    let until = node.env.clock.now().plus(ASIDE_WITHIN);
    let request = lower(controller::auto_topics(&node.image(), node.cluster.broker_config(), names));
    let response = match ask(node, until, &request).await {
        Ok(Some(response)) => response,
        Ok(None) => create_topics::create(node, until, &request).await,
        Err(cause) => create_topics::error(&request, cause),
    };
    let mut refused = BTreeMap::new();
    for topic in response.topics.iter().filter(|topic| topic.error_code != 0) {
        let (name, message) = (TopicName::from_wire(&topic.name), topic.error_message.as_deref());
        debug!(topic = %name, error_code = topic.error_code, message, "a topic was not created");
        refused.insert(name, ErrorCode::told(topic.error_code));
    }
    refused
}

fn lower(topics: Vec<NewTopic>) -> CreateTopicsRequest {
    let topics = topics.into_iter().map(|topic| {
        let configs = topic.configs.iter().map(|(name, value)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(value.as_deref().map(text))
        });
        CreatableTopic::default()
            .with_name(TopicName::from(topic.name).to_wire())
            .with_num_partitions(topic.partitions)
            .with_replication_factor(topic.replication_factor)
            .with_configs(configs.collect())
    });
    CreateTopicsRequest::default().with_topics(topics.collect())
}
