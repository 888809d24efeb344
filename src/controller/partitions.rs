//! More partitions for topics that are there.
//!
//! Kafka: `ReplicationControlManager.createPartitions`.

use metadata::Topic;
use model::NodeId;
use protocol::records::metadata::MetadataRecord;

use crate::topics::{PARTITIONS_MAX, duplicates};
use crate::{Controller, Decision, Random, TopicError, placement};

/// Topics that shall have more partitions.
#[derive(Clone, Debug, Default)]
pub struct CreatePartitions {
    /// One after the other; each gets its partitions or is refused by itself.
    pub topics: Vec<NewPartitions>,
    /// Only to say what would come of it.
    pub validate_only: bool,
}

/// How many partitions a topic shall have.
#[derive(Clone, Debug, Default)]
pub struct NewPartitions {
    /// The topic's name.
    pub name: String,
    /// How many partitions it has afterwards.
    pub count: i32,
    /// The brokers of each new partition, the leader first; by default the controller chooses.
    pub assignments: Option<Vec<Vec<NodeId>>>,
}

/// What came of a topic that shall have more partitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CreatedPartitions {
    /// The topic's name.
    pub name: String,
    /// Why it has not.
    pub result: Result<(), TopicError>,
}

impl Controller {
    /// Decides on more partitions. Names that are there twice are answered first.
    pub fn create_partitions(
        &self,
        command: &CreatePartitions,
        random: Random<'_>,
    ) -> Decision<Vec<CreatedPartitions>> {
        let twice = duplicates(command.topics.iter().map(|topic| topic.name.as_str()));
        let mut records = Vec::new();
        let mut reply: Vec<CreatedPartitions> = twice
            .iter()
            .map(|name| CreatedPartitions {
                name: (*name).to_owned(),
                result: Err(TopicError::DuplicateName),
            })
            .collect();
        for topic in command.topics.iter().filter(|topic| !twice.contains(topic.name.as_str())) {
            let result = self.more_partitions(topic, random).map(|new| records.extend(new));
            reply.push(CreatedPartitions { name: topic.name.clone(), result });
        }
        if command.validate_only {
            records.clear();
        }
        Decision { records, reply }
    }

    fn more_partitions(
        &self,
        wanted: &NewPartitions,
        random: Random<'_>,
    ) -> Result<Vec<MetadataRecord>, TopicError> {
        let topic = self.image.topics.by_name(&wanted.name).ok_or(TopicError::UnknownName)?;
        let has = topic.partitions.len();
        let additional = additional(wanted, has)?;
        let replicas = match &wanted.assignments {
            Some(assignments) => self.assigned_additional(topic, additional, assignments)?,
            None => placement::place(&self.image, additional, replication_factor(topic) as i16, random)?,
        };
        let new = replicas.into_iter().zip(has as i32..);
        Ok(new
            .map(|(replicas, index)| self.new_partition(replicas).to_record(topic.id, index).into())
            .collect())
    }

    fn assigned_additional(
        &self,
        topic: &Topic,
        additional: usize,
        assignments: &[Vec<NodeId>],
    ) -> Result<Vec<Vec<NodeId>>, TopicError> {
        if assignments.len() != additional {
            return Err(TopicError::AssignmentCount { additional, given: assignments.len() });
        }
        for (replicas, partition) in assignments.iter().zip(topic.partitions.len() as i32..) {
            self.check_assignment(replicas, Some(replication_factor(topic)))?;
            if !replicas.iter().any(|node| self.is_active(*node)) {
                return Err(TopicError::fenced_assignment(partition));
            }
        }
        Ok(assignments.to_vec())
    }
}

fn additional(wanted: &NewPartitions, has: usize) -> Result<usize, TopicError> {
    match usize::try_from(wanted.count).unwrap_or_default() {
        count if count == has => Err(TopicError::HasPartitions(has)),
        count if count < has => {
            Err(TopicError::NoIncrease { name: wanted.name.clone(), has, wanted: wanted.count })
        }
        count if count - has > PARTITIONS_MAX => Err(TopicError::TooManyAdditionalPartitions),
        count => Ok(count - has),
    }
}

/// As many as its first partition has.
fn replication_factor(topic: &Topic) -> usize {
    topic.partitions.values().next().map_or(1, |partition| partition.replicas.len())
}

#[cfg(test)]
mod tests {
    use model::ErrorCode;

    use super::*;
    use crate::testing::{commit, controller, counter};
    use crate::{CreateTopics, NewTopic};

    fn with_topic() -> Controller {
        let mut controller = controller(&[1, 2], &[]);
        let topic =
            NewTopic { name: "t".into(), partitions: 2, replication_factor: 1, ..NewTopic::default() };
        let command = CreateTopics { topics: vec![topic], validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        commit(&mut controller, decision);
        controller
    }

    fn grow(
        controller: &Controller,
        count: i32,
        assignments: Option<&[&[i32]]>,
    ) -> Decision<Vec<CreatedPartitions>> {
        let nodes = |ids: &&[i32]| ids.iter().copied().map(NodeId).collect();
        let assignments = assignments.map(|all| all.iter().map(nodes).collect());
        let topics = vec![NewPartitions { name: "t".into(), count, assignments }];
        controller.create_partitions(&CreatePartitions { topics, validate_only: false }, &mut counter())
    }

    fn refusal(controller: &Controller, count: i32, assignments: Option<&[&[i32]]>) -> (ErrorCode, String) {
        let decision = grow(controller, count, assignments);
        assert!(decision.records.is_empty());
        let error = decision.reply[0].result.as_ref().expect_err("refused");
        (error.into(), error.to_string())
    }

    #[test]
    fn new_partitions_follow_the_old_ones() {
        let mut controller = with_topic();
        let decision = grow(&controller, 4, Some(&[&[2], &[1]]));
        commit(&mut controller, decision);
        let topic = controller.image().topics.by_name("t").expect("there");
        assert_eq!(topic.partitions.keys().copied().collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(topic.partitions[&2].leader, NodeId(2));
    }

    #[test]
    fn counts_and_assignments_are_refused_in_kafkas_words() {
        let controller = with_topic();
        let text = |count, assignments| refusal(&controller, count, assignments).1;
        assert_eq!(text(2, None), "Topic already has 2 partition(s).");
        assert_eq!(text(-1, None), "The topic t currently has 2 partition(s); -1 would not be an increase.");
        assert_eq!(refusal(&controller, 50_000, None).0, ErrorCode::PolicyViolation);
        assert_eq!(
            text(4, Some(&[&[1]])),
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified."
        );
        assert_eq!(
            text(3, Some(&[&[1, 2]])),
            "The manual partition assignment includes a partition with 2 replica(s), but this is not consistent with \
             previous partitions, which have 1 replica(s)."
        );
    }
}
