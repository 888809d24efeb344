//! Why the controller refuses, in Kafka's words, and the code for each.

use metadata::config::ConfigError;
use model::{BrokerEpoch, ClusterId, ErrorCode, NodeId, PartitionIndex};

/// Why a topic is not created, changed or deleted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum TopicError {
    #[error("Topic name is invalid: {0}")]
    InvalidName(String),
    #[error("Topic '{0}' already exists.")]
    Exists(String),
    #[error("Topic '{name}' collides with existing topic: {existing}")]
    Collides { name: String, existing: String },
    #[error("Duplicate topic name.")]
    DuplicateName,
    #[error("Duplicate topic id.")]
    DuplicateId,
    #[error("Creation of internal topic {0} is prohibited.")]
    Internal(String),
    #[error("Number of partitions was set to an invalid non-positive value.")]
    InvalidPartitions,
    #[error("Replication factor must be larger than 0, or -1 to use the default value.")]
    InvalidReplicationFactor,
    #[error("Unable to replicate the partition {factor} time(s): {reason}")]
    Unreplicable { factor: i16, reason: String },
    #[error("Excessively large number of partitions per request.")]
    TooManyPartitions,
    #[error("Excessively large number of additional partitions per request.")]
    TooManyAdditionalPartitions,
    #[error("A manual partition assignment was specified, but numPartitions was not set to -1.")]
    AssignmentAndPartitions,
    #[error("A manual partition assignment was specified, but replication factor was not set to -1.")]
    AssignmentAndReplicationFactor,
    #[error("{0}")]
    InvalidAssignment(String),
    #[error("Null value not supported for topic configs: {0}")]
    NullConfig(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error("This server does not host this topic-partition.")]
    UnknownName,
    #[error("This server does not host this topic ID.")]
    UnknownId,
    #[error("Neither topic name nor id were specified.")]
    NeitherNameNorId,
    #[error("You may not specify both topic name and topic id.")]
    BothNameAndId,
    #[error("The provided topic name maps to an ID that was already supplied.")]
    NameOfGivenId,
    #[error("Topic deletion is disabled.")]
    DeletionDisabled,
    #[error("Topic already has {0} partition(s).")]
    HasPartitions(usize),
    #[error("The topic {name} currently has {has} partition(s); {wanted} would not be an increase.")]
    NoIncrease { name: String, has: usize, wanted: i32 },
    #[error(
        "Attempted to add {additional} additional partition(s), but only {given} assignment(s) were specified."
    )]
    AssignmentCount { additional: usize, given: usize },
}

/// Why values of a resource are not changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum AlterConfigError {
    #[error("Each resource must appear at most once.")]
    DuplicateResource,
    #[error("Unknown resource type {0}")]
    UnknownResourceType(i8),
    #[error("Error due to duplicate config keys")]
    DuplicateKeys,
    #[error("Null value not supported for : {0}")]
    NullValue(String),
    #[error("Unknown operation {0}: the operations are 0 (SET), 1 (DELETE), 2 (APPEND) and 3 (SUBTRACT).")]
    UnknownOperation(i8),
    #[error("Default topic resources are not allowed.")]
    DefaultTopic,
    #[error("Topic name is invalid: {0}")]
    InvalidTopicName(String),
    #[error("The topic '{0}' does not exist.")]
    UnknownTopic(String),
    #[error("Node id must be an integer, but it is: {0}")]
    BrokerNotNumber(String),
    #[error("Unexpected broker id, expected {expected}, but received {received}")]
    OtherBroker { expected: NodeId, received: String },
    #[error("Can't {op} to key {key} because its type is not LIST.")]
    NotList { op: &'static str, key: String },
    #[error(
        "The configuration value cannot be added because it exceeds the maximum value size of 32767 bytes."
    )]
    TooLong,
    #[error("Broker-level min.insync.replicas cannot be altered while ELR is enabled.")]
    BrokerMinInsyncReplicas,
    #[error("Cluster-level min.insync.replicas cannot be removed while ELR is enabled.")]
    ClusterMinInsyncReplicas,
    #[error("Logger {0} does not exist!")]
    UnknownLogger(String),
    #[error("Unknown group config name: {0}")]
    UnknownGroupKey(String),
    #[error("Client metrics are not collected by this cluster: it has no receiver for them.")]
    NoClientMetrics,
    #[error(transparent)]
    Topic(ConfigError),
    #[error(transparent)]
    Broker(ConfigError),
}

/// Why a broker cannot have what it asks for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum BrokerError {
    #[error("Expected cluster ID {expected}, but got cluster ID {got}")]
    OtherCluster { expected: ClusterId, got: ClusterId },
    #[error(
        "Another broker is registered with that broker id. If the broker was recently restarted this should self-resolve \
         once the heartbeat manager expires the broker's session."
    )]
    Duplicate,
    #[error("Broker ID {0} is not currently registered")]
    NotRegistered(NodeId),
    #[error("No broker registration found for broker id {0}")]
    NoRegistration(NodeId),
    #[error("Expected broker epoch {expected}, but got broker epoch {got}")]
    StaleEpoch { expected: BrokerEpoch, got: BrokerEpoch },
    #[error(
        "Unable to register because the broker does not support finalized version {level} of {feature}. \
         The broker wants a version between {min} and {max}, inclusive."
    )]
    UnsupportedFeature { feature: String, level: i16, min: i16, max: i16 },
    #[error("No directories specified in request")]
    NoDirectories,
    #[error("Reserved directory ID in request")]
    ReservedDirectory,
    #[error("Duplicate directory ID in request")]
    DuplicateDirectory,
    #[error("Broker {broker} is already registered with directory {directory}")]
    ForeignDirectory { broker: NodeId, directory: model::DirectoryId },
    #[error("Exhausted all producerIds as the next block's end producerId has exceeded the int64 type limit")]
    NoMoreProducerIds,
}

/// Why a leader does not get the ISR that it asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum AlterPartitionError {
    #[error("the topic does not exist")]
    UnknownTopic,
    #[error("the partition does not exist")]
    UnknownPartition,
    #[error("the leader knows later metadata than this controller; ask the next one")]
    AheadOfController,
    #[error("the partition has a later leader epoch")]
    OldLeaderEpoch,
    #[error("the sender does not lead the partition")]
    NotLeader,
    #[error("the partition has a later partition epoch")]
    OldPartitionEpoch,
    #[error("the ISR names a broker twice or one that is no replica, or not the leader")]
    InvalidIsr,
    #[error("a leader that recovers is alone in sync, and one that has recovered does not begin again")]
    InvalidRecovery,
    #[error("broker {0} is fenced, stopping, not registered or in another run, and so cannot be in sync")]
    Ineligible(NodeId),
    #[error("the new ISR ended a reassignment, and another replica leads now")]
    NewLeaderElected,
}

/// Why the folder of a replica is not noted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum AssignReplicaError {
    #[error("the topic does not exist")]
    UnknownTopic,
    #[error("the partition does not exist")]
    UnknownPartition,
    #[error("the broker has no replica of the partition")]
    NotReplica,
}

/// Why nobody is elected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ElectionError {
    #[error("No such topic as {0}")]
    UnknownTopic(String),
    #[error("No such partition as {topic}-{partition}")]
    UnknownPartition { topic: String, partition: PartitionIndex },
    #[error("Leader election not needed for topic partition.")]
    NotNeeded,
    #[error("The preferred leader was not available.")]
    PreferredLeaderNotAvailable,
    #[error("Eligible topic partition leaders are not available.")]
    EligibleLeadersNotAvailable,
}

/// Why a reassignment is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "the texts say it")]
pub enum ReassignmentError {
    #[error("Unable to find a topic named {0}.")]
    UnknownTopic(String),
    #[error("Unable to find partition {topic}:{partition}.")]
    UnknownPartition { topic: String, partition: PartitionIndex },
    #[error("No partition reassignment is in progress.")]
    NotInProgress,
    #[error(
        "Unable to revert partition assignment for {topic}:{partition} because it would require an unclean leader \
         election."
    )]
    UncleanRevert { topic: String, partition: PartitionIndex },
    #[error("The replication factor is changed from {from} to {to}")]
    OtherFactor { from: usize, to: usize },
    #[error("The partition is named twice.")]
    Twice,
    #[error(transparent)]
    Assignment(#[from] TopicError),
}

impl TopicError {
    /// A manual assignment that cannot be carried out.
    pub(crate) fn assignment(reason: impl Into<String>) -> Self {
        Self::InvalidAssignment(reason.into())
    }

    pub(crate) fn fenced_assignment(partition: PartitionIndex) -> Self {
        Self::assignment(format!(
            "All brokers specified in the manual partition assignment for partition {partition} \
             are fenced or in controlled shutdown."
        ))
    }
}

impl From<&TopicError> for ErrorCode {
    fn from(error: &TopicError) -> Self {
        match error {
            TopicError::InvalidName(_) | TopicError::Collides { .. } => Self::InvalidTopicException,
            TopicError::Exists(_) => Self::TopicAlreadyExists,
            TopicError::DuplicateName
            | TopicError::DuplicateId
            | TopicError::Internal(_)
            | TopicError::AssignmentAndPartitions
            | TopicError::AssignmentAndReplicationFactor
            | TopicError::NeitherNameNorId
            | TopicError::BothNameAndId
            | TopicError::NameOfGivenId => Self::InvalidRequest,
            TopicError::InvalidPartitions | TopicError::HasPartitions(_) | TopicError::NoIncrease { .. } => {
                Self::InvalidPartitions
            }
            TopicError::InvalidReplicationFactor | TopicError::Unreplicable { .. } => {
                Self::InvalidReplicationFactor
            }
            TopicError::TooManyPartitions | TopicError::TooManyAdditionalPartitions => Self::PolicyViolation,
            TopicError::InvalidAssignment(_) | TopicError::AssignmentCount { .. } => {
                Self::InvalidReplicaAssignment
            }
            TopicError::NullConfig(_) | TopicError::Config(_) => Self::InvalidConfig,
            TopicError::UnknownName => Self::UnknownTopicOrPartition,
            TopicError::UnknownId => Self::UnknownTopicId,
            TopicError::DeletionDisabled => Self::TopicDeletionDisabled,
        }
    }
}

impl From<&AlterConfigError> for ErrorCode {
    fn from(error: &AlterConfigError) -> Self {
        match error {
            AlterConfigError::DuplicateResource
            | AlterConfigError::UnknownResourceType(_)
            | AlterConfigError::DuplicateKeys
            | AlterConfigError::NullValue(_)
            | AlterConfigError::UnknownOperation(_)
            | AlterConfigError::DefaultTopic
            | AlterConfigError::BrokerNotNumber(_)
            | AlterConfigError::OtherBroker { .. }
            | AlterConfigError::NoClientMetrics
            // Kafka's brokers look at their own values before the controller does, and answer so.
            | AlterConfigError::Broker(_) => Self::InvalidRequest,
            AlterConfigError::InvalidTopicName(_) => Self::InvalidTopicException,
            AlterConfigError::UnknownTopic(_) => Self::UnknownTopicOrPartition,
            AlterConfigError::NotList { .. }
            | AlterConfigError::TooLong
            | AlterConfigError::BrokerMinInsyncReplicas
            | AlterConfigError::ClusterMinInsyncReplicas
            | AlterConfigError::UnknownLogger(_)
            | AlterConfigError::UnknownGroupKey(_)
            | AlterConfigError::Topic(_) => Self::InvalidConfig,
        }
    }
}

impl From<AlterPartitionError> for ErrorCode {
    fn from(error: AlterPartitionError) -> Self {
        match error {
            AlterPartitionError::UnknownTopic => Self::UnknownTopicId,
            AlterPartitionError::UnknownPartition => Self::UnknownTopicOrPartition,
            AlterPartitionError::AheadOfController => Self::NotController,
            AlterPartitionError::OldLeaderEpoch => Self::FencedLeaderEpoch,
            AlterPartitionError::NotLeader
            | AlterPartitionError::InvalidIsr
            | AlterPartitionError::InvalidRecovery => Self::InvalidRequest,
            AlterPartitionError::OldPartitionEpoch => Self::InvalidUpdateVersion,
            AlterPartitionError::Ineligible(_) => Self::IneligibleReplica,
            AlterPartitionError::NewLeaderElected => Self::NewLeaderElected,
        }
    }
}

impl From<&ReassignmentError> for ErrorCode {
    fn from(error: &ReassignmentError) -> Self {
        match error {
            ReassignmentError::UnknownTopic(_) | ReassignmentError::UnknownPartition { .. } => {
                Self::UnknownTopicOrPartition
            }
            ReassignmentError::NotInProgress => Self::NoReassignmentInProgress,
            ReassignmentError::UncleanRevert { .. } => Self::InvalidReplicaAssignment,
            ReassignmentError::OtherFactor { .. } => Self::InvalidReplicationFactor,
            ReassignmentError::Twice => Self::InvalidRequest,
            ReassignmentError::Assignment(error) => error.into(),
        }
    }
}

impl From<AssignReplicaError> for ErrorCode {
    fn from(error: AssignReplicaError) -> Self {
        match error {
            AssignReplicaError::UnknownTopic => Self::UnknownTopicId,
            AssignReplicaError::UnknownPartition => Self::UnknownTopicOrPartition,
            AssignReplicaError::NotReplica => Self::NotLeaderOrFollower,
        }
    }
}

impl From<&ElectionError> for ErrorCode {
    fn from(error: &ElectionError) -> Self {
        match error {
            ElectionError::UnknownTopic(_) | ElectionError::UnknownPartition { .. } => {
                Self::UnknownTopicOrPartition
            }
            ElectionError::NotNeeded => Self::ElectionNotNeeded,
            ElectionError::PreferredLeaderNotAvailable => Self::PreferredLeaderNotAvailable,
            ElectionError::EligibleLeadersNotAvailable => Self::EligibleLeadersNotAvailable,
        }
    }
}

impl From<&BrokerError> for ErrorCode {
    fn from(error: &BrokerError) -> Self {
        match error {
            BrokerError::OtherCluster { .. } => Self::InconsistentClusterId,
            BrokerError::Duplicate => Self::DuplicateBrokerRegistration,
            BrokerError::NotRegistered(_) => Self::BrokerIdNotRegistered,
            BrokerError::NoRegistration(_) | BrokerError::StaleEpoch { .. } => Self::StaleBrokerEpoch,
            BrokerError::UnsupportedFeature { .. } => Self::UnsupportedVersion,
            BrokerError::NoDirectories
            | BrokerError::ReservedDirectory
            | BrokerError::DuplicateDirectory
            | BrokerError::ForeignDirectory { .. } => Self::InvalidRegistration,
            BrokerError::NoMoreProducerIds => Self::UnknownServerError,
        }
    }
}
