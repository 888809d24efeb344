//! What a follower asks its leader, as Kafka's messages, and what it hears.
//!
//! They stand in this room because a message says more than the machine does: sessions, registrations, the bytes of
//! records. A Fetch names topics by their ids, so its answer is never about a topic that came after under the same name;
//! ListOffsets has only the name, and the leader epoch.
//!
//! Invariants: what a leader says of a partition that was not asked for is not heard; its numbers are handed on as they
//! came, for the machine checks them.
//!
//! Kafka: `RemoteLeaderEndPoint`; KIP-227, 320, 516, 595, 903.

use std::time::Duration;

use model::{BrokerEpoch, ErrorCode, LeaderEpoch, NodeId, Offset, TopicIdPartition, TopicPartition, Uuid};
use protocol::messages::fetch_request::{FetchPartition, FetchTopic, ForgottenTopic, ReplicaState};
use protocol::messages::fetch_response::{EpochEndOffset, PartitionData};
use protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use protocol::messages::{FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse, TopicName};
use protocol::{FromWire, StrBytes, ToWire};
use replica::{EpochEnd, FetchState};

use crate::fetch_session::SessionRequest;
use crate::partition::Fetched;

/// `ReplicaState` came with this version; before, the replica has a field of its own, and its registration none.
const REPLICA_STATE_VERSION_MIN: i16 = 15;

/// How much is asked for at once, and how long it may take.
#[derive(Clone, Debug)]
pub struct FetchConfig {
    /// `replica.fetch.max.bytes`: of one partition; a first batch that is larger comes whole.
    pub partition_bytes_max: i32,
    /// `replica.fetch.response.max.bytes`: of all.
    pub bytes_max: i32,
    /// `replica.fetch.min.bytes`: a leader that has less waits for more.
    pub bytes_min: i32,
    /// `replica.fetch.wait.max.ms`: so long.
    pub wait_max: Duration,
    /// `replica.socket.timeout.ms`: the patience with a leader that does not answer.
    pub patience: Duration,
}

impl Default for FetchConfig {
    fn default() -> Self {
        Self {
            partition_bytes_max: 1 << 20,
            bytes_max: 10 << 20,
            bytes_min: 1,
            wait_max: Duration::from_millis(500),
            patience: Duration::from_secs(30),
        }
    }
}

/// Who asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Follower {
    pub(crate) id: NodeId,
    pub(crate) broker_epoch: BrokerEpoch,
}

pub(crate) fn fetch_request(
    follower: Follower,
    session: &SessionRequest,
    config: &FetchConfig,
    version: i16,
) -> FetchRequest {
    let request = FetchRequest::default()
        .with_max_wait_ms(config.wait_max.as_millis() as i32)
        .with_min_bytes(config.bytes_min)
        .with_max_bytes(config.bytes_max)
        .with_session_id(session.session_id)
        .with_session_epoch(session.session_epoch)
        .with_topics(topics(&session.named, config))
        .with_forgotten_topics_data(forgotten(&session.forgotten));
    let id = follower.id.to_wire();
    if version < REPLICA_STATE_VERSION_MIN {
        return request.with_replica_id(id);
    }
    let state = ReplicaState::default().with_replica_id(id).with_replica_epoch(follower.broker_epoch.0);
    request.with_replica_state(state)
}

fn topics(named: &[(TopicIdPartition, FetchState)], config: &FetchConfig) -> Vec<FetchTopic> {
    let topics = named.chunk_by(|(a, _), (b, _)| a.topic_id == b.topic_id);
    let topic = |partitions: &[(TopicIdPartition, FetchState)]| {
        let id = partitions[0].0.topic_id;
        let partitions = partitions.iter().map(|(id, state)| partition(*id, state, config)).collect();
        FetchTopic::default().with_topic_id(id.to_wire()).with_partitions(partitions)
    };
    topics.map(topic).collect()
}

fn partition(id: TopicIdPartition, state: &FetchState, config: &FetchConfig) -> FetchPartition {
    FetchPartition::default()
        .with_partition(id.partition)
        .with_current_leader_epoch(state.leader_epoch.0)
        .with_fetch_offset(state.offset.0)
        .with_last_fetched_epoch(state.last_fetched_epoch.unwrap_or(LeaderEpoch::NONE).0)
        .with_log_start_offset(state.log_start.0)
        .with_partition_max_bytes(config.partition_bytes_max)
}

fn forgotten(ids: &[TopicIdPartition]) -> Vec<ForgottenTopic> {
    let topics = ids.chunk_by(|a, b| a.topic_id == b.topic_id);
    let topic = |ids: &[TopicIdPartition]| {
        ForgottenTopic::default()
            .with_topic_id(ids[0].topic_id.to_wire())
            .with_partitions(ids.iter().map(|id| id.partition).collect())
    };
    topics.map(topic).collect()
}

/// What a leader says of each partition that it names.
pub(crate) fn fetched(response: FetchResponse) -> Vec<(TopicIdPartition, Fetched)> {
    let topics = response.responses.into_iter();
    let partitions = topics.flat_map(|topic| {
        let topic_id = Uuid::from_wire(&topic.topic_id);
        topic.partitions.into_iter().map(move |heard| {
            (TopicIdPartition { topic_id, partition: heard.partition_index }, fetched_partition(heard))
        })
    });
    partitions.collect()
}

fn fetched_partition(heard: PartitionData) -> Fetched {
    match ErrorCode::told(heard.error_code) {
        ErrorCode::None => Fetched::new(
            (Offset(heard.high_watermark), Offset(heard.log_start_offset)),
            diverging(&heard.diverging_epoch),
            heard.records.unwrap_or_default(),
        ),
        error => Fetched::failed(error),
    }
}

/// Kafka says none by -1 and -1; what cannot be is none too.
fn diverging(wire: &EpochEndOffset) -> Option<EpochEnd> {
    let is_one = wire.epoch >= 0 && wire.end_offset >= 0;
    is_one.then_some(EpochEnd { epoch: LeaderEpoch(wire.epoch), end: Offset(wire.end_offset) })
}

/// An end of a leader's log, as ListOffsets names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogEndpoint {
    Latest = -1,
    Earliest = -2,
}

pub(crate) fn list_offsets_request(
    follower: Follower,
    partition: &TopicPartition,
    leader_epoch: LeaderEpoch,
    end: LogEndpoint,
) -> ListOffsetsRequest {
    let wanted = ListOffsetsPartition::default()
        .with_partition_index(partition.partition)
        .with_current_leader_epoch(leader_epoch.0)
        .with_timestamp(end as i64);
    let name = TopicName(StrBytes::from_string(partition.topic.to_string()));
    let topic = ListOffsetsTopic::default().with_name(name).with_partitions(vec![wanted]);
    ListOffsetsRequest::default().with_replica_id(follower.id.to_wire()).with_topics(vec![topic])
}

/// The offset that was asked for; none where the leader refused.
pub(crate) fn listed_offset(response: &ListOffsetsResponse) -> Option<Offset> {
    let [topic] = response.topics.as_slice() else { return None };
    let [heard] = topic.partitions.as_slice() else { return None };
    (heard.error_code == 0 && heard.offset >= 0).then_some(Offset(heard.offset))
}
