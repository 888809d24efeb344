//! DescribeLogDirs: the log folders of this node, what lies in them and how much room is left.
//!
//! Kafka: `ReplicaManager.describeLogDirs`; KIP-113, KIP-827.

use std::collections::{BTreeMap, BTreeSet};

use model::{ErrorCode, PartitionIndex, TopicName, TopicPartition};
use protocol::messages::describe_log_dirs_request::DescribableLogDirTopic;
use protocol::messages::describe_log_dirs_response::{
    DescribeLogDirsPartition, DescribeLogDirsResult, DescribeLogDirsTopic,
};
use protocol::messages::{DescribeLogDirsRequest, DescribeLogDirsResponse};
use protocol::{FromWire, ToWire};
use replication::FolderDescription;

use crate::text::text;
use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: DescribeLogDirsRequest,
    _version: i16,
) -> Reply<DescribeLogDirsResponse> {
    let wanted = lift(request.topics.as_deref());
    let results = node.replication.folders().iter().map(|folder| lower(folder, wanted.as_ref())).collect();
    Reply::Now(DescribeLogDirsResponse::default().with_results(results))
}

/// The partitions that are asked for; `None` is all.
fn lift(topics: Option<&[DescribableLogDirTopic]>) -> Option<BTreeSet<(TopicName, PartitionIndex)>> {
    let partitions = |topic: &DescribableLogDirTopic| {
        let name = TopicName::from_wire(&topic.topic);
        topic.partitions.iter().map(move |partition| (name.clone(), *partition)).collect::<Vec<_>>()
    };
    topics.map(|topics| topics.iter().flat_map(partitions).collect())
}

fn lower(
    folder: &FolderDescription,
    wanted: Option<&BTreeSet<(TopicName, PartitionIndex)>>,
) -> DescribeLogDirsResult {
    let result = DescribeLogDirsResult::default().with_log_dir(text(&folder.path.to_string_lossy()));
    if folder.is_offline {
        return result.with_error_code(ErrorCode::KafkaStorageError.code());
    }
    let is_wanted =
        |of: &TopicPartition| wanted.is_none_or(|all| all.contains(&(of.topic.clone(), of.partition)));
    let mut topics: BTreeMap<&TopicName, Vec<DescribeLogDirsPartition>> = BTreeMap::new();
    for (of, bytes) in folder.partitions.iter().filter(|(of, _)| is_wanted(of)) {
        topics.entry(&of.topic).or_default().push(lower_partition(of.partition, *bytes));
    }
    result
        .with_topics(topics.into_iter().map(|(name, partitions)| lower_topic(name, partitions)).collect())
        .with_total_bytes(folder.total_bytes)
        .with_usable_bytes(folder.usable_bytes)
}

fn lower_topic(name: &TopicName, partitions: Vec<DescribeLogDirsPartition>) -> DescribeLogDirsTopic {
    DescribeLogDirsTopic::default().with_name(name.to_wire()).with_partitions(partitions)
}

/// A replica that is not moving between folders is never behind itself.
fn lower_partition(partition: PartitionIndex, bytes: u64) -> DescribeLogDirsPartition {
    DescribeLogDirsPartition::default().with_partition_index(partition).with_partition_size(bytes as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::encodes;

    fn folder(is_offline: bool) -> FolderDescription {
        FolderDescription {
            path: "/data".into(),
            is_offline,
            total_bytes: 10,
            usable_bytes: 5,
            partitions: vec![(TopicPartition::new("a", 0), 1), (TopicPartition::new("b", 0), 2)],
        }
    }

    #[test]
    fn every_version_can_describe_a_folder_that_works_and_one_that_failed() {
        for is_offline in [false, true] {
            let results = || vec![lower(&folder(is_offline), None)];
            encodes("DescribeLogDirs", |_| DescribeLogDirsResponse::default().with_results(results()));
        }
    }

    #[test]
    fn only_what_is_asked_for_is_described() {
        let wanted = BTreeSet::from([("b".into(), 0), ("b".into(), 9)]);
        let described = lower(&folder(false), Some(&wanted));
        assert_eq!(described.topics.len(), 1);
        assert_eq!(described.topics[0].partitions[0].partition_size, 2);
        assert!(lower(&folder(false), Some(&BTreeSet::new())).topics.is_empty());
    }
}
