//! AssignReplicasToDirs: a broker says in which of its log folders replicas lie.
//!
//! Kafka: `ControllerApis.handleAssignReplicasToDirs`, `AssignmentsManager`; KIP-858.

use controller::{AssignReplicasToDirs, AssignedReplica, ConnectionId, Controller, Decision};
use model::{BrokerEpoch, DirectoryId, ErrorCode, Instant, NodeId, TopicIdPartition, Uuid};
use protocol::messages::assign_replicas_to_dirs_request as request;
use protocol::messages::assign_replicas_to_dirs_response as response;
use protocol::messages::{AssignReplicasToDirsRequest, AssignReplicasToDirsResponse};
use protocol::{FromWire, ToWire};
use tracing::debug;

use super::ControllerApi;

/// What became of a replica.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PlaceAnswer {
    pub(crate) directory: DirectoryId,
    pub(crate) of: TopicIdPartition,
    pub(crate) error: ErrorCode,
}

impl ControllerApi for AssignReplicasToDirs {
    type Request = AssignReplicasToDirsRequest;
    type Reply = Vec<PlaceAnswer>;

    fn decide(self, controller: &mut Controller, _now: Instant) -> Decision<Result<Self::Reply, ErrorCode>> {
        let Decision { records, reply } = controller.assign_replicas_to_dirs(&self);
        let reply = reply.map(|placed| placed.into_iter().map(answer_of).collect()).map_err(|error| {
            debug!(broker_id = self.broker.0, %error, "an AssignReplicasToDirs was refused");
            ErrorCode::from(&error)
        });
        Decision { records, reply }
    }

    fn ask(self, _version: i16) -> Self::Request {
        let by_directory = self.replicas.chunk_by(|a, b| a.0 == b.0).map(|of_directory| {
            let by_topic = of_directory.chunk_by(|(_, a), (_, b)| a.topic_id == b.topic_id).map(|of_topic| {
                let partition = |(_, of): &(DirectoryId, TopicIdPartition)| {
                    request::PartitionData::default().with_partition_index(of.partition)
                };
                request::TopicData::default()
                    .with_topic_id(of_topic[0].1.topic_id.to_wire())
                    .with_partitions(of_topic.iter().map(partition).collect())
            });
            request::DirectoryData::default()
                .with_id(of_directory[0].0.to_wire())
                .with_topics(by_topic.collect())
        });
        AssignReplicasToDirsRequest::default()
            .with_broker_id(self.broker.to_wire())
            .with_broker_epoch(self.broker_epoch.0)
            .with_directories(by_directory.collect())
    }

    fn read(request: &Self::Request, _connection: ConnectionId) -> Result<Self, ErrorCode> {
        let mut replicas = Vec::new();
        for directory in &request.directories {
            for topic in &directory.topics {
                let topic_id = Uuid::from_wire(&topic.topic_id);
                replicas.extend(topic.partitions.iter().map(|partition| {
                    let of = TopicIdPartition { topic_id, partition: partition.partition_index };
                    (Uuid::from_wire(&directory.id), of)
                }));
            }
        }
        let broker = NodeId::from_wire(&request.broker_id);
        Ok(Self { broker, broker_epoch: BrokerEpoch(request.broker_epoch), replicas })
    }

    fn answer(result: Result<Self::Reply, ErrorCode>) -> AssignReplicasToDirsResponse {
        let answers = match result {
            Ok(answers) => answers,
            Err(error) => return AssignReplicasToDirsResponse::default().with_error_code(error.code()),
        };
        let by_directory = answers.chunk_by(|a, b| a.directory == b.directory).map(|of_directory| {
            let by_topic = of_directory.chunk_by(|a, b| a.of.topic_id == b.of.topic_id).map(|of_topic| {
                let partition = |answer: &PlaceAnswer| {
                    response::PartitionData::default()
                        .with_partition_index(answer.of.partition)
                        .with_error_code(answer.error.code())
                };
                response::TopicData::default()
                    .with_topic_id(of_topic[0].of.topic_id.to_wire())
                    .with_partitions(of_topic.iter().map(partition).collect())
            });
            response::DirectoryData::default()
                .with_id(of_directory[0].directory.to_wire())
                .with_topics(by_topic.collect())
        });
        AssignReplicasToDirsResponse::default().with_directories(by_directory.collect())
    }

    fn hear(response: AssignReplicasToDirsResponse) -> Result<Self::Reply, ErrorCode> {
        match ErrorCode::told(response.error_code) {
            ErrorCode::None => {}
            error => return Err(error),
        }
        let mut answers = Vec::new();
        for directory in &response.directories {
            for topic in &directory.topics {
                let topic_id = Uuid::from_wire(&topic.topic_id);
                answers.extend(topic.partitions.iter().map(|partition| PlaceAnswer {
                    directory: Uuid::from_wire(&directory.id),
                    of: TopicIdPartition { topic_id, partition: partition.partition_index },
                    error: ErrorCode::told(partition.error_code),
                }));
            }
        }
        Ok(answers)
    }
}

fn answer_of(placed: AssignedReplica) -> PlaceAnswer {
    let error = placed.result.map_or_else(ErrorCode::from, |()| ErrorCode::None);
    PlaceAnswer { directory: placed.directory, of: placed.partition, error }
}
