//! OffsetForLeaderEpoch: where a leader epoch ended, so that a consumer finds out that its log was truncated.
//!
//! Kafka: `KafkaApis.handleOffsetForLeaderEpochRequest`; KIP-101, KIP-320.

use metadata::Image;
use model::{ErrorCode, LeaderEpoch, Offset};
use protocol::messages::offset_for_leader_epoch_request::OffsetForLeaderPartition;
use protocol::messages::offset_for_leader_epoch_response::{EpochEndOffset, OffsetForLeaderTopicResult};
use protocol::messages::{OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse};

use crate::{Node, Reply, Session};

pub(crate) async fn handle(
    node: &Node,
    _session: &mut Session,
    request: OffsetForLeaderEpochRequest,
    _version: i16,
) -> Reply<OffsetForLeaderEpochResponse> {
    let image = node.image();
    let topics = request
        .topics
        .into_iter()
        .map(|topic| {
            let partitions = topic
                .partitions
                .iter()
                .map(|wanted| answer(wanted, find(node, &image, &topic.topic, wanted)))
                .collect();
            OffsetForLeaderTopicResult::default().with_topic(topic.topic).with_partitions(partitions)
        })
        .collect();
    Reply::Now(OffsetForLeaderEpochResponse::default().with_topics(topics))
}

fn find(
    node: &Node,
    image: &Image,
    topic: &str,
    wanted: &OffsetForLeaderPartition,
) -> Result<Option<(LeaderEpoch, Offset)>, ErrorCode> {
    let partition = node.partition(image, topic, wanted.partition)?;
    partition.check_epoch(LeaderEpoch(wanted.current_leader_epoch))?;
    match LeaderEpoch(wanted.leader_epoch) {
        LeaderEpoch::NONE => Ok(None),
        epoch => Ok(partition.epoch_end(epoch)?),
    }
}

fn answer(
    wanted: &OffsetForLeaderPartition,
    found: Result<Option<(LeaderEpoch, Offset)>, ErrorCode>,
) -> EpochEndOffset {
    let (error, (epoch, end)) = match found {
        Ok(found) => (ErrorCode::None, found.unwrap_or((LeaderEpoch::NONE, Offset(-1)))),
        Err(error) => (error, (LeaderEpoch::NONE, Offset(-1))),
    };
    EpochEndOffset::default()
        .with_partition(wanted.partition)
        .with_error_code(error.code())
        .with_leader_epoch(epoch.0)
        .with_end_offset(end.0)
}
