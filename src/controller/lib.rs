//! The controller: decides which metadata records a request leads to.
//!
//! A decision is a function of the image and the request: it changes nothing. Whoever runs the controller appends the
//! records, hands the image that they make over by [`Controller::advance`], and answers with the reply when they are
//! committed. Requests are decided one after the other, each on the image that the ones before it made.
//!
//! What no record says is when brokers were last heard of (`sessions`) and when the controller has to look after
//! something itself (`upkeep`): [`Controller::deadline`] tells when that is, and [`Controller::handle_tick`] decides.
//!
//! Invariants: the records of one decision fit the image that it was made on, so applying them never fails; what is
//! only validated has no records.
//!
//! Kafka: `QuorumController` and its managers (`ReplicationControlManager`, `ConfigurationControlManager`,
//! `ClusterControlManager`, `FeatureControlManager`, `ProducerIdControlManager`).

mod alter_partition;
mod auto_create;
mod balance;
mod brokers;
mod change;
mod config;
mod configs;
mod controllers;
mod deletions;
mod directories;
mod elections;
mod error;
mod features;
mod fencing;
mod heartbeats;
mod internal_topics;
mod mutant;
mod partition_changes;
mod partitions;
mod placement;
mod producer_ids;
mod reassignments;
mod sessions;
mod topic_name;
mod topics;
mod upkeep;

use metadata::Image;
use model::{Instant, Offset};
use protocol::records::metadata::MetadataRecord;

use mutant::Mutation;
use sessions::Sessions;
use upkeep::Schedule;

pub use alter_partition::{AlterPartition, AlteredPartition, NewIsr};
pub use auto_create::auto_topics;
pub use brokers::Registration;
pub use config::Config;
pub use configs::{AlterConfig, AlterOp, AlterResource, AlteredResource, check_alterations};
pub use deletions::{DeleteTopic, DeletedTopic};
pub use directories::{AssignReplicasToDirs, AssignedReplica};
pub use elections::{ElectLeaders, ElectedLeader, ElectionType};
pub use error::{
    AlterConfigError, AlterPartitionError, AssignReplicaError, BrokerError, ElectionError, ReassignmentError,
    TopicError,
};
pub use features::{SUPPORTED_FEATURES, SupportedFeature};
pub use heartbeats::{Heartbeat, HeartbeatReply};
#[cfg(feature = "mutants")]
pub use mutant::Mutant;
pub use partitions::{CreatePartitions, CreatedPartitions, NewPartitions};
pub use producer_ids::ProducerIdBlock;
pub use reassignments::{
    AlterPartitionReassignments, AlteredReassignment, OngoingReassignment, Reassignment,
};
pub use sessions::ConnectionId;
pub use topic_name::validate_topic_name;
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
    config: Config,
    sessions: Sessions,
    schedule: Schedule,
    mutation: Mutation,
}

impl Controller {
    /// A controller that begins now, at `image`.
    pub fn new(image: Image, config: Config, now: Instant) -> Self {
        let sessions = Sessions::begin(&image.brokers, config.session_timeout(), now);
        let schedule = Schedule::begin(&config, now);
        Self { image, config, sessions, schedule, mutation: Mutation::default() }
    }

    /// With a known fault, for a test that has to notice it.
    #[cfg(feature = "mutants")]
    #[must_use]
    pub fn with_mutant(mut self, mutant: Mutant) -> Self {
        self.mutation = Mutation::of(mutant);
        self
    }

    /// The metadata that decisions are made on.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// Goes on to a later image.
    pub fn advance(&mut self, image: Image) {
        assert!(image.end() >= self.image.end(), "the controller only goes forward");
        self.sessions.advance(&image.brokers, image.end());
        self.image = image;
    }

    /// The controller as it will be when these records are applied, to decide on what follows from them.
    fn with(&self, records: &[MetadataRecord]) -> Self {
        let end = Offset(self.image.end().0 + records.len() as i64);
        let (image, _) = self.image.apply(records, end).expect("a decision fits its image");
        Self { image, ..self.clone() }
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
mod kafka_changes;
#[cfg(test)]
mod testing;
