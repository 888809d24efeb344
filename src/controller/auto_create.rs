//! Topics that are created because somebody asks for them: the internal ones as their coordinators need them, all others
//! as the broker's defaults say.
//!
//! An internal topic gets no more replicas than there are brokers, so that a single node works without being told.
//!
//! Kafka: `DefaultAutoTopicCreationManager`, `GroupCoordinator.groupMetadataTopicConfigs`,
//! `TransactionStateManager.transactionTopicConfigs`.

use metadata::Image;
use metadata::config::BrokerConfig;
use model::TopicName;

use crate::NewTopic;
use model::internal_topics::{CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE};

/// What topics that are missing shall be, as a broker with this configuration asks for them.
pub fn auto_topics(image: &Image, broker: &BrokerConfig, names: &[TopicName]) -> Vec<NewTopic> {
    let asking = Asking { image, broker };
    names.iter().map(|name| asking.topic(name.as_str())).collect()
}

struct Asking<'a> {
    image: &'a Image,
    broker: &'a BrokerConfig,
}

impl Asking<'_> {
    fn topic(&self, name: &str) -> NewTopic {
        match name {
            CONSUMER_OFFSETS => self.internal(
                name,
                "offsets.topic",
                &[("cleanup.policy", "compact"), ("compression.type", "producer")],
            ),
            TRANSACTION_STATE => self.internal(
                name,
                "transaction.state.log",
                &[
                    ("cleanup.policy", "compact"),
                    ("compression.type", "uncompressed"),
                    ("unclean.leader.election.enable", "false"),
                ],
            ),
            SHARE_GROUP_STATE => self.internal(
                name,
                "share.coordinator.state.topic",
                &[("cleanup.policy", "delete"), ("compression.type", "producer"), ("retention.ms", "-1")],
            ),
            name => NewTopic {
                name: name.to_owned(),
                partitions: -1,
                replication_factor: -1,
                ..NewTopic::default()
            },
        }
    }

    /// A topic of which the broker's keys that begin with `prefix` speak.
    fn internal(&self, name: &str, prefix: &str, values: &[(&str, &str)]) -> NewTopic {
        let layers = self.broker.layers();
        let number = |key: &str| layers.integer(&format!("{prefix}.{key}"));
        let asked = number("replication.factor");
        let replicas = asked.min(self.brokers_active());
        let mut configs: Vec<(String, Option<String>)> =
            values.iter().map(|(key, value)| ((*key).to_owned(), Some((*value).to_owned()))).collect();
        configs.push(("segment.bytes".into(), Some(number("segment.bytes").to_string())));
        // With fewer replicas than asked for the minimum follows when there are more.
        if name != CONSUMER_OFFSETS && replicas == asked {
            let isr_min = number("min.isr").min(replicas);
            configs.push(("min.insync.replicas".into(), Some(isr_min.to_string())));
        }
        NewTopic {
            name: name.to_owned(),
            partitions: number("num.partitions") as i32,
            replication_factor: replicas as i16,
            assignments: Vec::new(),
            configs,
        }
    }

    /// How many brokers may lead; at least one, so that without any the answer is Kafka's refusal.
    fn brokers_active(&self) -> i64 {
        self.image.brokers.iter().filter(|broker| broker.is_active()).count().max(1) as i64
    }
}

#[cfg(test)]
mod tests {
    use metadata::ConfigResource;

    use super::*;
    use crate::CreateTopics;
    use crate::testing::{commit, controller, counter};

    #[test]
    fn internal_topics_get_what_their_keys_say_and_no_more_replicas_than_brokers() {
        let mut controller = controller(&[1], &[]);
        let names = [CONSUMER_OFFSETS, TRANSACTION_STATE, SHARE_GROUP_STATE, "plain"].map(TopicName::from);
        let topics = auto_topics(controller.image(), &BrokerConfig::default(), &names);
        let command = CreateTopics { topics, validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        let reply = commit(&mut controller, decision);
        assert!(reply.iter().all(|topic| topic.result.is_ok()), "{reply:?}");

        let partitions =
            |name: &str| controller.image().topics.by_name(name).map(|topic| topic.partitions.len());
        assert_eq!(partitions(CONSUMER_OFFSETS), Some(50));
        assert_eq!(partitions("plain"), Some(1));
        let configs = controller.image().configs.of(&ConfigResource::topic(CONSUMER_OFFSETS));
        assert_eq!(configs["cleanup.policy"], "compact");
        assert_eq!(configs["segment.bytes"], "104857600");
        let configs = controller.image().configs.of(&ConfigResource::topic(TRANSACTION_STATE));
        assert!(!configs.contains_key("min.insync.replicas"), "it grows with the replicas");
    }
}
