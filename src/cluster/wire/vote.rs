//! Vote: version 1 names directories, 2 has pre-votes.

use bytes::Bytes;
use model::{ErrorCode, LeaderEpoch, Offset};
use protocol::ToWire;
use protocol::messages::{VoteRequest, VoteResponse, vote_request, vote_response};
use quorum::{EpochEnd, Request, Response};

use super::{
    Answer, Asked, Place, QuorumApi, check_cluster, current, key, leader_address, leader_id, node_endpoints,
    only_partition, topic_name, voter,
};

impl QuorumApi for VoteRequest {
    type Question = quorum::VoteRequest;

    fn ask(question: &quorum::VoteRequest, place: &Place, version: i16) -> Self {
        let partition = vote_request::PartitionData::default()
            .with_replica_epoch(question.epoch.0)
            .with_replica_id(question.candidate.id.to_wire())
            .with_last_offset_epoch(question.log_end.epoch.0)
            .with_last_offset(question.log_end.end.0)
            .with_pre_vote(question.pre_vote);
        let (partition, voter_id) = if version >= 1 {
            let partition = partition
                .with_replica_directory_id(question.candidate.directory.to_wire())
                .with_voter_directory_id(question.voter.directory.to_wire());
            (partition, question.voter.id.to_wire())
        } else {
            (partition, Self::default().voter_id)
        };
        let topic =
            vote_request::TopicData::default().with_topic_name(topic_name()).with_partitions(vec![partition]);
        Self::default()
            .with_cluster_id(Some(place.cluster_id.to_wire()))
            .with_voter_id(voter_id)
            .with_topics(vec![topic])
    }

    fn read(&self, place: &Place, _version: i16) -> Result<Asked, ErrorCode> {
        check_cluster(self.cluster_id.as_ref(), place)?;
        let asked =
            only_partition!(self.topics, topic_name, partition_index).ok_or(ErrorCode::InvalidRequest)?;
        let log_end =
            EpochEnd { epoch: LeaderEpoch(asked.last_offset_epoch), end: Offset(asked.last_offset) };
        let request = Request::Vote(quorum::VoteRequest {
            epoch: LeaderEpoch(asked.replica_epoch),
            candidate: key(asked.replica_id, &asked.replica_directory_id),
            voter: voter(self.voter_id, &asked.voter_directory_id, place),
            log_end,
            pre_vote: asked.pre_vote,
        });
        Ok(Asked { request, bytes_max: 0, leader: None })
    }

    fn refuse(error: ErrorCode) -> VoteResponse {
        VoteResponse::default().with_error_code(error.code())
    }

    fn answer(answer: Answer, version: i16) -> Option<VoteResponse> {
        let Response::Vote(vote) = answer.response else { return None };
        let partition = vote_response::PartitionData::default()
            .with_error_code(vote.error.code())
            .with_leader_id(leader_id(&vote.current))
            .with_leader_epoch(vote.current.epoch.0)
            .with_vote_granted(vote.granted);
        let topic = vote_response::TopicData::default()
            .with_topic_name(topic_name())
            .with_partitions(vec![partition]);
        let leader = answer.leader.filter(|_| version >= 1);
        Some(
            VoteResponse::default()
                .with_topics(vec![topic])
                .with_node_endpoints(node_endpoints!(vote_response, leader)),
        )
    }

    fn hear(response: VoteResponse) -> Option<Answer> {
        let heard = only_partition!(response.topics, topic_name, partition_index)
            .filter(|_| response.error_code == 0)?;
        let current = current(heard.leader_id, heard.leader_epoch);
        let vote = quorum::VoteResponse {
            error: ErrorCode::told(heard.error_code),
            current,
            granted: heard.vote_granted,
        };
        let leader = leader_address!(response.node_endpoints, current.leader);
        Some(Answer { response: Response::Vote(vote), bytes: Bytes::new(), leader })
    }
}
