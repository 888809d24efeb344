//! Fetch of the metadata log: version 13 names the topic by its id, 15 the replica in a tagged field, 17 its directory
//! and where the leader is, 18 the high watermark that it knows.

use std::time::Duration;

use model::{ErrorCode, LeaderEpoch, Limits, Offset, Uuid};
use protocol::messages::fetch_response::{EpochEndOffset, LeaderIdAndEpoch, SnapshotId as WireSnapshotId};
use protocol::messages::{FetchRequest, FetchResponse, fetch_request, fetch_response};
use protocol::{FromWire, ToWire};
use quorum::{EpochEnd, Request, Response, SnapshotId};

use super::{
    Answer, Asked, Place, QuorumApi, TOPIC, check_cluster, current, key, leader_address, leader_id,
    node_endpoints, topic_name,
};
use crate::metadata_log::{self, TOPIC_ID};

/// Whether it is the metadata log: by name, or by id.
fn is_metadata(name: &str, id: Uuid, version: i16) -> bool {
    if version >= 13 { id == TOPIC_ID } else { name == TOPIC }
}

impl QuorumApi for FetchRequest {
    type Question = quorum::FetchRequest;

    fn ask(question: &quorum::FetchRequest, place: &Place, version: i16) -> Self {
        let mut partition = fetch_request::FetchPartition::default()
            .with_current_leader_epoch(question.epoch.0)
            .with_fetch_offset(question.fetch_offset.0)
            .with_last_fetched_epoch(question.last_fetched_epoch.0);
        if version >= 17 {
            partition.replica_directory_id = question.replica.directory.to_wire();
        }
        if version >= 18 {
            partition.high_watermark = question.high_watermark.0;
        }
        let topic = fetch_request::FetchTopic::default().with_partitions(vec![partition]);
        let topic = if version >= 13 {
            topic.with_topic_id(TOPIC_ID.to_wire())
        } else {
            topic.with_topic(topic_name())
        };
        let request = Self::default()
            .with_max_wait_ms(question.wait.as_millis() as i32)
            .with_max_bytes(Limits::METADATA_FETCH_BYTES as i32)
            .with_topics(vec![topic]);
        let request =
            if version >= 12 { request.with_cluster_id(Some(place.cluster_id.to_wire())) } else { request };
        let id = question.replica.id.to_wire();
        if version >= 15 {
            request.with_replica_state(fetch_request::ReplicaState::default().with_replica_id(id))
        } else {
            request.with_replica_id(id)
        }
    }

    fn read(&self, place: &Place, version: i16) -> Result<Asked, ErrorCode> {
        check_cluster(self.cluster_id.as_ref(), place)?;
        let partition = match self.topics.as_slice() {
            [topic] if is_metadata(&topic.topic, Uuid::from_wire(&topic.topic_id), version) => {
                topic.partitions.as_slice()
            }
            _ => &[],
        };
        let [asked] = partition else { return Err(ErrorCode::InvalidRequest) };
        let (Ok(wait), 0) = (u64::try_from(self.max_wait_ms), asked.partition) else {
            return Err(ErrorCode::InvalidRequest);
        };
        let id = if version >= 15 { self.replica_state.replica_id } else { self.replica_id };
        let request = Request::Fetch(quorum::FetchRequest {
            replica: key(id, &asked.replica_directory_id),
            epoch: LeaderEpoch(asked.current_leader_epoch),
            fetch_offset: Offset(asked.fetch_offset),
            last_fetched_epoch: LeaderEpoch(asked.last_fetched_epoch),
            high_watermark: Offset(asked.high_watermark),
            wait: Duration::from_millis(wait),
        });
        let bytes_max = usize::try_from(self.max_bytes).unwrap_or(0).min(Limits::METADATA_FETCH_BYTES);
        Ok(Asked { request, bytes_max, leader: None })
    }

    fn refuse(error: ErrorCode) -> FetchResponse {
        FetchResponse::default().with_error_code(error.code())
    }

    fn answer(answer: Answer, version: i16) -> Option<FetchResponse> {
        let Response::Fetch(fetch) = answer.response else { return None };
        let mut partition = fetch_response::PartitionData::default()
            .with_error_code(fetch.error.code())
            .with_high_watermark(fetch.high_watermark.unwrap_or(Offset(-1)).0)
            .with_log_start_offset(fetch.log_start.0)
            .with_records(Some(answer.bytes));
        if version >= 12 {
            partition.current_leader = LeaderIdAndEpoch::default()
                .with_leader_id(leader_id(&fetch.current))
                .with_leader_epoch(fetch.current.epoch.0);
        }
        if let Some(diverging) = fetch.diverging {
            partition.diverging_epoch =
                EpochEndOffset::default().with_epoch(diverging.epoch.0).with_end_offset(diverging.end.0);
        }
        if let Some(snapshot) = fetch.snapshot {
            partition.snapshot_id =
                WireSnapshotId::default().with_end_offset(snapshot.end.0).with_epoch(snapshot.epoch.0);
        }
        let topic = fetch_response::FetchableTopicResponse::default().with_partitions(vec![partition]);
        let topic = if version >= 13 {
            topic.with_topic_id(TOPIC_ID.to_wire())
        } else {
            topic.with_topic(topic_name())
        };
        let leader = answer.leader.filter(|_| version >= 17);
        Some(
            FetchResponse::default()
                .with_responses(vec![topic])
                .with_node_endpoints(node_endpoints!(fetch_response, leader)),
        )
    }

    fn hear(response: FetchResponse) -> Option<Answer> {
        let [topic] = response.responses.as_slice() else { return None };
        let [heard] = topic.partitions.as_slice() else { return None };
        let is_metadata = Uuid::from_wire(&topic.topic_id) == TOPIC_ID || topic.topic.as_str() == TOPIC;
        if response.error_code != 0 || !is_metadata || heard.partition_index != 0 {
            return None;
        }
        let current = current(heard.current_leader.leader_id, heard.current_leader.leader_epoch);
        let bytes = heard.records.clone().unwrap_or_default();
        let fetch = quorum::FetchResponse {
            error: ErrorCode::told(heard.error_code),
            current,
            high_watermark: (heard.high_watermark >= 0).then_some(Offset(heard.high_watermark)),
            log_start: Offset(heard.log_start_offset),
            diverging: diverging(&heard.diverging_epoch),
            snapshot: snapshot(&heard.snapshot_id),
            batches: metadata_log::batches(&bytes).ok()?,
        };
        let leader = leader_address!(response.node_endpoints, current.leader);
        Some(Answer { response: Response::Fetch(fetch), bytes, leader })
    }
}

/// Kafka says none by -1 and -1; what cannot be is none too.
fn diverging(wire: &EpochEndOffset) -> Option<EpochEnd> {
    let is_one = wire.epoch >= 0 && wire.end_offset >= 0;
    is_one.then_some(EpochEnd { epoch: LeaderEpoch(wire.epoch), end: Offset(wire.end_offset) })
}

fn snapshot(wire: &WireSnapshotId) -> Option<SnapshotId> {
    let is_one = wire.epoch >= 0 && wire.end_offset >= 0;
    is_one.then_some(SnapshotId { epoch: LeaderEpoch(wire.epoch), end: Offset(wire.end_offset) })
}
