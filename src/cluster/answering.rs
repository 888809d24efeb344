//! Answering other nodes: questions of the quorum go to the driver and are answered when it says so, those of brokers are
//! the active controller's.
//!
//! Kafka: `ControllerApis`, `KafkaRaftClient.handleRequest`.

use std::time::Duration;

use controller::{AssignReplicasToDirs, ConnectionId, Decision, Heartbeat, Registration};
use model::{BrokerEpoch, ErrorCode, NodeId};
use protocol::Request;
use protocol::messages::{
    AlterPartitionRequest, AlterPartitionResponse, AssignReplicasToDirsRequest, AssignReplicasToDirsResponse,
    BeginQuorumEpochRequest, BeginQuorumEpochResponse, BrokerHeartbeatRequest, BrokerHeartbeatResponse,
    BrokerRegistrationRequest, BrokerRegistrationResponse, DescribeClusterRequest, DescribeClusterResponse,
    EndQuorumEpochRequest, EndQuorumEpochResponse, FetchRequest, FetchResponse, FetchSnapshotRequest,
    FetchSnapshotResponse, VoteRequest, VoteResponse,
};
use quorum::{Introduction, Voter};
use tokio::sync::oneshot;

use crate::Cluster;
use crate::driver::Command;
use crate::wire::alter_partition::AskedIsrs;
use crate::wire::{Asked, ControllerApi, QuorumApi, introduction};

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

    /// A broker registers.
    pub async fn handle_broker_registration(
        &self,
        request: BrokerRegistrationRequest,
        connection: ConnectionId,
    ) -> BrokerRegistrationResponse {
        self.answer_broker::<Registration>(&request, connection).await
    }

    /// A broker says that it lives.
    pub async fn handle_broker_heartbeat(
        &self,
        request: BrokerHeartbeatRequest,
        connection: ConnectionId,
    ) -> BrokerHeartbeatResponse {
        self.answer_broker::<Heartbeat>(&request, connection).await
    }

    /// A broker asks for other ISRs of partitions that it leads.
    pub async fn handle_alter_partition(
        &self,
        request: AlterPartitionRequest,
        connection: ConnectionId,
    ) -> AlterPartitionResponse {
        self.answer_broker::<AskedIsrs>(&request, connection).await
    }

    /// A broker says where its replicas lie.
    pub async fn handle_assign_replicas_to_dirs(
        &self,
        request: AssignReplicasToDirsRequest,
        connection: ConnectionId,
    ) -> AssignReplicasToDirsResponse {
        self.answer_broker::<AssignReplicasToDirs>(&request, connection).await
    }

    /// The connection closed on which a broker's run was heard last.
    pub async fn handle_connection_closed(&self, id: NodeId, epoch: BrokerEpoch, connection: ConnectionId) {
        let note = self.decide_at(move |controller, now| {
            controller.handle_connection_closed(id, epoch, Some(connection), now);
            Decision { records: Vec::new(), reply: () }
        });
        // A controller that is not active any more has nobody to fence.
        let _ = note.await;
    }

    async fn answer_broker<C: ControllerApi>(
        &self,
        request: &C::Request,
        connection: ConnectionId,
    ) -> <C::Request as Request>::Response {
        C::answer(match C::read(request, connection) {
            Ok(command) => {
                let decided = self.decide_at(move |controller, now| command.decide(controller, now)).await;
                decided.unwrap_or_else(|error| Err(error.into()))
            }
            Err(error) => Err(error),
        })
    }

    /// The controllers; and to another Ottla node, who this one is.
    pub fn describe_controllers(&self, request: &DescribeClusterRequest) -> DescribeClusterResponse {
        let view = self.view.borrow();
        let voter = Voter { endpoints: self.place.endpoints.clone(), ..Voter::new(self.place.me) };
        let cluster = quorum::Cluster { id: self.place.cluster_id.clone(), voters: view.voters.clone() };
        introduction::answer(request, &Introduction { voter, cluster: Some(cluster) }, view.leader)
    }

    /// Who leads the quorum, as far as this node knows.
    pub fn leader(&self) -> Option<NodeId> {
        self.view.borrow().leader
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
