//! The controller: decides which metadata records a request leads to.
//!
//! A decision is a function of the image and the request: it changes nothing. Whoever runs the controller appends the
//! records, applies them to the image when they are committed, hands the new image over by [`Controller::advance`], and
//! answers with the reply. Requests are decided one after the other, each on the image that the ones before it made.
//!
//! Invariants: the records of one decision fit the image that it was made on, so applying them never fails; what is
//! only validated has no records.
//!
//! Kafka: `QuorumController` and its managers (`ReplicationControlManager`, `ConfigurationControlManager`,
//! `ClusterControlManager`, `FeatureControlManager`, `ProducerIdControlManager`).

mod auto_create;
mod brokers;
mod change;
mod configs;
mod deletions;
mod error;
mod features;
mod partitions;
mod placement;
mod producer_ids;
mod topic_name;
mod topics;

use metadata::Image;
use metadata::config::BrokerConfig;
use model::NodeId;
use protocol::records::metadata::MetadataRecord;

pub use brokers::Registration;
pub use configs::{AlterConfig, AlterOp, AlterResource, AlteredResource};
pub use deletions::{DeleteTopic, DeletedTopic};
pub use error::{AlterConfigError, BrokerError, TopicError};
pub use features::{SUPPORTED_FEATURES, SupportedFeature};
pub use partitions::{CreatePartitions, CreatedPartitions, NewPartitions};
pub use producer_ids::ProducerIdBlock;
pub use topic_name::{is_internal_topic, validate_topic_name};
pub use topics::{Assignment, CreateTopics, CreatedTopic, NewTopic, TopicCreated};

/// What came of a request: records to append, and what to answer once they are committed.
#[derive(Clone, Debug, PartialEq)]
pub struct Decision<R> {
    /// To be appended as one batch; empty where nothing changes.
    pub records: Vec<MetadataRecord>,
    /// The answer.
    pub reply: R,
}

/// A source of random numbers, for topic ids and for where placement begins.
pub type Random<'a> = &'a mut dyn FnMut() -> u64;

/// The controller of a cluster, on the node that leads the metadata quorum.
#[derive(Clone, Debug)]
pub struct Controller {
    image: Image,
    node: NodeId,
    config: BrokerConfig,
}

impl Controller {
    /// A controller on `node`, which was started with `config`, at `image`.
    pub fn new(image: Image, node: NodeId, config: BrokerConfig) -> Self {
        Self { image, node, config }
    }

    /// The metadata that decisions are made on.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Goes on to a later image.
    pub fn advance(&mut self, image: Image) {
        assert!(image.end() >= self.image.end(), "the controller only goes forward");
        self.image = image;
    }
}

impl<R> Decision<R> {
    fn nothing(reply: R) -> Self {
        Self { records: Vec::new(), reply }
    }
}

#[cfg(test)]
mod invariants;
#[cfg(test)]
mod testing;
