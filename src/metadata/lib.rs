//! What the whole cluster agrees on: topics, brokers, configs, features, as one immutable image.
//!
//! The metadata log is the truth; an [`Image`] is what its records up to some offset add up to, and a [`Delta`] is what
//! the last records of it changed. Everything here is pure: the controller decides records, the log keeps them, the
//! image applies them, and nobody changes an image otherwise.
//!
//! [`config`] is the one registry of configuration keys: parsing, DescribeConfigs, AlterConfigs and the reference of
//! all keys come from its tables.
//!
//! Kafka: `MetadataImage`, `MetadataDelta`, `LogConfig`, `KafkaConfig`, `DynamicBrokerConfig`.

pub mod config;

#[cfg(test)]
mod any_log;
mod brokers;
mod configs;
mod delta;
mod features;
mod image;
mod partition;
mod producer_ids;
mod security;
mod topics;

pub use brokers::{Broker, Brokers, Endpoint, FeatureRange, SecurityProtocol};
pub use configs::{ConfigResource, Configs, ResourceType};
pub use delta::Delta;
pub use features::{ELR_VERSION, Features, METADATA_VERSION};
pub use image::{ApplyError, Image};
pub use partition::{LeaderRecovery, Partition};
pub use producer_ids::ProducerIds;
pub use security::Security;
pub use topics::{Topic, Topics};
