//! Metadata: brokers, topics and leaders, as clients of one listener see them. Topics that are missing are created first,
//! if both the client and `auto.create.topics.enable` allow it.
//!
//! A topic that was just created is answered at once with its leaders, where Kafka answers UNKNOWN_TOPIC_OR_PARTITION
//! and lets the client ask again.
//!
//! Kafka: `KafkaApis.handleTopicMetadataRequest`, `KRaftMetadataCache`; KIP-516 (topic ids), KIP-430, KIP-700.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use controller::validate_topic_name;
use metadata::{Image, Topic};
use model::{ErrorCode, TopicId, TopicName};
use protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use protocol::messages::{self, BrokerId, MetadataRequest, MetadataResponse};
use protocol::{FromWire, ToWire};

use crate::authorized::{self, if_asked};
use crate::partition_view::PartitionView;
use crate::text::{broker_ids, text};
use crate::{Node, Reply, Session, auto_creation};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: MetadataRequest,
    version: i16,
) -> Reply<MetadataResponse> {
    let Ok(wanted) = lift(&request, version) else {
        return Reply::Now(error(request, ErrorCode::InvalidRequest));
    };
    let (image, refused) = match &wanted {
        Wanted::Names(names) if request.allow_auto_topic_creation => create_missing(node, names).await,
        _ => (node.image(), BTreeMap::new()),
    };
    let asks_operations = request.include_topic_authorized_operations;
    let view = View { image: &image, listener: &session.listener, version, asks_operations };
    let topics = view.topics(&wanted, &refused);
    Reply::Now(lower(node, &image, session, &request, topics))
}

/// Which topics are asked for.
enum Wanted {
    All,
    Names(BTreeSet<TopicName>),
    Ids(BTreeSet<TopicId>),
}

/// Version 0 asks for all topics by an empty list, later ones by none. If one topic has an id, only ids count.
fn lift(request: &MetadataRequest, version: i16) -> Result<Wanted, ErrorCode> {
    let Some(topics) = &request.topics else { return Ok(Wanted::All) };
    if topics.is_empty() && version == 0 {
        return Ok(Wanted::All);
    }
    if version < 12 && topics.iter().any(|topic| topic.name.is_none() || !topic.topic_id.is_nil()) {
        return Err(ErrorCode::InvalidRequest);
    }
    let ids: BTreeSet<TopicId> =
        topics.iter().map(|topic| TopicId::from_wire(&topic.topic_id)).filter(|id| !id.is_zero()).collect();
    if !ids.is_empty() {
        return Ok(Wanted::Ids(ids));
    }
    if topics.iter().any(|topic| topic.name.is_none()) {
        return Err(ErrorCode::InvalidRequest);
    }
    Ok(Wanted::Names(
        topics.iter().filter_map(|topic| topic.name.as_ref()).map(TopicName::from_wire).collect(),
    ))
}

/// The image once what is missing was created, and why some of it was not.
async fn create_missing(
    node: &Node,
    names: &BTreeSet<TopicName>,
) -> (Arc<Image>, BTreeMap<TopicName, ErrorCode>) {
    let image = node.image();
    let missing: Vec<TopicName> = names
        .iter()
        .filter(|name| image.topics.by_name(name.as_str()).is_none())
        .filter(|name| validate_topic_name(name.as_str()).is_ok())
        .cloned()
        .collect();
    if missing.is_empty() || !node.cluster.broker_config().layers().boolean("auto.create.topics.enable") {
        return (image, BTreeMap::new());
    }
    let mut refused = auto_creation::create_missing(node, &missing).await;
    // A topic that cannot be created for now is unknown; Kafka tells nothing else of it here.
    for code in refused.values_mut().filter(|code| **code != ErrorCode::InvalidReplicationFactor) {
        *code = ErrorCode::UnknownTopicOrPartition;
    }
    (node.image(), refused)
}

/// What one client sees.
struct View<'a> {
    image: &'a Image,
    listener: &'a str,
    version: i16,
    asks_operations: bool,
}

impl View<'_> {
    fn topics(
        &self,
        wanted: &Wanted,
        refused: &BTreeMap<TopicName, ErrorCode>,
    ) -> Vec<MetadataResponseTopic> {
        match wanted {
            Wanted::All => self.image.topics.iter().map(|topic| self.topic(topic)).collect(),
            Wanted::Names(names) => names.iter().map(|name| self.named(name, refused)).collect(),
            Wanted::Ids(ids) => ids.iter().map(|id| self.identified(*id)).collect(),
        }
    }

    fn named(&self, name: &TopicName, refused: &BTreeMap<TopicName, ErrorCode>) -> MetadataResponseTopic {
        if let Some(topic) = self.image.topics.by_name(name.as_str()) {
            return self.topic(topic);
        }
        let error = match refused.get(name) {
            _ if validate_topic_name(name.as_str()).is_err() => ErrorCode::InvalidTopicException,
            Some(error) => *error,
            None => ErrorCode::UnknownTopicOrPartition,
        };
        MetadataResponseTopic::default()
            .with_name(Some(name.to_wire()))
            .with_is_internal(name.is_internal())
            .with_error_code(error.code())
    }

    fn identified(&self, id: TopicId) -> MetadataResponseTopic {
        match self.image.topics.by_id(id) {
            Some(topic) => self.topic(topic),
            None => MetadataResponseTopic::default()
                .with_name(None)
                .with_topic_id(id.to_wire())
                .with_error_code(ErrorCode::UnknownTopicId.code()),
        }
    }

    fn topic(&self, topic: &Topic) -> MetadataResponseTopic {
        MetadataResponseTopic::default()
            .with_name(Some(topic.name.to_wire()))
            .with_topic_id(topic.id.to_wire())
            .with_is_internal(topic.name.is_internal())
            .with_partitions(
                topic.partitions.iter().map(|(index, partition)| self.partition(*index, partition)).collect(),
            )
            .with_topic_authorized_operations(if_asked(self.asks_operations, authorized::TOPIC))
    }

    fn partition(&self, index: i32, partition: &metadata::Partition) -> MetadataResponsePartition {
        let view = PartitionView::of(self.image, partition, self.listener, self.version >= 6);
        MetadataResponsePartition::default()
            .with_error_code(view.error.code())
            .with_partition_index(index)
            .with_leader_id(view.leader.to_wire())
            .with_leader_epoch(partition.leader_epoch.0)
            .with_replica_nodes(broker_ids(&partition.replicas))
            .with_isr_nodes(broker_ids(&partition.isr))
            .with_offline_replicas(broker_ids(&view.offline))
    }
}

fn lower(
    node: &Node,
    image: &Image,
    session: &Session,
    request: &MetadataRequest,
    topics: Vec<MetadataResponseTopic>,
) -> MetadataResponse {
    MetadataResponse::default()
        .with_brokers(brokers(image, &session.listener))
        .with_cluster_id(Some(node.cluster.cluster_id().to_wire()))
        .with_controller_id(node.any_broker(image, &session.listener).to_wire())
        .with_topics(topics)
        .with_cluster_authorized_operations(if_asked(
            request.include_cluster_authorized_operations,
            authorized::CLUSTER,
        ))
}

/// The brokers that clients of this listener can reach.
fn brokers(image: &Image, listener: &str) -> Vec<MetadataResponseBroker> {
    let reachable = image.brokers.unfenced().filter_map(|broker| Some((broker, broker.endpoint(listener)?)));
    reachable
        .map(|(broker, endpoint)| {
            MetadataResponseBroker::default()
                .with_node_id(broker.id.to_wire())
                .with_host(text(&endpoint.host))
                .with_port(i32::from(endpoint.port))
                .with_rack(broker.rack.as_deref().map(text))
        })
        .collect()
}

/// The answer to a request that makes no sense: each topic has the error, and there are no brokers.
fn error(request: MetadataRequest, code: ErrorCode) -> MetadataResponse {
    let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
        MetadataResponseTopic::default()
            .with_name(Some(topic.name.unwrap_or_else(|| messages::TopicName::from(text("")))))
            .with_topic_id(topic.topic_id)
            .with_error_code(code.code())
    });
    MetadataResponse::default().with_controller_id(BrokerId(-1)).with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use model::Uuid;
    use protocol::messages::metadata_request::MetadataRequestTopic;

    use super::*;
    use crate::testing::encodes;

    fn ask(topics: Option<Vec<MetadataRequestTopic>>) -> MetadataRequest {
        MetadataRequest::default().with_topics(topics)
    }

    fn named(name: &str) -> MetadataRequestTopic {
        MetadataRequestTopic::default().with_name(Some(TopicName::from(name).to_wire()))
    }

    fn identified(id: Uuid) -> MetadataRequestTopic {
        MetadataRequestTopic::default().with_name(None).with_topic_id(id.to_wire())
    }

    #[test]
    fn an_empty_list_is_all_topics_in_version_zero_and_none_later() {
        assert!(matches!(lift(&ask(Some(Vec::new())), 0), Ok(Wanted::All)));
        assert!(matches!(lift(&ask(Some(Vec::new())), 1), Ok(Wanted::Names(names)) if names.is_empty()));
        assert!(matches!(lift(&ask(None), 1), Ok(Wanted::All)));
    }

    #[test]
    fn ids_count_alone_and_only_from_version_twelve_on() {
        let both = ask(Some(vec![named("t"), identified(Uuid([1; 16]))]));
        assert!(matches!(lift(&both, 12), Ok(Wanted::Ids(ids)) if ids.len() == 1));
        assert!(lift(&both, 11).is_err());
        assert!(lift(&ask(Some(vec![identified(Uuid::ZERO)])), 12).is_err());
    }

    #[test]
    fn every_version_can_say_topics_and_refusals() {
        let topic = metadata::Topic { id: Uuid([1; 16]), name: "t".into(), partitions: BTreeMap::new() };
        let image = Image::default();
        encodes("Metadata", |version| {
            let view = View { image: &image, listener: "L", version, asks_operations: false };
            let unknown = view.named(&"nosuch".into(), &BTreeMap::new());
            let mut topics = vec![view.topic(&topic), unknown];
            if version >= 12 {
                topics.push(view.identified(Uuid([2; 16])));
            }
            MetadataResponse::default().with_topics(topics)
        });
        encodes("Metadata", |_| error(ask(Some(vec![named("t")])), ErrorCode::InvalidRequest));
    }
}
