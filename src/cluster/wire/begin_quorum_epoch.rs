//! BeginQuorumEpoch: version 1 names the voter that is told, and says where the leader is.

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, NodeId};
use protocol::ToWire;
use protocol::messages::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, begin_quorum_epoch_request,
    begin_quorum_epoch_response,
};
use quorum::{EpochResponse, Request, Response};

use super::{
    Answer, Asked, Place, QuorumApi, asking_leader, check_cluster, current, leader_address, leader_endpoints,
    leader_id, node_endpoints, only_partition, topic_name, voter,
};

impl QuorumApi for BeginQuorumEpochRequest {
    type Question = quorum::BeginQuorumEpochRequest;

    fn ask(question: &quorum::BeginQuorumEpochRequest, place: &Place, version: i16) -> Self {
        let partition = begin_quorum_epoch_request::PartitionData::default()
            .with_leader_id(question.leader.to_wire())
            .with_leader_epoch(question.epoch.0);
        let (partition, voter_id) = if version >= 1 {
            let partition = partition.with_voter_directory_id(question.voter.directory.to_wire());
            (partition, question.voter.id.to_wire())
        } else {
            (partition, Self::default().voter_id)
        };
        let topic = begin_quorum_epoch_request::TopicData::default()
            .with_topic_name(topic_name())
            .with_partitions(vec![partition]);
        Self::default()
            .with_cluster_id(Some(place.cluster_id.to_wire()))
            .with_voter_id(voter_id)
            .with_topics(vec![topic])
            .with_leader_endpoints(leader_endpoints!(begin_quorum_epoch_request, place, version))
    }

    fn read(&self, place: &Place, _version: i16) -> Result<Asked, ErrorCode> {
        check_cluster(self.cluster_id.as_ref(), place)?;
        let asked =
            only_partition!(self.topics, topic_name, partition_index).ok_or(ErrorCode::InvalidRequest)?;
        let leader = NodeId(asked.leader_id.0);
        let request = Request::BeginQuorumEpoch(quorum::BeginQuorumEpochRequest {
            epoch: LeaderEpoch(asked.leader_epoch),
            leader,
            voter: voter(self.voter_id, &asked.voter_directory_id, place),
        });
        let leader = asking_leader!(self.leader_endpoints, place, leader);
        Ok(Asked { request, bytes_max: 0, leader })
    }

    fn refuse(error: ErrorCode) -> BeginQuorumEpochResponse {
        BeginQuorumEpochResponse::default().with_error_code(error.code())
    }

    fn answer(answer: Answer, version: i16) -> Option<BeginQuorumEpochResponse> {
        let Response::BeginQuorumEpoch(epoch) = answer.response else { return None };
        let partition = begin_quorum_epoch_response::PartitionData::default()
            .with_error_code(epoch.error.code())
            .with_leader_id(leader_id(&epoch.current))
            .with_leader_epoch(epoch.current.epoch.0);
        let topic = begin_quorum_epoch_response::TopicData::default()
            .with_topic_name(topic_name())
            .with_partitions(vec![partition]);
        let leader = answer.leader.filter(|_| version >= 1);
        Some(
            BeginQuorumEpochResponse::default()
                .with_topics(vec![topic])
                .with_node_endpoints(node_endpoints!(begin_quorum_epoch_response, leader)),
        )
    }

    fn hear(response: BeginQuorumEpochResponse) -> Option<Answer> {
        let heard = only_partition!(response.topics, topic_name, partition_index)
            .filter(|_| response.error_code == 0)?;
        let current = current(heard.leader_id, heard.leader_epoch);
        let epoch = EpochResponse { error: ErrorCode::told(heard.error_code), current };
        let leader = leader_address!(response.node_endpoints, current.leader);
        Some(Answer { response: Response::BeginQuorumEpoch(epoch), bytes: Bytes::new(), leader })
    }
}
