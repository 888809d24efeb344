//! ListOffsets: the offset at a time, or at one of the log's ends.
//!
//! Kafka: `KafkaApis.handleListOffsetRequest`, `ReplicaManager.fetchOffset`, `UnifiedLog.fetchOffsetByTimestamp`; KIP-79,
//! 207, 405, 734, 1005, 1023.

use std::collections::BTreeSet;

use env::Exec;
use metadata::Image;
use model::{ErrorCode, LeaderEpoch, Offset, Timestamp};
use protocol::messages::list_offsets_request::ListOffsetsPartition;
use protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use protocol::messages::{ListOffsetsRequest, ListOffsetsResponse};
use replication::{Isolation, Partition, ReadError, TimestampOffset};

use crate::{Node, Reply, Session};

/// The replica id of who is none.
const CONSUMER: i32 = -1;
const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const MAX_TIMESTAMP: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: ListOffsetsRequest,
    version: i16,
) -> Reply<ListOffsetsResponse> {
    let image = node.image();
    let isolation = match request.isolation_level {
        // Followers, and debuggers, see all.
        _ if request.replica_id.0 != CONSUMER => Isolation::LogEnd,
        1 => Isolation::ReadCommitted,
        _ => Isolation::ReadUncommitted,
    };
    let duplicates = duplicates(&request);
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for wanted in &topic.partitions {
            let found = if duplicates.contains(&(topic.name.to_string(), wanted.partition_index)) {
                Err(ErrorCode::InvalidRequest)
            } else {
                find(node, &image, &topic.name, wanted, (isolation, version)).await
            };
            partitions.push(lower(wanted.partition_index, found, version));
        }
        topics.push(ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(partitions));
    }
    Reply::Now(ListOffsetsResponse::default().with_topics(topics))
}

fn duplicates(request: &ListOffsetsRequest) -> BTreeSet<(String, i32)> {
    let mut seen = BTreeSet::new();
    request
        .topics
        .iter()
        .flat_map(|topic| {
            topic.partitions.iter().map(|partition| (topic.name.to_string(), partition.partition_index))
        })
        .filter(|key| !seen.insert(key.clone()))
        .collect()
}

/// A found offset; `None` where the log has none such.
type Found = Option<(Timestamp, Offset, LeaderEpoch)>;

async fn find(
    node: &Node,
    image: &Image,
    topic: &str,
    wanted: &ListOffsetsPartition,
    (isolation, version): (Isolation, i16),
) -> Result<Found, ErrorCode> {
    if !is_supported(wanted.timestamp, version) {
        return Err(ErrorCode::UnsupportedVersion);
    }
    let partition = node.partition(image, topic, wanted.partition_index)?;
    partition.check_epoch(LeaderEpoch(wanted.current_leader_epoch))?;
    look(node.env.exec.as_ref(), &partition, wanted.timestamp, isolation).await
}

fn is_supported(timestamp: i64, version: i16) -> bool {
    let version_min = match timestamp {
        0.. | LATEST | EARLIEST => 1,
        MAX_TIMESTAMP => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        _ => return false,
    };
    version >= version_min
}

async fn look(
    exec: &dyn Exec,
    partition: &Partition,
    timestamp: i64,
    isolation: Isolation,
) -> Result<Found, ErrorCode> {
    let offsets = partition.offsets()?;
    let end = match isolation {
        Isolation::ReadCommitted => offsets.last_stable_offset,
        Isolation::ReadUncommitted => offsets.high_watermark,
        Isolation::LogEnd => offsets.log_end,
    };
    match timestamp {
        LATEST if !offsets.is_exposed && isolation != Isolation::LogEnd => Err(ErrorCode::OffsetNotAvailable),
        LATEST => Ok(Some((Timestamp::NONE, end, offsets.leader_epoch))),
        EARLIEST | EARLIEST_LOCAL => {
            let epoch = partition.epoch_at(offsets.log_start)?.unwrap_or(LeaderEpoch::NONE);
            Ok(Some((Timestamp::NONE, offsets.log_start, epoch)))
        }
        // There is no remote tier.
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(None),
        MAX_TIMESTAMP => below(end, partition.max_timestamp(exec).await),
        time => below(end, partition.offset_for_timestamp(exec, Timestamp(time)).await),
    }
}

/// What a consumer could read of what was found.
fn below(end: Offset, found: Result<Option<TimestampOffset>, ReadError>) -> Result<Found, ErrorCode> {
    let found = found.map_err(|error| ErrorCode::from(&error))?;
    Ok(found
        .filter(|found| found.offset < end)
        .map(|found| (found.timestamp, found.offset, found.leader_epoch)))
}

/// Leader epochs are told from version 4 on.
const LEADER_EPOCH_VERSION_MIN: i16 = 4;
/// OFFSET_NOT_AVAILABLE is understood from version 5 on (KIP-207).
const OFFSET_NOT_AVAILABLE_VERSION_MIN: i16 = 5;

const NOTHING: (Timestamp, Offset, LeaderEpoch) = (Timestamp::NONE, Offset(-1), LeaderEpoch::NONE);

fn lower(index: i32, found: Result<Found, ErrorCode>, version: i16) -> ListOffsetsPartitionResponse {
    let response = ListOffsetsPartitionResponse::default().with_partition_index(index);
    let (error, (timestamp, offset, epoch)) = match found {
        Ok(found) => (ErrorCode::None, found.unwrap_or(NOTHING)),
        Err(ErrorCode::OffsetNotAvailable) if version < OFFSET_NOT_AVAILABLE_VERSION_MIN => {
            (ErrorCode::LeaderNotAvailable, NOTHING)
        }
        Err(error) => (error, NOTHING),
    };
    response
        .with_error_code(error.code())
        .with_timestamp(timestamp.0)
        .with_offset(offset.0)
        .with_leader_epoch(if version < LEADER_EPOCH_VERSION_MIN { -1 } else { epoch.0 })
}
