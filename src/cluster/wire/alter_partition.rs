//! AlterPartition: a leader asks for another ISR.
//!
//! Version 2 names the members of the ISR; version 3 each with the epoch of the run that was seen to be in sync.
//!
//! Kafka: `ControllerApis.handleAlterPartitionRequest`, `AlterPartitionManager`; KIP-497, 841, 903.

use controller::{AlterPartition, AlteredPartition, ConnectionId, Controller, Decision, NewIsr};
use metadata::LeaderRecovery;
use model::{BrokerEpoch, ErrorCode, Instant, LeaderEpoch, NodeId, PartitionEpoch, TopicIdPartition, Uuid};
use protocol::messages::alter_partition_request::{BrokerState, PartitionData, TopicData};
use protocol::messages::{AlterPartitionRequest, AlterPartitionResponse, alter_partition_response};
use protocol::{FromWire, ToWire};
use tracing::debug;

use super::ControllerApi;

/// The epoch of a run is not known, or not to be checked.
const NO_EPOCH: i64 = -1;

/// An AlterPartition, and where it came in: one that was given up with its connection must not be carried out after the
/// next one.
pub(crate) struct AskedIsrs {
    pub(crate) command: AlterPartition,
    pub(crate) connection: ConnectionId,
}

/// What became of a partition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IsrAnswer {
    pub(crate) of: TopicIdPartition,
    pub(crate) result: Result<IsrState, ErrorCode>,
}

/// The leader and the ISR that the controller has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IsrState {
    pub(crate) leader: NodeId,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) isr: Vec<NodeId>,
    pub(crate) recovery: LeaderRecovery,
    pub(crate) partition_epoch: PartitionEpoch,
}

impl ControllerApi for AskedIsrs {
    type Request = AlterPartitionRequest;
    type Reply = Vec<IsrAnswer>;

    fn decide(self, controller: &mut Controller, _now: Instant) -> Decision<Result<Self::Reply, ErrorCode>> {
        let AlterPartition { broker, broker_epoch, .. } = self.command;
        if !controller.takes_changes_from(broker, broker_epoch, self.connection) {
            return Decision { records: Vec::new(), reply: Err(ErrorCode::NotController) };
        }
        let Decision { records, reply } = controller.alter_partition(&self.command);
        let reply = reply.map(|altered| altered.into_iter().map(answer_of).collect()).map_err(|error| {
            debug!(broker_id = broker.0, %error, "an AlterPartition was refused");
            ErrorCode::from(&error)
        });
        Decision { records, reply }
    }

    fn ask(self, version: i16) -> Self::Request {
        let AlterPartition { broker, broker_epoch, partitions } = self.command;
        let by_topic = partitions.chunk_by(|a, b| a.topic == b.topic).map(|of_topic| {
            let partitions = of_topic.iter().map(|partition| asked_partition(partition, version));
            TopicData::default()
                .with_topic_id(of_topic[0].topic.to_wire())
                .with_partitions(partitions.collect())
        });
        AlterPartitionRequest::default()
            .with_broker_id(broker.to_wire())
            .with_broker_epoch(broker_epoch.0)
            .with_topics(by_topic.collect())
    }

    fn read(request: &Self::Request, connection: ConnectionId) -> Result<Self, ErrorCode> {
        let mut partitions = Vec::new();
        for topic in &request.topics {
            for partition in &topic.partitions {
                partitions.push(new_isr(Uuid::from_wire(&topic.topic_id), partition)?);
            }
        }
        let (broker, broker_epoch) =
            (NodeId::from_wire(&request.broker_id), BrokerEpoch(request.broker_epoch));
        Ok(Self { command: AlterPartition { broker, broker_epoch, partitions }, connection })
    }

    fn answer(result: Result<Self::Reply, ErrorCode>) -> AlterPartitionResponse {
        let answers = match result {
            Ok(answers) => answers,
            Err(error) => return AlterPartitionResponse::default().with_error_code(error.code()),
        };
        let by_topic = answers.chunk_by(|a, b| a.of.topic_id == b.of.topic_id).map(|of_topic| {
            alter_partition_response::TopicData::default()
                .with_topic_id(of_topic[0].of.topic_id.to_wire())
                .with_partitions(of_topic.iter().map(answered_partition).collect())
        });
        AlterPartitionResponse::default().with_topics(by_topic.collect())
    }

    fn hear(response: AlterPartitionResponse) -> Result<Self::Reply, ErrorCode> {
        match ErrorCode::told(response.error_code) {
            ErrorCode::None => {}
            error => return Err(error),
        }
        let answers = response.topics.iter().flat_map(|topic| {
            let topic_id = Uuid::from_wire(&topic.topic_id);
            topic.partitions.iter().map(move |partition| IsrAnswer {
                of: TopicIdPartition { topic_id, partition: partition.partition_index },
                result: heard(partition),
            })
        });
        Ok(answers.collect())
    }
}

fn answer_of(altered: AlteredPartition) -> IsrAnswer {
    let result = altered.result.map(|partition| IsrState {
        leader: partition.leader,
        leader_epoch: partition.leader_epoch,
        isr: partition.isr,
        recovery: partition.recovery,
        partition_epoch: partition.partition_epoch,
    });
    let of = TopicIdPartition { topic_id: altered.topic, partition: altered.partition };
    IsrAnswer { of, result: result.map_err(ErrorCode::from) }
}

fn asked_partition(wanted: &NewIsr, version: i16) -> PartitionData {
    let partition = PartitionData::default()
        .with_partition_index(wanted.partition)
        .with_leader_epoch(wanted.leader_epoch.0)
        .with_partition_epoch(wanted.partition_epoch.0)
        .with_leader_recovery_state(wanted.recovery as i8);
    if version < 3 {
        return partition.with_new_isr(wanted.isr.iter().map(|(node, _)| node.to_wire()).collect());
    }
    let member = |(node, epoch): &(NodeId, Option<BrokerEpoch>)| {
        BrokerState::default()
            .with_broker_id(node.to_wire())
            .with_broker_epoch(epoch.map_or(NO_EPOCH, |epoch| epoch.0))
    };
    partition.with_new_isr_with_epochs(wanted.isr.iter().map(member).collect())
}

fn new_isr(topic: Uuid, asked: &PartitionData) -> Result<NewIsr, ErrorCode> {
    let without_epochs = asked.new_isr.iter().map(|node| (NodeId::from_wire(node), None));
    let with_epochs = asked.new_isr_with_epochs.iter().map(|member| {
        let epoch = member.broker_epoch;
        (NodeId::from_wire(&member.broker_id), (epoch >= 0).then_some(BrokerEpoch(epoch)))
    });
    Ok(NewIsr {
        topic,
        partition: asked.partition_index,
        leader_epoch: LeaderEpoch(asked.leader_epoch),
        partition_epoch: PartitionEpoch(asked.partition_epoch),
        isr: without_epochs.chain(with_epochs).collect(),
        recovery: recovery(asked.leader_recovery_state)?,
    })
}

fn answered_partition(answer: &IsrAnswer) -> alter_partition_response::PartitionData {
    let partition =
        alter_partition_response::PartitionData::default().with_partition_index(answer.of.partition);
    match &answer.result {
        Ok(state) => partition
            .with_leader_id(state.leader.to_wire())
            .with_leader_epoch(state.leader_epoch.0)
            .with_isr(state.isr.iter().map(ToWire::to_wire).collect())
            .with_leader_recovery_state(state.recovery as i8)
            .with_partition_epoch(state.partition_epoch.0),
        Err(error) => partition.with_error_code(error.code()),
    }
}

fn heard(partition: &alter_partition_response::PartitionData) -> Result<IsrState, ErrorCode> {
    match ErrorCode::told(partition.error_code) {
        ErrorCode::None => Ok(IsrState {
            leader: NodeId::from_wire(&partition.leader_id),
            leader_epoch: LeaderEpoch(partition.leader_epoch),
            isr: partition.isr.iter().map(NodeId::from_wire).collect(),
            recovery: recovery(partition.leader_recovery_state)?,
            partition_epoch: PartitionEpoch(partition.partition_epoch),
        }),
        error => Err(error),
    }
}

fn recovery(state: i8) -> Result<LeaderRecovery, ErrorCode> {
    match state {
        0 => Ok(LeaderRecovery::Recovered),
        1 => Ok(LeaderRecovery::Recovering),
        _ => Err(ErrorCode::InvalidRequest),
    }
}
