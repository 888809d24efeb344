//! Creating topics.
//!
//! Kafka: `ReplicationControlManager.createTopics`, `ControllerApis`; KIP-516 (topic ids), KIP-525 (what a created topic
//! is told back).

use std::collections::{BTreeMap, BTreeSet};

use metadata::config::{Described, Overrides, validate_topic};
use metadata::{ConfigResource, LeaderRecovery, Partition};
use model::{LeaderEpoch, NodeId, PartitionEpoch, PartitionIndex, TopicId, Uuid};
use protocol::records::metadata::{ConfigRecord, MetadataRecord, TopicRecord};

use crate::topic_name::{CLUSTER_METADATA, collide};
use crate::{Controller, Decision, Random, TopicError, placement, validate_topic_name};

/// Kafka's bound of new partitions a request.
pub(crate) const PARTITIONS_MAX: usize = 10_000;

/// Topics to create.
#[derive(Clone, Debug, Default)]
pub struct CreateTopics {
    /// One after the other; each is created or refused by itself.
    pub topics: Vec<NewTopic>,
    /// Only to say what would come of it.
    pub validate_only: bool,
}

/// A topic to create.
#[derive(Clone, Debug, Default)]
pub struct NewTopic {
    /// Its name.
    pub name: String,
    /// How many partitions; -1 is as many as `num.partitions` says.
    pub partitions: i32,
    /// How many replicas each; -1 is as many as `default.replication.factor` says.
    pub replication_factor: i16,
    /// Which brokers have which partition, where the two above are -1.
    pub assignments: Vec<Assignment>,
    /// Values of its own.
    pub configs: Vec<(String, Option<String>)>,
}

/// The brokers of a new partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// The partition.
    pub partition: PartitionIndex,
    /// Its replicas, the leader first.
    pub replicas: Vec<NodeId>,
}

/// What came of a topic to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedTopic {
    /// Its name.
    pub name: String,
    /// What it is like, or why it is not.
    pub result: Result<TopicCreated, TopicError>,
}

/// What a created topic is like.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicCreated {
    /// Its id.
    pub id: TopicId,
    /// How many partitions it has.
    pub partitions: i32,
    /// How many replicas each of them has.
    pub replication_factor: i16,
    /// All its values.
    pub configs: Vec<Described>,
}

impl Controller {
    /// Decides on new topics. They are answered in the order of the request, names that are there twice at the end.
    pub fn create_topics(&self, command: &CreateTopics, random: Random<'_>) -> Decision<Vec<CreatedTopic>> {
        let duplicates = duplicates(command.topics.iter().map(|topic| topic.name.as_str()));
        let mut records = Vec::new();
        let mut reply = Vec::with_capacity(command.topics.len());
        let too_many = self.partitions_wanted(command) > PARTITIONS_MAX;
        for topic in command.topics.iter().filter(|topic| !duplicates.contains(topic.name.as_str())) {
            let result = if too_many {
                Err(TopicError::TooManyPartitions)
            } else {
                self.create_topic(topic, random, &mut records)
            };
            reply.push(CreatedTopic { name: topic.name.clone(), result });
        }
        reply.extend(
            duplicates
                .into_iter()
                .map(|name| CreatedTopic { name: name.to_owned(), result: Err(TopicError::DuplicateName) }),
        );
        if command.validate_only {
            records.clear();
        }
        Decision { records, reply }
    }

    fn partitions_wanted(&self, command: &CreateTopics) -> usize {
        let wanted = |topic: &NewTopic| match (topic.assignments.len(), topic.partitions) {
            (0, -1) => self.default_partitions() as usize,
            (0, count) => usize::try_from(count).unwrap_or_default(),
            (assigned, _) => assigned,
        };
        command.topics.iter().map(wanted).fold(0, usize::saturating_add)
    }

    fn default_partitions(&self) -> i32 {
        let layers = self.image.configs.broker_layers(self.config.node, self.config.broker.values());
        layers.integer("num.partitions") as i32
    }

    fn default_replication_factor(&self) -> i16 {
        let layers = self.image.configs.broker_layers(self.config.node, self.config.broker.values());
        layers.integer("default.replication.factor") as i16
    }

    fn create_topic(
        &self,
        topic: &NewTopic,
        random: Random<'_>,
        records: &mut Vec<MetadataRecord>,
    ) -> Result<TopicCreated, TopicError> {
        self.check_new_name(&topic.name)?;
        let configs = topic_configs(&topic.configs)?;
        let replicas = self.new_replicas(topic, random)?;
        let id = self.new_topic_id(random);
        let created = TopicCreated {
            id,
            partitions: replicas.len() as i32,
            replication_factor: replicas[0].len() as i16,
            configs: self.describe_new(&configs),
        };
        records.push(TopicRecord { name: topic.name.clone(), topic_id: id }.into());
        records.extend(configs.into_iter().map(|(name, value)| config_record(&topic.name, name, value)));
        records.extend(replicas.into_iter().zip(0..).map(|(replicas, index)| {
            MetadataRecord::Partition(self.new_partition(replicas).to_record(id, index))
        }));
        Ok(created)
    }

    fn check_new_name(&self, name: &str) -> Result<(), TopicError> {
        if name == CLUSTER_METADATA {
            return Err(TopicError::Internal(name.to_owned()));
        }
        validate_topic_name(name)?;
        if self.image.topics.by_name(name).is_some() {
            return Err(TopicError::Exists(name.to_owned()));
        }
        if !name.contains(['.', '_']) {
            return Ok(());
        }
        match self.image.topics.iter().find(|topic| collide(name, topic.name.as_str())) {
            Some(existing) => {
                Err(TopicError::Collides { name: name.to_owned(), existing: existing.name.to_string() })
            }
            None => Ok(()),
        }
    }

    fn new_replicas(&self, topic: &NewTopic, random: Random<'_>) -> Result<Vec<Vec<NodeId>>, TopicError> {
        if !topic.assignments.is_empty() {
            return self.assigned_replicas(topic);
        }
        let factor = match topic.replication_factor {
            -1 => self.default_replication_factor(),
            factor if factor > 0 => factor,
            _ => return Err(TopicError::InvalidReplicationFactor),
        };
        let count = match topic.partitions {
            -1 => self.default_partitions(),
            count if count > 0 => count,
            _ => return Err(TopicError::InvalidPartitions),
        };
        placement::place(&self.image, count as usize, factor, random)
    }

    fn assigned_replicas(&self, topic: &NewTopic) -> Result<Vec<Vec<NodeId>>, TopicError> {
        if topic.replication_factor != -1 {
            return Err(TopicError::AssignmentAndReplicationFactor);
        }
        if topic.partitions != -1 {
            return Err(TopicError::AssignmentAndPartitions);
        }
        let mut assigned: BTreeMap<PartitionIndex, Vec<NodeId>> = BTreeMap::new();
        let mut factor = None;
        for Assignment { partition, replicas } in &topic.assignments {
            if assigned.contains_key(partition) {
                return Err(TopicError::assignment(format!(
                    "Found multiple manual partition assignments for partition {partition}"
                )));
            }
            self.check_assignment(replicas, factor)?;
            if !replicas.iter().any(|node| self.is_active(*node)) {
                return Err(TopicError::fenced_assignment(*partition));
            }
            factor = Some(replicas.len());
            assigned.insert(*partition, replicas.clone());
        }
        if !assigned.keys().copied().eq(0..assigned.len() as i32) {
            return Err(TopicError::assignment(
                "partitions should be a consecutive 0-based integer sequence",
            ));
        }
        Ok(assigned.into_values().collect())
    }

    /// Whether these brokers may have the replicas of one partition, where others have `factor` of them.
    pub(crate) fn check_assignment(
        &self,
        replicas: &[NodeId],
        factor: Option<usize>,
    ) -> Result<(), TopicError> {
        if replicas.is_empty() {
            return Err(TopicError::assignment(
                "The manual partition assignment includes an empty replica list.",
            ));
        }
        let mut sorted = replicas.to_vec();
        sorted.sort_unstable();
        for (i, node) in sorted.iter().enumerate() {
            if self.image.brokers.get(*node).is_none() {
                return Err(TopicError::assignment(format!(
                    "The manual partition assignment includes broker {node}, but no such broker is registered."
                )));
            }
            if i > 0 && sorted[i - 1] == *node {
                return Err(TopicError::assignment(format!(
                    "The manual partition assignment includes the broker {node} more than once."
                )));
            }
        }
        match factor {
            Some(factor) if factor != replicas.len() => Err(TopicError::assignment(format!(
                "The manual partition assignment includes a partition with {} replica(s), but this is not consistent \
                 with previous partitions, which have {factor} replica(s).",
                replicas.len()
            ))),
            _ => Ok(()),
        }
    }

    pub(crate) fn is_active(&self, node: NodeId) -> bool {
        self.image.brokers.get(node).is_some_and(|broker| broker.is_active())
    }

    /// A partition as it begins: led by its first active replica, all active ones in sync.
    pub(crate) fn new_partition(&self, replicas: Vec<NodeId>) -> Partition {
        let isr: Vec<NodeId> = replicas.iter().copied().filter(|node| self.is_active(*node)).collect();
        Partition {
            directories: replicas.iter().map(|node| placement::directory(&self.image, *node)).collect(),
            replicas,
            leader: isr[0],
            isr,
            removing_replicas: Vec::new(),
            adding_replicas: Vec::new(),
            elr: Vec::new(),
            last_known_elr: Vec::new(),
            leader_epoch: LeaderEpoch(0),
            partition_epoch: PartitionEpoch(0),
            recovery: LeaderRecovery::Recovered,
        }
    }

    fn new_topic_id(&self, random: Random<'_>) -> TopicId {
        loop {
            let bytes = (u128::from(random()) << 64 | u128::from(random())).to_be_bytes();
            let id = Uuid::from_random(bytes);
            // Kafka takes no id whose text begins with a dash: it would look like an option on a command line.
            if !id.to_string().starts_with('-') && self.image.topics.by_id(id).is_none() {
                return id;
            }
        }
    }

    fn describe_new(&self, configs: &Overrides) -> Vec<Described> {
        let layers = self.image.configs.broker_layers(self.config.node, self.config.broker.values());
        metadata::config::Layers { topic: configs, ..layers }.describe_topic(|_| true)
    }
}

/// What is there more than once.
pub(crate) fn duplicates<T: Ord>(items: impl Iterator<Item = T>) -> BTreeSet<T> {
    let (mut seen, mut twice) = (BTreeSet::new(), BTreeSet::new());
    for item in items {
        if seen.contains(&item) {
            twice.insert(item);
        } else {
            seen.insert(item);
        }
    }
    twice
}

fn topic_configs(configs: &[(String, Option<String>)]) -> Result<Overrides, TopicError> {
    let nulls: Vec<&str> =
        configs.iter().filter(|(_, value)| value.is_none()).map(|(name, _)| name.as_str()).collect();
    if !nulls.is_empty() {
        return Err(TopicError::NullConfig(nulls.join(",")));
    }
    let given = configs.iter().filter_map(|(name, value)| Some((name.clone(), value.clone()?)));
    let overrides: Overrides = given.collect();
    validate_topic(&overrides)?;
    Ok(overrides)
}

fn config_record(topic: &str, name: String, value: String) -> MetadataRecord {
    let resource = ConfigResource::topic(topic);
    ConfigRecord {
        resource_type: resource.kind.code(),
        resource_name: resource.name,
        name,
        value: Some(value),
    }
    .into()
}

#[cfg(test)]
mod tests {
    use metadata::config::ConfigSource;
    use model::ErrorCode;

    use super::*;
    use crate::testing::{commit, controller, counter, folder};

    fn topic(name: &str, partitions: i32, replication_factor: i16) -> NewTopic {
        NewTopic { name: name.into(), partitions, replication_factor, ..NewTopic::default() }
    }

    fn assigned(name: &str, assignments: &[(i32, &[i32])]) -> NewTopic {
        let assignment = |(partition, replicas): &(i32, &[i32])| Assignment {
            partition: *partition,
            replicas: replicas.iter().copied().map(NodeId).collect(),
        };
        NewTopic { assignments: assignments.iter().map(assignment).collect(), ..topic(name, -1, -1) }
    }

    fn with_config(mut topic: NewTopic, name: &str, value: Option<&str>) -> NewTopic {
        topic.configs.push((name.into(), value.map(Into::into)));
        topic
    }

    fn create(controller: &mut Controller, topics: Vec<NewTopic>) -> Vec<CreatedTopic> {
        let command = CreateTopics { topics, validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        commit(controller, decision)
    }

    fn refusal(controller: &Controller, topic: NewTopic) -> (ErrorCode, String) {
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        assert!(decision.records.is_empty(), "a refused topic leaves no record");
        let error = decision.reply[0].result.as_ref().expect_err("refused");
        (error.into(), error.to_string())
    }

    #[test]
    fn a_created_topic_has_its_partitions_values_and_folders() {
        let mut controller = controller(&[1], &[]);
        let reply = create(&mut controller, vec![with_config(topic("t", 2, 1), "retention.ms", Some("5"))]);
        let created = reply[0].result.as_ref().expect("created");
        assert_eq!((created.partitions, created.replication_factor), (2, 1));
        let retention = created.configs.iter().find(|config| config.name == "retention.ms").expect("told");
        assert_eq!((retention.value.as_deref(), retention.source), (Some("5"), ConfigSource::Topic));

        let found = controller.image().topics.by_name("t").expect("there");
        assert_eq!(found.id, created.id);
        assert_eq!(found.partitions.len(), 2);
        let partition = &found.partitions[&1];
        assert_eq!((partition.leader, partition.leader_epoch), (NodeId(1), LeaderEpoch(0)));
        assert_eq!(partition.directories, [folder(1)]);
        assert_eq!(controller.image().configs.of(&ConfigResource::topic("t"))["retention.ms"], "5");
    }

    #[test]
    fn minus_one_takes_the_brokers_defaults() {
        let mut controller = controller(&[1, 2], &[]);
        controller.config.broker.set("num.partitions", "3").expect("a number");
        controller.config.broker.set("default.replication.factor", "2").expect("a number");
        let reply = create(&mut controller, vec![topic("t", -1, -1)]);
        let created = reply[0].result.as_ref().expect("created");
        assert_eq!((created.partitions, created.replication_factor), (3, 2));
    }

    #[test]
    fn validate_only_answers_as_if_and_records_nothing() {
        let controller = controller(&[1], &[]);
        let command = CreateTopics { topics: vec![topic("t", 2, 1)], validate_only: true };
        let decision = controller.create_topics(&command, &mut counter());
        assert!(decision.records.is_empty());
        assert_eq!(decision.reply[0].result.as_ref().map(|created| created.partitions), Ok(2));
    }

    #[test]
    fn a_name_that_is_there_twice_is_refused_once_and_the_others_are_created() {
        let mut controller = controller(&[1], &[]);
        let reply = create(&mut controller, vec![topic("d", 1, 1), topic("d", 2, 1), topic("ok", 1, 1)]);
        assert_eq!(reply.len(), 2);
        assert!(reply[0].result.is_ok());
        assert_eq!(reply[1].result, Err(TopicError::DuplicateName));
        assert!(controller.image().topics.by_name("d").is_none());
    }

    #[test]
    fn names_are_refused_that_exist_collide_or_are_the_metadata_topic() {
        let mut controller = controller(&[1], &[]);
        create(&mut controller, vec![topic("a.b", 1, 1)]);
        let text = |name: &str| refusal(&controller, topic(name, 1, 1));
        assert_eq!(text("a.b"), (ErrorCode::TopicAlreadyExists, "Topic 'a.b' already exists.".into()));
        assert_eq!(
            text("a_b"),
            (ErrorCode::InvalidTopicException, "Topic 'a_b' collides with existing topic: a.b".into())
        );
        assert_eq!(text("__cluster_metadata").0, ErrorCode::InvalidRequest);
    }

    #[test]
    fn counts_are_refused_in_kafkas_words() {
        let controller = controller(&[1], &[]);
        let code = |partitions, factor| refusal(&controller, topic("t", partitions, factor)).0;
        assert_eq!(code(0, 1), ErrorCode::InvalidPartitions);
        assert_eq!(code(-2, 1), ErrorCode::InvalidPartitions);
        assert_eq!(code(1, 0), ErrorCode::InvalidReplicationFactor);
        assert_eq!(code(1, -2), ErrorCode::InvalidReplicationFactor);
        assert_eq!(code(1, 2), ErrorCode::InvalidReplicationFactor);
        assert_eq!(code(10_001, 1), ErrorCode::PolicyViolation);
    }

    #[test]
    fn assignments_are_taken_as_they_are() {
        let mut controller = controller(&[1, 2], &[3]);
        let reply = create(&mut controller, vec![assigned("t", &[(1, &[2, 1]), (0, &[3, 1])])]);
        assert!(reply[0].result.is_ok());
        let found = controller.image().topics.by_name("t").expect("there");
        assert_eq!(found.partitions[&1].leader, NodeId(2));
        assert_eq!(found.partitions[&0].leader, NodeId(1), "the fenced broker cannot lead");
        assert_eq!(found.partitions[&0].isr, [NodeId(1)]);
    }

    #[test]
    fn assignments_are_refused_in_kafkas_words() {
        let controller = controller(&[1, 2], &[3]);
        let text = |assignments: &[(i32, &[i32])]| {
            let (code, text) = refusal(&controller, assigned("t", assignments));
            assert_eq!(code, ErrorCode::InvalidReplicaAssignment);
            text
        };
        assert_eq!(
            text(&[(0, &[9])]),
            "The manual partition assignment includes broker 9, but no such broker is registered."
        );
        assert_eq!(
            text(&[(0, &[1, 1])]),
            "The manual partition assignment includes the broker 1 more than once."
        );
        assert_eq!(text(&[(0, &[])]), "The manual partition assignment includes an empty replica list.");
        assert_eq!(
            text(&[(0, &[1]), (2, &[1])]),
            "partitions should be a consecutive 0-based integer sequence"
        );
        assert_eq!(
            text(&[(0, &[1]), (0, &[1])]),
            "Found multiple manual partition assignments for partition 0"
        );
        assert_eq!(
            text(&[(0, &[1]), (1, &[1, 2])]),
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with \
             previous partitions, which have 1 replica(s)."
        );
        assert!(text(&[(0, &[3])]).starts_with("All brokers specified in the manual partition assignment"));
        let both = NewTopic { partitions: 1, ..assigned("t", &[(0, &[1])]) };
        assert_eq!(refusal(&controller, both).0, ErrorCode::InvalidRequest);
    }

    #[test]
    fn values_are_refused_as_the_registry_says() {
        let controller = controller(&[1], &[]);
        let text = |name: &str, value| refusal(&controller, with_config(topic("t", 1, 1), name, value));
        assert_eq!(
            text("nosuch", Some("1")),
            (ErrorCode::InvalidConfig, "Unknown topic config name: nosuch".into())
        );
        assert_eq!(text("retention.ms", None).1, "Null value not supported for topic configs: retention.ms");
    }
}
