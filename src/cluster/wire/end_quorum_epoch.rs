//! EndQuorumEpoch: version 1 names candidates with their directories, and says where the leader is.

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, NodeId, Uuid};
use protocol::ToWire;
use protocol::messages::{
    EndQuorumEpochRequest, EndQuorumEpochResponse, end_quorum_epoch_request, end_quorum_epoch_response,
};
use quorum::{EpochResponse, ReplicaKey, Request, Response};

use super::{
    Answer, Asked, Place, QuorumApi, asking_leader, check_cluster, current, key, leader_address,
    leader_endpoints, leader_id, node_endpoints, only_partition, topic_name,
};

impl QuorumApi for EndQuorumEpochRequest {
    type Question = quorum::EndQuorumEpochRequest;

    fn ask(question: &quorum::EndQuorumEpochRequest, place: &Place, version: i16) -> Self {
        let candidate = |candidate: &ReplicaKey| {
            end_quorum_epoch_request::ReplicaInfo::default()
                .with_candidate_id(candidate.id.to_wire())
                .with_candidate_directory_id(candidate.directory.to_wire())
        };
        let partition = end_quorum_epoch_request::PartitionData::default()
            .with_leader_id(question.leader.to_wire())
            .with_leader_epoch(question.epoch.0);
        let partition = if version >= 1 {
            partition.with_preferred_candidates(question.preferred.iter().map(candidate).collect())
        } else {
            partition.with_preferred_successors(question.preferred.iter().map(|key| key.id.0).collect())
        };
        let topic = end_quorum_epoch_request::TopicData::default()
            .with_topic_name(topic_name())
            .with_partitions(vec![partition]);
        Self::default()
            .with_cluster_id(Some(place.cluster_id.to_wire()))
            .with_topics(vec![topic])
            .with_leader_endpoints(leader_endpoints!(end_quorum_epoch_request, place, version))
    }

    fn read(&self, place: &Place, version: i16) -> Result<Asked, ErrorCode> {
        check_cluster(self.cluster_id.as_ref(), place)?;
        let asked =
            only_partition!(self.topics, topic_name, partition_index).ok_or(ErrorCode::InvalidRequest)?;
        let preferred = if version >= 1 {
            let keys = asked.preferred_candidates.iter();
            keys.map(|each| key(each.candidate_id, &each.candidate_directory_id)).collect()
        } else {
            let ids = asked.preferred_successors.iter();
            ids.map(|id| ReplicaKey::new(NodeId(*id), Uuid::default())).collect()
        };
        let leader = NodeId(asked.leader_id.0);
        let request = Request::EndQuorumEpoch(quorum::EndQuorumEpochRequest {
            epoch: LeaderEpoch(asked.leader_epoch),
            leader,
            preferred,
        });
        let leader = asking_leader!(self.leader_endpoints, place, leader);
        Ok(Asked { request, bytes_max: 0, leader })
    }

    fn refuse(error: ErrorCode) -> EndQuorumEpochResponse {
        EndQuorumEpochResponse::default().with_error_code(error.code())
    }

    fn answer(answer: Answer, version: i16) -> Option<EndQuorumEpochResponse> {
        let Response::EndQuorumEpoch(epoch) = answer.response else { return None };
        let partition = end_quorum_epoch_response::PartitionData::default()
            .with_error_code(epoch.error.code())
            .with_leader_id(leader_id(&epoch.current))
            .with_leader_epoch(epoch.current.epoch.0);
        let topic = end_quorum_epoch_response::TopicData::default()
            .with_topic_name(topic_name())
            .with_partitions(vec![partition]);
        let leader = answer.leader.filter(|_| version >= 1);
        Some(
            EndQuorumEpochResponse::default()
                .with_topics(vec![topic])
                .with_node_endpoints(node_endpoints!(end_quorum_epoch_response, leader)),
        )
    }

    fn hear(response: EndQuorumEpochResponse) -> Option<Answer> {
        let heard = only_partition!(response.topics, topic_name, partition_index)
            .filter(|_| response.error_code == 0)?;
        let current = current(heard.leader_id, heard.leader_epoch);
        let epoch = EpochResponse { error: ErrorCode::told(heard.error_code), current };
        let leader = leader_address!(response.node_endpoints, current.leader);
        Some(Answer { response: Response::EndQuorumEpoch(epoch), bytes: Bytes::new(), leader })
    }
}
