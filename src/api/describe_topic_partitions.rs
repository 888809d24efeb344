//! DescribeTopicPartitions: topics and their partitions a page at a time, with eligible leader replicas.
//!
//! Topics come in the order of their names, each once. The next page begins at the cursor.
//!
//! Kafka: `DescribeTopicPartitionsRequestHandler`; KIP-966.

use std::collections::BTreeSet;

use controller::validate_topic_name;
use metadata::{Image, Partition, Topic};
use model::{ErrorCode, PartitionIndex, TopicName};
use protocol::messages::describe_topic_partitions_response::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
};
use protocol::messages::{DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse};
use protocol::{FromWire, ToWire};

use crate::authorized;
use crate::partition_view::PartitionView;
use crate::text::broker_ids;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: DescribeTopicPartitionsRequest,
    _version: i16,
) -> Reply<DescribeTopicPartitionsResponse> {
    let Ok(wanted) = lift(&request) else { return Reply::Now(error(&request, ErrorCode::InvalidRequest)) };
    let limit_max = node.cluster.broker_config().layers().integer("max.request.partition.size.limit");
    let limit = i64::from(request.response_partition_limit).min(limit_max).max(1) as usize;
    let image = node.image();
    let page = Page { image: &image, listener: &session.listener, left: limit, topics: Vec::new() };
    Reply::Now(page.fill(&wanted))
}

/// Which topics, and where to begin.
struct Wanted {
    /// `None` is all.
    names: Option<BTreeSet<TopicName>>,
    start: Option<(TopicName, PartitionIndex)>,
}

fn lift(request: &DescribeTopicPartitionsRequest) -> Result<Wanted, ErrorCode> {
    let start = request
        .cursor
        .as_ref()
        .map(|cursor| (TopicName::from_wire(&cursor.topic_name), cursor.partition_index));
    if start.as_ref().is_some_and(|(_, partition)| *partition < 0) {
        return Err(ErrorCode::InvalidRequest);
    }
    if request.topics.is_empty() {
        return Ok(Wanted { names: None, start });
    }
    let mut names: BTreeSet<TopicName> =
        request.topics.iter().map(|topic| TopicName::from_wire(&topic.name)).collect();
    if let Some((name, _)) = &start {
        names.retain(|other| other >= name);
        if !names.contains(name) {
            return Err(ErrorCode::InvalidRequest);
        }
    }
    Ok(Wanted { names: Some(names), start })
}

/// The answer as it is filled.
struct Page<'a> {
    image: &'a Image,
    listener: &'a str,
    /// How many more partitions fit.
    left: usize,
    topics: Vec<DescribeTopicPartitionsResponseTopic>,
}

impl Page<'_> {
    fn fill(mut self, wanted: &Wanted) -> DescribeTopicPartitionsResponse {
        let cursor = if let Some(names) = &wanted.names {
            self.add_all(names.iter().cloned(), wanted)
        } else {
            let first = wanted.start.as_ref().map_or("", |(name, _)| name.as_str());
            self.add_all(self.image.topics.from_name(first).map(|topic| topic.name.clone()), wanted)
        };
        let cursor = cursor.map(|(name, partition)| {
            Cursor::default().with_topic_name(name.to_wire()).with_partition_index(partition)
        });
        DescribeTopicPartitionsResponse::default().with_topics(self.topics).with_next_cursor(cursor)
    }

    /// Adds topics until the page is full; then where the next one begins.
    fn add_all(
        &mut self,
        names: impl Iterator<Item = TopicName>,
        wanted: &Wanted,
    ) -> Option<(TopicName, PartitionIndex)> {
        for name in names {
            if self.left == 0 {
                return Some((name, 0));
            }
            let first = match &wanted.start {
                Some((topic, partition)) if *topic == name => *partition,
                _ => 0,
            };
            if let Some(next) = self.add(&name, first) {
                return Some((name, next));
            }
        }
        None
    }

    fn add(&mut self, name: &TopicName, first: PartitionIndex) -> Option<PartitionIndex> {
        let Some(topic) = self.image.topics.by_name(name.as_str()) else {
            self.topics.push(unknown(name));
            return None;
        };
        let image = self.image;
        let mut rest = topic.partitions.range(first..);
        let page: Vec<_> = rest
            .by_ref()
            .take(self.left)
            .map(|(index, partition)| lower_partition(image, self.listener, *index, partition))
            .collect();
        self.left -= page.len();
        self.topics.push(lower_topic(topic).with_partitions(page));
        rest.next().map(|(index, _)| *index)
    }
}

fn unknown(name: &TopicName) -> DescribeTopicPartitionsResponseTopic {
    let error = match validate_topic_name(name.as_str()) {
        Ok(()) => ErrorCode::UnknownTopicOrPartition,
        Err(_) => ErrorCode::InvalidTopicException,
    };
    DescribeTopicPartitionsResponseTopic::default()
        .with_error_code(error.code())
        .with_name(Some(name.to_wire()))
        .with_is_internal(name.is_internal())
        .with_topic_authorized_operations(authorized::TOPIC)
}

fn lower_topic(topic: &Topic) -> DescribeTopicPartitionsResponseTopic {
    DescribeTopicPartitionsResponseTopic::default()
        .with_name(Some(topic.name.to_wire()))
        .with_topic_id(topic.id.to_wire())
        .with_is_internal(topic.name.is_internal())
        .with_topic_authorized_operations(authorized::TOPIC)
}

fn lower_partition(
    image: &Image,
    listener: &str,
    index: PartitionIndex,
    partition: &Partition,
) -> DescribeTopicPartitionsResponsePartition {
    let view = PartitionView::of(image, partition, listener, true);
    DescribeTopicPartitionsResponsePartition::default()
        .with_error_code(view.error.code())
        .with_partition_index(index)
        .with_leader_id(view.leader.to_wire())
        .with_leader_epoch(partition.leader_epoch.0)
        .with_replica_nodes(broker_ids(&partition.replicas))
        .with_isr_nodes(broker_ids(&partition.isr))
        .with_eligible_leader_replicas(Some(broker_ids(&partition.elr)))
        .with_last_known_elr(Some(broker_ids(&partition.last_known_elr)))
        .with_offline_replicas(broker_ids(&view.offline))
}

/// The answer to a cursor that makes no sense.
fn error(request: &DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse {
    let topics = request.topics.iter().map(|topic| {
        DescribeTopicPartitionsResponseTopic::default()
            .with_error_code(code.code())
            .with_name(Some(topic.name.clone()))
    });
    DescribeTopicPartitionsResponse::default().with_topics(topics.collect())
}

#[cfg(test)]
mod tests {
    use model::{Offset, Uuid};
    use protocol::messages::describe_topic_partitions_request as request;
    use protocol::records::metadata::{MetadataRecord, PartitionRecord, TopicRecord};

    use super::*;
    use crate::testing::encodes;

    /// Topics with this many partitions.
    fn image(topics: &[(&str, i32)]) -> Image {
        let mut records: Vec<MetadataRecord> = Vec::new();
        for (i, (name, partitions)) in topics.iter().enumerate() {
            let topic_id = Uuid([i as u8 + 1; 16]);
            records.push(TopicRecord { name: (*name).into(), topic_id }.into());
            let partition =
                |partition_id| PartitionRecord { partition_id, topic_id, ..PartitionRecord::default() };
            records.extend((0..*partitions).map(|index| partition(index).into()));
        }
        Image::default().apply(&records, Offset(1)).expect("fits").0
    }

    fn ask(names: &[&str], cursor: Option<(&str, i32)>) -> DescribeTopicPartitionsRequest {
        let topic =
            |name: &&str| request::TopicRequest::default().with_name(TopicName::from(*name).to_wire());
        let cursor = cursor.map(|(name, partition)| {
            request::Cursor::default()
                .with_topic_name(TopicName::from(name).to_wire())
                .with_partition_index(partition)
        });
        DescribeTopicPartitionsRequest::default()
            .with_topics(names.iter().map(topic).collect())
            .with_cursor(cursor)
    }

    fn page(
        image: &Image,
        request: &DescribeTopicPartitionsRequest,
        limit: usize,
    ) -> DescribeTopicPartitionsResponse {
        let wanted = lift(request).expect("a request that makes sense");
        Page { image, listener: "L", left: limit, topics: Vec::new() }.fill(&wanted)
    }

    #[test]
    fn pages_put_together_are_all_partitions_once() {
        let image = image(&[("a", 3), ("b", 1), ("c", 4)]);
        for names in [&["c", "a", "b", "a"][..], &[]] {
            for limit in 1..9 {
                let mut cursor: Option<(String, i32)> = None;
                let mut seen: Vec<(String, i32)> = Vec::new();
                loop {
                    let from = cursor.as_ref().map(|(name, partition)| (name.as_str(), *partition));
                    let answer = page(&image, &ask(names, from), limit);
                    for topic in &answer.topics {
                        let name = topic.name.as_ref().map(|name| name.to_string()).unwrap_or_default();
                        seen.extend(
                            topic
                                .partitions
                                .iter()
                                .map(|partition| (name.clone(), partition.partition_index)),
                        );
                    }
                    let Some(next) = answer.next_cursor else { break };
                    cursor = Some((next.topic_name.to_string(), next.partition_index));
                }
                let all = [("a", 3), ("b", 1), ("c", 4)];
                let all: Vec<(String, i32)> = all
                    .iter()
                    .flat_map(|(name, count)| (0..*count).map(|i| ((*name).to_owned(), i)))
                    .collect();
                assert_eq!(seen, all, "{names:?} by {limit}");
            }
        }
    }

    #[test]
    fn a_cursor_that_makes_no_sense_is_refused() {
        assert!(lift(&ask(&["a", "c"], Some(("b", 0)))).is_err(), "not one of the topics");
        assert!(lift(&ask(&["a"], Some(("a", -1)))).is_err());
    }

    #[test]
    fn an_unknown_topic_is_told_among_the_others() {
        let answer = page(&image(&[("a", 1), ("c", 1)]), &ask(&["c", "b", "a", "no t"], None), 10);
        let codes: Vec<i16> = answer.topics.iter().map(|topic| topic.error_code).collect();
        assert_eq!(
            codes,
            [0, ErrorCode::UnknownTopicOrPartition.code(), 0, ErrorCode::InvalidTopicException.code()]
        );
        encodes("DescribeTopicPartitions", |_| answer.clone());
    }
}
