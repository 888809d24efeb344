//! ElectLeaders: the preferred replicas lead again, or anybody does where nobody leads.
//!
//! Kafka: `ControllerApis.handleElectLeaders`; KIP-183, KIP-460.

use std::collections::BTreeMap;

use cluster::ClusterError;
use controller::{ElectLeaders, ElectedLeader, ElectionError, ElectionType};
use model::{ErrorCode, PartitionIndex, TopicName};
use protocol::messages::elect_leaders_response::{PartitionResult, ReplicaElectionResult};
use protocol::messages::{ElectLeadersRequest, ElectLeadersResponse};
use protocol::{FromWire, StrBytes, ToWire};

use crate::text::message;
use crate::{Node, Reply, Session};

/// The first version that has a code for all.
const CODE_VERSION: i16 = 1;

/// Why no election is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum ElectLeadersError {
    #[error("Unknown election type {0}")]
    UnknownType(i8),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
}

pub(crate) async fn handle(
    node: &Node,
    session: &mut Session,
    request: ElectLeadersRequest,
    version: i16,
) -> Reply<ElectLeadersResponse> {
    let elected = match lift(&request) {
        Ok(command) => {
            let decided = node.decide(session.until, move |controller| controller.elect_leaders(&command));
            decided.await.map_err(ElectLeadersError::from)
        }
        Err(cause) => Err(cause),
    };
    Reply::Now(match elected {
        Ok(elected) => lower(&request, elected),
        Err(cause) => error(&request, cause, version),
    })
}

fn lift(request: &ElectLeadersRequest) -> Result<ElectLeaders, ElectLeadersError> {
    let election = ElectionType::from_code(request.election_type)
        .ok_or(ElectLeadersError::UnknownType(request.election_type))?;
    let partitions = request.topic_partitions.as_ref().map(|topics| {
        let of_topic = topics.iter().flat_map(|topic| {
            topic.partitions.iter().map(|index| (TopicName::from_wire(&topic.topic).to_string(), *index))
        });
        of_topic.collect()
    });
    Ok(ElectLeaders { election, partitions })
}

/// What came of the partitions that were named, in the order of the request; or of all topics, where the partitions that
/// needed no election are left out.
fn lower(request: &ElectLeadersRequest, elected: Vec<ElectedLeader>) -> ElectLeadersResponse {
    let mut results: BTreeMap<String, BTreeMap<PartitionIndex, PartitionResult>> = BTreeMap::new();
    for ElectedLeader { topic, partition, result } in elected {
        let of_topic = results.entry(topic).or_default();
        if request.topic_partitions.is_some() || result != Err(ElectionError::NotNeeded) {
            let cause = result.err();
            let code = cause.as_ref().map_or(ErrorCode::None, ErrorCode::from);
            of_topic.insert(partition, partition_result(partition, code, cause.as_ref().map(message)));
        }
    }
    let results = match &request.topic_partitions {
        Some(_) => named(request, |topic, partition| {
            results.get(topic.as_str()).and_then(|topic| topic.get(&partition)).cloned()
        }),
        None => results
            .into_iter()
            .map(|(topic, partitions)| result_of(topic.into(), partitions.into_values().collect()))
            .collect(),
    };
    ElectLeadersResponse::default().with_replica_election_results(results)
}

/// A result for each partition that the request names.
fn named(
    request: &ElectLeadersRequest,
    result: impl Fn(&TopicName, PartitionIndex) -> Option<PartitionResult>,
) -> Vec<ReplicaElectionResult> {
    let topics = request.topic_partitions.iter().flatten().map(|topic| {
        let name = TopicName::from_wire(&topic.topic);
        let results = topic.partitions.iter().filter_map(|partition| result(&name, *partition)).collect();
        result_of(name, results)
    });
    topics.collect()
}

fn result_of(topic: TopicName, results: Vec<PartitionResult>) -> ReplicaElectionResult {
    ReplicaElectionResult::default().with_topic(topic.to_wire()).with_partition_result(results)
}

fn partition_result(
    partition: PartitionIndex,
    code: ErrorCode,
    message: Option<StrBytes>,
) -> PartitionResult {
    PartitionResult::default()
        .with_partition_id(partition)
        .with_error_code(code.code())
        .with_error_message(message)
}

fn error(request: &ElectLeadersRequest, cause: ElectLeadersError, version: i16) -> ElectLeadersResponse {
    let code = match cause {
        ElectLeadersError::UnknownType(_) => ErrorCode::InvalidRequest,
        ElectLeadersError::Cluster(cause) => cause.into(),
    };
    let results =
        named(request, |_, partition| Some(partition_result(partition, code, Some(message(&cause)))));
    ElectLeadersResponse::default()
        .with_error_code(if version >= CODE_VERSION { code.code() } else { 0 })
        .with_replica_election_results(results)
}

#[cfg(test)]
mod tests {
    use protocol::messages::elect_leaders_request::TopicPartitions;

    use super::*;
    use crate::testing::encodes;

    fn request(topics: &[(&str, &[i32])]) -> ElectLeadersRequest {
        let topic = |(name, partitions): &(&str, &[i32])| {
            TopicPartitions::default()
                .with_topic(TopicName::from(*name).to_wire())
                .with_partitions(partitions.to_vec())
        };
        ElectLeadersRequest::default().with_topic_partitions(Some(topics.iter().map(topic).collect()))
    }

    fn elected(topic: &str, partition: i32, result: Result<(), ElectionError>) -> ElectedLeader {
        ElectedLeader { topic: topic.into(), partition, result }
    }

    fn codes(response: &ElectLeadersResponse) -> Vec<(String, Vec<(i32, i16)>)> {
        let results = response.replica_election_results.iter().map(|topic| {
            let partitions = topic.partition_result.iter();
            (topic.topic.to_string(), partitions.map(|one| (one.partition_id, one.error_code)).collect())
        });
        results.collect()
    }

    #[test]
    fn what_came_of_partitions_is_told_in_the_order_of_the_request() {
        let request = request(&[("b", &[1, 0]), ("a", &[]), ("b", &[1])]);
        assert_eq!(lift(&request).expect("a type").partitions.expect("named").len(), 3);
        let elected = vec![elected("b", 1, Ok(())), elected("b", 0, Err(ElectionError::NotNeeded))];
        let not_needed = ErrorCode::ElectionNotNeeded.code();
        assert_eq!(
            codes(&lower(&request, elected)),
            [("b".into(), vec![(1, 0), (0, not_needed)]), ("a".into(), vec![]), ("b".into(), vec![(1, 0)])]
        );
    }

    #[test]
    fn of_all_topics_those_partitions_are_told_that_needed_an_election() {
        let all = ElectLeadersRequest::default().with_topic_partitions(None);
        assert_eq!(lift(&all).expect("a type").partitions, None);
        let not_needed = || Err(ElectionError::NotNeeded);
        let elected =
            vec![elected("a", 2, not_needed()), elected("a", 3, Ok(())), elected("b", 0, not_needed())];
        assert_eq!(codes(&lower(&all, elected)), [("a".into(), vec![(3, 0)]), ("b".into(), vec![])]);
    }

    #[test]
    fn a_type_that_nobody_knows_is_refused_for_each_partition() {
        let request = request(&[("a", &[0])]).with_election_type(7);
        let cause = lift(&request).expect_err("refused");
        let response = error(&request, cause, 2);
        let invalid = ErrorCode::InvalidRequest.code();
        assert_eq!(
            (response.error_code, codes(&response)),
            (invalid, vec![("a".into(), vec![(0, invalid)])])
        );
        encodes("ElectLeaders", |version| error(&request, cause, version));
        encodes("ElectLeaders", |_| lower(&request, vec![elected("a", 0, Ok(()))]));
    }
}
