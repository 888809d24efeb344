//! Deleting topics, by name or by id.
//!
//! Kafka: `ControllerApis.deleteTopics`, `ReplicationControlManager.deleteTopics`; KIP-516.

use std::collections::BTreeSet;

use metadata::Topic;
use model::{TopicId, Uuid};
use protocol::records::metadata::RemoveTopicRecord;

use crate::topics::duplicates;
use crate::{Controller, Decision, TopicError};

/// A topic to delete, by its name or its id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeleteTopic {
    /// The name, if it goes by it.
    pub name: Option<String>,
    /// The id, if it goes by it; else zero.
    pub id: TopicId,
}

/// What came of a topic to delete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeletedTopic {
    /// Its name, where it is known.
    pub name: Option<String>,
    /// Its id, where it is known; else zero.
    pub id: TopicId,
    /// Why it is not deleted.
    pub result: Result<(), TopicError>,
}

impl Controller {
    /// Decides on topics to delete. They are answered in the order of the request, what is there twice first.
    pub fn delete_topics(&self, topics: &[DeleteTopic]) -> Decision<Vec<DeletedTopic>> {
        let names = duplicates(topics.iter().filter_map(|topic| topic.name.as_deref()));
        let ids = duplicates(topics.iter().map(|topic| topic.id).filter(|id| !id.is_zero()));
        let refused = |name: Option<&str>, id, error| DeletedTopic {
            name: name.map(Into::into),
            id,
            result: Err(error),
        };
        let mut reply: Vec<DeletedTopic> = Vec::with_capacity(topics.len());
        reply.extend(names.iter().map(|name| refused(Some(name), Uuid::ZERO, TopicError::DuplicateName)));
        reply.extend(ids.iter().map(|id| refused(None, *id, TopicError::DuplicateId)));

        let given: Vec<TopicId> =
            topics.iter().filter(|topic| topic.name.is_none()).map(|topic| topic.id).collect();
        let named: BTreeSet<TopicId> =
            topics.iter().filter_map(|topic| Some(self.named(topic)?.id)).collect();
        let mut records = Vec::new();
        for topic in topics {
            let twice =
                topic.name.as_deref().is_some_and(|name| names.contains(name)) || ids.contains(&topic.id);
            // Refused where the name is.
            let named_too = topic.name.is_none() && named.contains(&topic.id);
            if twice || named_too {
                continue;
            }
            match self.delete_topic(topic, &given) {
                Ok(found) => {
                    records.push(RemoveTopicRecord { topic_id: found.id }.into());
                    reply.push(DeletedTopic {
                        name: Some(found.name.to_string()),
                        id: found.id,
                        result: Ok(()),
                    });
                }
                Err(error) => {
                    let id = self.named(topic).map_or(topic.id, |found| found.id);
                    reply.push(refused(topic.name.as_deref(), id, error));
                }
            }
        }
        Decision { records, reply }
    }

    fn named(&self, topic: &DeleteTopic) -> Option<&Topic> {
        let name = topic.name.as_deref().filter(|_| topic.id.is_zero())?;
        self.image.topics.by_name(name).map(AsRef::as_ref)
    }

    fn delete_topic(&self, topic: &DeleteTopic, given: &[TopicId]) -> Result<&Topic, TopicError> {
        if !self.config.broker.layers().boolean("delete.topic.enable") {
            return Err(TopicError::DeletionDisabled);
        }
        match (&topic.name, topic.id.is_zero()) {
            (None, true) => Err(TopicError::NeitherNameNorId),
            (Some(_), false) => Err(TopicError::BothNameAndId),
            (None, false) => {
                self.image.topics.by_id(topic.id).map(AsRef::as_ref).ok_or(TopicError::UnknownId)
            }
            (Some(_), true) => match self.named(topic) {
                None => Err(TopicError::UnknownName),
                Some(found) if given.contains(&found.id) => Err(TopicError::NameOfGivenId),
                Some(found) => Ok(found),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{commit, controller, counter};
    use crate::{CreateTopics, NewTopic};

    fn with_topics(names: &[&str]) -> Controller {
        let mut controller = controller(&[1], &[]);
        let topic = |name: &&str| NewTopic {
            name: (*name).to_owned(),
            partitions: 1,
            replication_factor: 1,
            ..NewTopic::default()
        };
        let command = CreateTopics { topics: names.iter().map(topic).collect(), validate_only: false };
        let decision = controller.create_topics(&command, &mut counter());
        commit(&mut controller, decision);
        controller
    }

    fn by_name(name: &str) -> DeleteTopic {
        DeleteTopic { name: Some(name.into()), id: Uuid::ZERO }
    }

    fn by_id(id: TopicId) -> DeleteTopic {
        DeleteTopic { name: None, id }
    }

    fn errors(controller: &Controller, topics: &[DeleteTopic]) -> Vec<Option<TopicError>> {
        controller.delete_topics(topics).reply.into_iter().map(|topic| topic.result.err()).collect()
    }

    #[test]
    fn a_topic_is_deleted_by_name_and_by_id_and_both_are_told() {
        let mut controller = with_topics(&["a", "b"]);
        let id =
            |controller: &Controller, name| controller.image().topics.by_name(name).map(|topic| topic.id);
        let (a, b) = (id(&controller, "a").expect("there"), id(&controller, "b").expect("there"));
        let decision = controller.delete_topics(&[by_name("a"), by_id(b)]);
        let reply = commit(&mut controller, decision);
        assert_eq!(reply[0], DeletedTopic { name: Some("a".into()), id: a, result: Ok(()) });
        assert_eq!(reply[1], DeletedTopic { name: Some("b".into()), id: b, result: Ok(()) });
        assert!(controller.image().topics.is_empty());
    }

    #[test]
    fn unknown_doubled_and_contradicting_topics_are_refused() {
        let controller = with_topics(&["a"]);
        let a = controller.image().topics.by_name("a").expect("there").id;
        let other = Uuid([9; 16]);
        assert_eq!(errors(&controller, &[by_name("x")]), [Some(TopicError::UnknownName)]);
        assert_eq!(errors(&controller, &[by_id(other)]), [Some(TopicError::UnknownId)]);
        assert_eq!(errors(&controller, &[DeleteTopic::default()]), [Some(TopicError::NeitherNameNorId)]);
        let both = DeleteTopic { name: Some("a".into()), id: other };
        assert_eq!(errors(&controller, &[both]), [Some(TopicError::BothNameAndId)]);
        assert_eq!(errors(&controller, &[by_name("a"), by_name("a")]), [Some(TopicError::DuplicateName)]);
        assert_eq!(errors(&controller, &[by_id(a), by_id(a)]), [Some(TopicError::DuplicateId)]);
        assert_eq!(errors(&controller, &[by_name("a"), by_id(a)]), [Some(TopicError::NameOfGivenId)]);
    }

    #[test]
    fn nothing_is_deleted_where_deletion_is_disabled() {
        let mut controller = with_topics(&["a"]);
        controller.config.broker.set("delete.topic.enable", "false").expect("a boolean");
        assert_eq!(errors(&controller, &[by_name("a")]), [Some(TopicError::DeletionDisabled)]);
    }
}
