//! The only list of APIs: versions, where each runs, how it is throttled, and its handler.
//!
//! ApiVersions, the README's support table, metric labels and tests come from it.

use bytes::Bytes;
use env::BoxFuture;
use protocol::RequestHeader;

use crate::{Node, Outcome, Session, Side, adapter, forwarding};

/// One API.
pub struct Row {
    /// Its number on the wire.
    pub key: i16,
    /// Kafka's name of it.
    pub name: &'static str,
    /// The oldest version served.
    pub min: i16,
    /// The newest version served.
    pub max: i16,
    /// Where it runs.
    pub runs: Runs,
    /// Which quota it counts against.
    pub throttle: Throttle,
    pub(crate) call: Call,
}

type Call = for<'a> fn(&'a Node, &'a mut Session, RequestHeader, Bytes) -> BoxFuture<'a, Outcome>;

/// Where an API runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Runs {
    /// On the node that got it, which may ask the controller for something.
    Here,
    /// On the active controller; brokers pass it on as it came.
    Controller,
}

/// What a request counts against (KIP-13, 124, 599).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttle {
    /// Bytes produced.
    Produce,
    /// Bytes fetched.
    Fetch,
    /// Share of time on the request threads.
    Request,
    /// Topic mutations.
    Mutation,
    /// Never throttled.
    Exempt,
}

impl Row {
    /// Whether this version is served.
    pub fn serves(&self, version: i16) -> bool {
        (self.min..=self.max).contains(&version)
    }

    /// Whether Kafka serves it on listeners of that side.
    pub fn is_served_on(&self, side: Side) -> bool {
        protocol::tables::api(self.key).is_some_and(|api| match side {
            Side::Broker => api.broker,
            Side::Controller => api.controller,
        })
    }

    /// The lowest version that ApiVersions says. Produce says 0, though it serves from 3: older librdkafka
    /// takes a missing Produce v0 for a broker without message format v2 (KAFKA-18659).
    pub(crate) fn advertised_min(&self) -> i16 {
        if self.key == 0 { 0 } else { self.min }
    }
}

/// The row of an API on a side, if it is served there.
pub(crate) fn row(key: i16, side: Side) -> Option<&'static Row> {
    let table = if (key, side) == (METADATA_FETCH[0].key, Side::Controller) { METADATA_FETCH } else { TABLE };
    let found = table.binary_search_by_key(&key, |row| row.key).ok().map(|at| &table[at]);
    found.filter(|row| row.is_served_on(side))
}

macro_rules! rows {
    ($($key:literal $name:ident $min:literal ..= $max:literal $runs:ident $throttle:ident $module:ident,)*) => {
        &[$(
            Row {
                key: $key,
                name: stringify!($name),
                min: $min,
                max: $max,
                runs: Runs::$runs,
                throttle: Throttle::$throttle,
                call: |node, session, header, body| Box::pin(async move {
                    let as_it_came = matches!(Runs::$runs, Runs::Controller).then(|| body.clone());
                    match adapter::decode(&header, body) {
                        Ok(request) => {
                            if let Some(body) = as_it_came
                                && let Some(answered) = forwarding::forward(node, session, &header, body).await
                            {
                                return answered;
                            }
                            let version = header.api_version;
                            let reply = crate::$module::handle(node, session, request, version).await;
                            adapter::outcome(header, reply)
                        }
                        Err(close) => close,
                    }
                }),
            },
        )*]
    };
}

/// A controller's Fetch is another one: of the metadata log alone, without sessions.
const METADATA_FETCH: &[Row] = rows! { 1 Fetch 4..=18 Here Exempt fetch_metadata, };

/// All APIs in the order of their keys.
pub const TABLE: &[Row] = rows! {
    0 Produce 3..=13 Here Produce produce,
    1 Fetch 4..=18 Here Fetch fetch,
    2 ListOffsets 1..=11 Here Request list_offsets,
    3 Metadata 0..=13 Here Request metadata,
    8 OffsetCommit 2..=10 Here Request offset_commit,
    9 OffsetFetch 1..=10 Here Request offset_fetch,
    10 FindCoordinator 0..=6 Here Request find_coordinator,
    11 JoinGroup 0..=9 Here Request join_group,
    12 Heartbeat 0..=4 Here Request heartbeat,
    13 LeaveGroup 0..=5 Here Request leave_group,
    14 SyncGroup 0..=5 Here Request sync_group,
    15 DescribeGroups 0..=6 Here Request describe_groups,
    16 ListGroups 0..=5 Here Request list_groups,
    18 ApiVersions 0..=5 Here Exempt api_versions,
    19 CreateTopics 2..=7 Controller Mutation create_topics,
    20 DeleteTopics 1..=6 Controller Mutation delete_topics,
    22 InitProducerId 0..=5 Here Request init_producer_id,
    23 OffsetForLeaderEpoch 2..=4 Here Request offset_for_leader_epoch,
    32 DescribeConfigs 1..=4 Here Request describe_configs,
    33 AlterConfigs 0..=2 Here Request alter_configs,
    35 DescribeLogDirs 1..=5 Here Request describe_log_dirs,
    37 CreatePartitions 0..=3 Controller Mutation create_partitions,
    42 DeleteGroups 0..=3 Here Request delete_groups,
    43 ElectLeaders 0..=2 Controller Request elect_leaders,
    44 IncrementalAlterConfigs 0..=1 Here Request incremental_alter_configs,
    45 AlterPartitionReassignments 0..=1 Controller Request alter_partition_reassignments,
    46 ListPartitionReassignments 0..=0 Controller Request list_partition_reassignments,
    47 OffsetDelete 0..=0 Here Request offset_delete,
    52 Vote 0..=2 Here Exempt vote,
    53 BeginQuorumEpoch 0..=1 Here Exempt begin_quorum_epoch,
    54 EndQuorumEpoch 0..=1 Here Exempt end_quorum_epoch,
    55 DescribeQuorum 0..=2 Controller Request describe_quorum,
    56 AlterPartition 2..=3 Controller Exempt alter_partition,
    59 FetchSnapshot 0..=1 Here Exempt fetch_snapshot,
    60 DescribeCluster 0..=2 Here Request describe_cluster,
    62 BrokerRegistration 0..=4 Controller Exempt broker_registration,
    63 BrokerHeartbeat 0..=2 Controller Exempt broker_heartbeat,
    64 UnregisterBroker 0..=0 Controller Request unregister_broker,
    67 AllocateProducerIds 0..=0 Controller Exempt allocate_producer_ids,
    70 ControllerRegistration 0..=0 Controller Exempt controller_registration,
    73 AssignReplicasToDirs 0..=0 Controller Exempt assign_replicas_to_dirs,
    74 ListConfigResources 0..=1 Here Request list_config_resources,
    75 DescribeTopicPartitions 0..=0 Here Request describe_topic_partitions,
};
