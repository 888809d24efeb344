//! FetchSnapshot of the metadata log: version 1 names the replica's directory, and says where the leader is.

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, Limits, Offset};
use protocol::ToWire;
use protocol::messages::fetch_snapshot_request::{
    PartitionSnapshot as AskedSnapshot, SnapshotId as AskedId, TopicSnapshot as AskedTopic,
};
use protocol::messages::fetch_snapshot_response::{
    LeaderIdAndEpoch, PartitionSnapshot, SnapshotId as WireSnapshotId, TopicSnapshot,
};
use protocol::messages::{FetchSnapshotRequest, FetchSnapshotResponse};
use quorum::{Request, Response, SnapshotId};

use super::{
    Answer, Asked, Place, QuorumApi, check_cluster, current, key, leader_address, leader_id, node_endpoints,
    only_partition, topic_name,
};

impl QuorumApi for FetchSnapshotRequest {
    type Question = quorum::FetchSnapshotRequest;

    fn ask(question: &quorum::FetchSnapshotRequest, place: &Place, version: i16) -> Self {
        let id = AskedId::default().with_end_offset(question.id.end.0).with_epoch(question.id.epoch.0);
        let mut partition = AskedSnapshot::default()
            .with_current_leader_epoch(question.epoch.0)
            .with_snapshot_id(id)
            .with_position(i64::try_from(question.position).unwrap_or(i64::MAX));
        if version >= 1 {
            partition.replica_directory_id = question.replica.directory.to_wire();
        }
        let topic = AskedTopic::default().with_name(topic_name()).with_partitions(vec![partition]);
        Self::default()
            .with_cluster_id(Some(place.cluster_id.to_wire()))
            .with_replica_id(question.replica.id.to_wire())
            .with_max_bytes(i32::try_from(question.bytes_max).unwrap_or(i32::MAX))
            .with_topics(vec![topic])
    }

    fn read(&self, place: &Place, _version: i16) -> Result<Asked, ErrorCode> {
        check_cluster(self.cluster_id.as_ref(), place)?;
        let asked =
            only_partition!(self.topics, name, partition).ok_or(ErrorCode::UnknownTopicOrPartition)?;
        let position = u64::try_from(asked.position).map_err(|_| ErrorCode::PositionOutOfRange)?;
        let bytes_max = usize::try_from(self.max_bytes).unwrap_or(0).min(Limits::METADATA_FETCH_BYTES);
        let id = SnapshotId {
            end: Offset(asked.snapshot_id.end_offset),
            epoch: LeaderEpoch(asked.snapshot_id.epoch),
        };
        let request = Request::FetchSnapshot(quorum::FetchSnapshotRequest {
            replica: key(self.replica_id, &asked.replica_directory_id),
            epoch: LeaderEpoch(asked.current_leader_epoch),
            id,
            position,
            bytes_max: bytes_max as u32,
        });
        Ok(Asked { request, bytes_max, leader: None })
    }

    fn refuse(error: ErrorCode) -> FetchSnapshotResponse {
        FetchSnapshotResponse::default().with_error_code(error.code())
    }

    fn answer(answer: Answer, version: i16) -> Option<FetchSnapshotResponse> {
        let Response::FetchSnapshot(piece) = answer.response else { return None };
        let id = WireSnapshotId::default().with_end_offset(piece.id.end.0).with_epoch(piece.id.epoch.0);
        let leader = LeaderIdAndEpoch::default()
            .with_leader_id(leader_id(&piece.current))
            .with_leader_epoch(piece.current.epoch.0);
        let partition = PartitionSnapshot::default()
            .with_error_code(piece.error.code())
            .with_snapshot_id(id)
            .with_current_leader(leader)
            .with_size(i64::try_from(piece.size).unwrap_or(i64::MAX))
            .with_position(i64::try_from(piece.position).unwrap_or(i64::MAX))
            .with_unaligned_records(answer.bytes);
        let topic = TopicSnapshot::default().with_name(topic_name()).with_partitions(vec![partition]);
        let leader = answer.leader.filter(|_| version >= 1);
        Some(
            FetchSnapshotResponse::default()
                .with_topics(vec![topic])
                .with_node_endpoints(node_endpoints!(fetch_snapshot_response, leader)),
        )
    }

    fn hear(response: FetchSnapshotResponse) -> Option<Answer> {
        let heard = only_partition!(response.topics, name, index).filter(|_| response.error_code == 0)?;
        let current = current(heard.current_leader.leader_id, heard.current_leader.leader_epoch);
        let bytes: Bytes = heard.unaligned_records.clone();
        let id = SnapshotId {
            end: Offset(heard.snapshot_id.end_offset),
            epoch: LeaderEpoch(heard.snapshot_id.epoch),
        };
        let piece = quorum::FetchSnapshotResponse {
            error: ErrorCode::told(heard.error_code),
            current,
            id,
            size: u64::try_from(heard.size).ok()?,
            position: u64::try_from(heard.position).ok()?,
            length: u32::try_from(bytes.len()).ok()?,
        };
        let leader = leader_address!(response.node_endpoints, current.leader);
        Some(Answer { response: Response::FetchSnapshot(piece), bytes, leader })
    }
}
