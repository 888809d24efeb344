//! Answering the other nodes of the quorum: their questions go to the driver, and are answered when it says so.
//!
//! Kafka: `ControllerApis.handleVote` and its kin, `KafkaRaftClient.handleRequest`.

use std::time::Duration;

use model::{ErrorCode, NodeId};
use protocol::messages::{
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, DescribeClusterRequest, DescribeClusterResponse,
    EndQuorumEpochRequest, EndQuorumEpochResponse, FetchRequest, FetchResponse, FetchSnapshotRequest,
    FetchSnapshotResponse, VoteRequest, VoteResponse,
};
use quorum::{Introduction, Voter};
use tokio::sync::oneshot;

use crate::Cluster;
use crate::driver::Command;
use crate::wire::{Asked, QuorumApi, introduction};

/// More than the longest time that a leader holds a Fetch back.
const ANSWER_WITHIN: Duration = Duration::from_secs(5);

impl Cluster {
    /// A candidate asks for this node's vote.
    pub async fn handle_vote(&self, request: VoteRequest, version: i16) -> VoteResponse {
        self.answer_peer(request, version).await
    }

    /// A leader makes itself known.
    pub async fn handle_begin_quorum_epoch(
        &self,
        request: BeginQuorumEpochRequest,
        version: i16,
    ) -> BeginQuorumEpochResponse {
        self.answer_peer(request, version).await
    }

    /// A leader steps down.
    pub async fn handle_end_quorum_epoch(
        &self,
        request: EndQuorumEpochRequest,
        version: i16,
    ) -> EndQuorumEpochResponse {
        self.answer_peer(request, version).await
    }

    /// A replica fetches the metadata log.
    pub async fn handle_fetch(&self, request: FetchRequest, version: i16) -> FetchResponse {
        self.answer_peer(request, version).await
    }

    /// A replica fetches a snapshot of the metadata.
    pub async fn handle_fetch_snapshot(
        &self,
        request: FetchSnapshotRequest,
        version: i16,
    ) -> FetchSnapshotResponse {
        self.answer_peer(request, version).await
    }

    /// The controllers; and to another Ottla node, who this one is.
    pub fn describe_controllers(&self, request: &DescribeClusterRequest) -> DescribeClusterResponse {
        let view = self.view.load();
        let voter = Voter { endpoints: self.place.endpoints.clone(), ..Voter::new(self.place.me) };
        let cluster = quorum::Cluster { id: self.place.cluster_id.clone(), voters: view.voters.clone() };
        introduction::answer(request, &Introduction { voter, cluster: Some(cluster) }, view.leader)
    }

    /// Who leads the quorum, as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        self.view.load().leader
    }

    async fn answer_peer<R: QuorumApi>(&self, request: R, version: i16) -> R::Response {
        let answered = match request.read(&self.place, version) {
            Ok(asked) => self.ask_driver(asked).await,
            Err(error) => Err(error),
        };
        let response =
            answered.and_then(|answer| R::answer(answer, version).ok_or(ErrorCode::UnknownServerError));
        response.unwrap_or_else(R::refuse)
    }

    async fn ask_driver(&self, asked: Asked) -> Result<crate::wire::Answer, ErrorCode> {
        let (give, take) = oneshot::channel();
        let answer = async {
            self.mailbox.send(Command::Answer(asked, give)).await.ok()?;
            take.await.ok()
        };
        let until = self.clock.now().plus(ANSWER_WITHIN);
        match env::timeout(&*self.clock, until, answer).await {
            Some(Some(answer)) => Ok(answer),
            Some(None) => Err(ErrorCode::NotLeaderOrFollower),
            None => Err(ErrorCode::RequestTimedOut),
        }
    }
}
