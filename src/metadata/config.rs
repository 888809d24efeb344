//! The one typed registry of configuration keys, under Kafka's own names.
//!
//! A key is a row of [`TOPIC_KEYS`] or [`BROKER_KEYS`]: its name, type, default, bounds and one sentence. Everything
//! that speaks of configuration reads these rows: the files and arguments at start ([`BrokerConfig`]), what a topic
//! really gets ([`TopicConfig`]), what DescribeConfigs tells ([`Layers`]), and what AlterConfigs accepts
//! ([`validate_topic`], [`validate_broker`]).
//!
//! Invariants: a value that one of the validators accepted can be parsed again; a value in the metadata log that cannot
//! be parsed (another version wrote it) is passed over, as if it had not been set.
//!
//! Kafka: `ConfigDef`, `LogConfig`, `KafkaConfig`, `ServerTopicConfigSynonyms`, `DynamicBrokerConfig`, `ConfigHelper`
//! (KIP-21, KIP-226, KIP-339, KIP-569).

mod broker;
mod broker_keys;
mod describe;
mod key;
mod layers;
mod other_keys;
mod suggest;
mod table;
mod topic;
mod topic_keys;
mod validate;
mod validator;
mod value;

pub use broker::{Accepted, BrokerConfig, BrokerConfigError};
pub use broker_keys::BROKER_KEYS;
pub use describe::{ConfigSource, Described, Synonym};
pub(crate) use key::broker_synonyms;
pub use key::{ConfigKey, UpdateMode, broker_key, topic_key};
pub use layers::{Layers, Overrides};
pub(crate) use other_keys::is_other_key;
pub use suggest::suggest;
pub use topic::{Cleanup, Compression, TimestampType, TopicConfig};
pub(crate) use topic_keys::TOPIC_KEYS;
pub use validate::{validate_broker, validate_topic};
pub use validator::Validator;
pub use value::{ConfigError, ConfigType, ConfigValue};
