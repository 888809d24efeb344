//! One good request for each API that Ottla serves; `spoil` makes the bad ones of it.
//!
//! A text `$id:TOPIC` stands for that topic's id at the broker, `$batch` for a good record batch, `$new` for a name that
//! no request before has used.

use serde_json::{Value as Json, json};

/// A topic with records that nobody changes.
pub(crate) const READ: &str = "w-read";
/// A topic that is written to.
pub(crate) const WRITE: &str = "w-write";
/// A topic whose configuration changes.
pub(crate) const CONFIG: &str = "w-config";
/// A group with committed offsets and no members.
pub(crate) const GROUP: &str = "w-group";

/// What Kafka never answers, for it loses an exception: there is nothing to compare. A group is stuck after it.
const UNANSWERED: &[(i16, &str)] =
    &[(0, "TopicData.PartitionData.Records=null"), (11, "Protocols=twice"), (33, "Resources=twice")];

/// Whether Kafka answers a request of an API that was spoiled in this way.
pub(crate) fn is_answered(key: i16, how: &str) -> bool {
    !UNANSWERED.contains(&(key, how))
}

/// A good request.
pub(crate) struct Good {
    /// The API.
    pub(crate) key: i16,
    /// What tells it from others of the API.
    pub(crate) name: &'static str,
    /// Its fields of all versions.
    pub(crate) request: Json,
    /// Whether it is spoiled too: not where every form would change the broker.
    pub(crate) is_spoiled: bool,
}

fn good(key: i16, request: Json) -> Good {
    Good { key, name: "good", request, is_spoiled: true }
}

fn once(key: i16, name: &'static str, request: Json) -> Good {
    Good { key, name, request, is_spoiled: false }
}

/// All good requests, by API.
pub(crate) fn corpus() -> Vec<Good> {
    let mut all = Vec::new();
    all.extend(records());
    all.extend(offsets());
    all.extend(groups());
    all.extend(topics());
    all.extend(partitions());
    all.extend(configs());
    all.extend(node());
    all
}

fn records() -> Vec<Good> {
    let produce =
        |topic: Json| json!({"TransactionalId": null, "Acks": -1, "TimeoutMs": 2000, "TopicData": [topic]});
    let partition = json!([{"Index": 0, "Records": "$batch"}]);
    let fetch = json!({
        "ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1_000_000, "IsolationLevel": 0,
        "SessionId": 0, "SessionEpoch": -1, "ForgottenTopicsData": [], "RackId": "",
        "Topics": [{"Topic": READ, "TopicId": "$id:w-read", "Partitions": [{
            "Partition": 0, "CurrentLeaderEpoch": -1, "FetchOffset": 0, "LastFetchedEpoch": -1,
            "LogStartOffset": -1, "PartitionMaxBytes": 100_000}]}],
    });
    vec![
        good(0, produce(json!({"Name": WRITE, "TopicId": "$id:w-write", "PartitionData": partition}))),
        good(1, fetch),
    ]
}

fn offsets() -> Vec<Good> {
    let list = |timestamp: i64| {
        json!({"ReplicaId": -1, "IsolationLevel": 0, "TimeoutMs": 2000, "Topics": [{"Name": READ, "Partitions": [{
            "PartitionIndex": 0, "CurrentLeaderEpoch": -1, "Timestamp": timestamp}]}]})
    };
    let epoch = json!({"ReplicaId": -2, "Topics": [{"Topic": READ, "Partitions": [{
        "Partition": 0, "CurrentLeaderEpoch": -1, "LeaderEpoch": 0}]}]});
    vec![
        good(2, list(-1)),
        once(2, "earliest", list(-2)),
        once(2, "max_timestamp", list(-3)),
        once(2, "earliest_local", list(-4)),
        once(2, "latest_tiered", list(-5)),
        once(2, "earliest_pending_upload", list(-6)),
        once(2, "unknown_spec", list(-7)),
        once(2, "second_record", list(1_700_000_000_001)),
        once(2, "after_all", list(1_700_000_900_000)),
        good(23, epoch),
    ]
}

fn groups() -> Vec<Good> {
    let commit = |group: &str| {
        json!({
            "GroupId": group, "GenerationIdOrMemberEpoch": -1, "MemberId": "", "GroupInstanceId": null,
            "RetentionTimeMs": -1, "Topics": [{"Name": READ, "TopicId": "$id:w-read", "Partitions": [{
                "PartitionIndex": 1, "CommittedOffset": 5, "CommittedLeaderEpoch": -1, "CommittedMetadata": "note"}]}],
        })
    };
    let fetch = json!({
        "GroupId": GROUP, "Topics": [{"Name": READ, "PartitionIndexes": [0, 9]}], "RequireStable": false,
        "Groups": [{"GroupId": GROUP, "MemberId": null, "MemberEpoch": -1,
            "Topics": [{"Name": READ, "TopicId": "$id:w-read", "PartitionIndexes": [0, 9]}]}],
    });
    let fetch_all = json!({"GroupId": GROUP, "Topics": null, "Groups": [{"GroupId": GROUP, "Topics": null, "MemberEpoch": -1}]});
    let join = json!({
        "GroupId": "$new", "SessionTimeoutMs": 6000, "RebalanceTimeoutMs": 500, "MemberId": "", "GroupInstanceId": null,
        "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": "m"}], "Reason": null,
    });
    let sync = json!({
        "GroupId": GROUP, "GenerationId": 1, "MemberId": "nobody", "GroupInstanceId": null, "ProtocolType": "consumer",
        "ProtocolName": "range", "Assignments": [{"MemberId": "nobody", "Assignment": "a"}],
    });
    let leave = json!({"GroupId": GROUP, "MemberId": "nobody",
        "Members": [{"MemberId": "nobody", "GroupInstanceId": null, "Reason": null}]});
    let beat = json!({"GroupId": GROUP, "GenerationId": 1, "MemberId": "nobody", "GroupInstanceId": null});
    vec![
        good(8, commit("w-commits")),
        good(9, fetch),
        once(9, "all_topics", fetch_all),
        good(10, json!({"Key": GROUP, "KeyType": 0, "CoordinatorKeys": [GROUP]})),
        good(11, join),
        good(12, beat),
        good(13, leave),
        good(14, sync),
        good(15, json!({"Groups": [GROUP], "IncludeAuthorizedOperations": false})),
        good(42, json!({"GroupsNames": ["nosuch"]})),
        good(
            47,
            json!({"GroupId": GROUP, "Topics": [{"Name": READ, "Partitions": [{"PartitionIndex": 9}]}]}),
        ),
    ]
}

fn topics() -> Vec<Good> {
    let create = |name: &str, validate: bool| {
        json!({"TimeoutMs": 5000, "ValidateOnly": validate, "Topics": [{"Name": name, "NumPartitions": 2,
            "ReplicationFactor": 1, "Assignments": [], "Configs": [{"Name": "retention.ms", "Value": "5000"}]}]})
    };
    let assigned = json!({"TimeoutMs": 5000, "ValidateOnly": true, "Topics": [{"Name": "w-assigned", "NumPartitions": -1,
        "ReplicationFactor": -1, "Configs": [], "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]}]});
    let defaults = json!({"TimeoutMs": 5000, "ValidateOnly": true, "Topics": [{"Name": "w-defaults", "NumPartitions": -1,
        "ReplicationFactor": -1, "Configs": [], "Assignments": []}]});
    let parts = |validate: bool, count: i32| {
        json!({"TimeoutMs": 5000, "ValidateOnly": validate,
            "Topics": [{"Name": WRITE, "Count": count, "Assignments": null}]})
    };
    let parts_assigned = json!({"TimeoutMs": 5000, "ValidateOnly": true,
        "Topics": [{"Name": WRITE, "Count": 4, "Assignments": [{"BrokerIds": [1]}]}]});
    let delete = json!({"TimeoutMs": 5000, "TopicNames": ["nosuch"], "Topics": [{"Name": "nosuch", "TopicId": "zero"}]});
    vec![
        good(
            3,
            json!({"Topics": [{"Name": READ, "TopicId": "zero"}], "AllowAutoTopicCreation": false,
            "IncludeClusterAuthorizedOperations": false, "IncludeTopicAuthorizedOperations": false}),
        ),
        good(19, create("w-validated", true)),
        once(19, "really", create("$new", false)),
        once(19, "existing", create(READ, true)),
        once(19, "defaults", defaults),
        Good { key: 19, name: "assigned", request: assigned, is_spoiled: true },
        good(20, delete),
        good(37, parts(true, 4)),
        once(37, "fewer", parts(true, 1)),
        Good { key: 37, name: "assigned", request: parts_assigned, is_spoiled: true },
        good(75, json!({"Topics": [{"Name": READ}], "ResponsePartitionLimit": 100, "Cursor": null})),
        once(
            75,
            "all_from_a_cursor",
            json!({"Topics": [], "ResponsePartitionLimit": 1,
            "Cursor": {"TopicName": READ, "PartitionIndex": 1}}),
        ),
    ]
}

/// Leaders, reassignments, and the brokers that hold the partitions.
fn partitions() -> Vec<Good> {
    let elect =
        |kind: i8, topics: Json| json!({"ElectionType": kind, "TopicPartitions": topics, "TimeoutMs": 5000});
    let first = json!([{"Topic": READ, "Partitions": [0]}]);
    let reassign = |partition: i32, replicas: Json| {
        json!({"TimeoutMs": 5000, "AllowReplicationFactorChange": true, "Topics": [{"Name": WRITE,
            "Partitions": [{"PartitionIndex": partition, "Replicas": replicas}]}]})
    };
    let under_way = json!({"TimeoutMs": 5000, "Topics": [{"Name": WRITE, "PartitionIndexes": [0]}]});
    vec![
        good(43, elect(0, first.clone())),
        once(43, "unclean", elect(1, first)),
        once(43, "all", elect(0, Json::Null)),
        good(45, reassign(0, json!([1]))),
        once(45, "elsewhere", reassign(0, json!([9]))),
        once(45, "call_off", reassign(0, Json::Null)),
        once(45, "no_such_partition", reassign(99, json!([1]))),
        good(46, under_way),
        once(46, "all", json!({"TimeoutMs": 5000, "Topics": null})),
        once(64, "unknown", json!({"BrokerId": 9})),
    ]
}

fn configs() -> Vec<Good> {
    let describe = |kind: i8, name: &str, keys: Json| {
        json!({"IncludeSynonyms": true, "IncludeDocumentation": false,
            "Resources": [{"ResourceType": kind, "ResourceName": name, "ConfigurationKeys": keys}]})
    };
    let legacy = |kind: i8, name: &str, key: &str, value: &str| {
        json!({"ValidateOnly": true, "Resources": [{"ResourceType": kind, "ResourceName": name,
            "Configs": [{"Name": key, "Value": value}]}]})
    };
    let alter = |kind: i8, name: &str, key: &str, operation: i8, value: Json| {
        json!({"ValidateOnly": true, "Resources": [{"ResourceType": kind, "ResourceName": name,
            "Configs": [{"Name": key, "ConfigOperation": operation, "Value": value}]}]})
    };
    vec![
        good(32, describe(2, CONFIG, json!(["retention.ms", "cleanup.policy"]))),
        once(32, "topic_whole", describe(2, CONFIG, Json::Null)),
        once(32, "broker", describe(4, "1", json!(["log.retention.ms", "num.io.threads", "log.dirs"]))),
        once(32, "brokers", describe(4, "", json!(["log.retention.ms"]))),
        once(32, "broker_bad_name", describe(4, "one", Json::Null)),
        once(32, "broker_elsewhere", describe(4, "9", Json::Null)),
        good(33, legacy(2, CONFIG, "retention.ms", "100000")),
        once(33, "broker", legacy(4, "1", "log.retention.ms", "100000")),
        once(33, "read_only", legacy(4, "1", "log.dirs", "elsewhere")),
        once(33, "bad_value", legacy(2, CONFIG, "retention.ms", "soon")),
        good(44, alter(2, CONFIG, "retention.ms", 0, json!("100000"))),
        once(44, "delete", alter(2, CONFIG, "retention.ms", 1, Json::Null)),
        once(44, "append", alter(2, CONFIG, "cleanup.policy", 2, json!("compact"))),
        once(44, "append_to_number", alter(2, CONFIG, "retention.ms", 2, json!("1"))),
        once(44, "subtract", alter(2, CONFIG, "cleanup.policy", 3, json!("delete"))),
        once(44, "broker", alter(4, "1", "log.retention.ms", 0, json!("100000"))),
        once(44, "brokers", alter(4, "", "log.retention.ms", 0, json!("100000"))),
        once(44, "read_only", alter(4, "1", "log.dirs", 0, json!("elsewhere"))),
        once(44, "bad_value", alter(2, CONFIG, "retention.ms", 0, json!("soon"))),
    ]
}

fn node() -> Vec<Good> {
    vec![
        good(16, json!({"StatesFilter": [], "TypesFilter": []})),
        once(16, "empty", json!({"StatesFilter": ["Empty"], "TypesFilter": ["classic"]})),
        once(16, "odd", json!({"StatesFilter": ["empty", "nosuch"], "TypesFilter": ["CONSUMER"]})),
        good(18, json!({"ClientSoftwareName": "wire", "ClientSoftwareVersion": "1"})),
        once(18, "bad_name", json!({"ClientSoftwareName": "-wire", "ClientSoftwareVersion": "1 2"})),
        good(
            22,
            json!({"TransactionalId": null, "TransactionTimeoutMs": 60_000, "ProducerId": -1, "ProducerEpoch": -1}),
        ),
        good(35, json!({"Topics": [{"Topic": READ, "Partitions": [0]}]})),
        good(
            55,
            json!({"Topics": [{"TopicName": "__cluster_metadata", "Partitions": [{"PartitionIndex": 0}]}]}),
        ),
        good(
            60,
            json!({"IncludeClusterAuthorizedOperations": false, "EndpointType": 1, "IncludeFencedBrokers": false}),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::request;
    use protocol::tables::api;

    #[test]
    fn every_request_fits_its_table() {
        for good in corpus() {
            let api = api(good.key).expect("an API");
            let _ = request(api.request, &good.request);
        }
    }
}
