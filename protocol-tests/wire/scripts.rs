//! Stories of several requests, where one answer is needed for the next request.

use std::io;

use model::Timestamp;
use protocol::batch::{BatchBuilder, Codec};
use serde_json::{Value as Json, json};

use crate::corpus::{CONFIG, READ, WRITE};
use crate::run::{Run, batch};
use crate::value::Value;

/// All stories.
///
/// # Errors
/// Where a broker is not reached.
pub(crate) fn play(run: &mut Run) -> io::Result<()> {
    for version in 0..=9 {
        member(run, version)?;
    }
    static_member(run)?;
    idempotence(run)?;
    bad_batches(run)?;
    rejected_records(run)?;
    sessions(run)?;
    topic(run)?;
    auto_creation(run)?;
    configs(run)
}

/// One member from its first JoinGroup to the end of its group.
fn member(run: &mut Run, version: i16) -> io::Result<()> {
    let group = format!("w-member-{version}");
    let name = |step: &str| format!("member/v{version}/{step}");
    let join = |protocol: &str| {
        json!({"GroupId": group, "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 30_000, "MemberId": "$member",
            "GroupInstanceId": null, "ProtocolType": protocol, "Protocols": [{"Name": "range", "Metadata": "m"}]})
    };
    run.set("member", |_| Value::Text(String::new()));
    run.step(&name("join"), 11, version, join("consumer"))?;
    run.keep("member", "MemberId");
    if version >= 4 {
        run.step(&name("join_with_the_id"), 11, version, join("consumer"))?;
    }
    let sync = |generation: i32| {
        json!({"GroupId": group, "GenerationId": generation, "MemberId": "$member", "GroupInstanceId": null,
            "ProtocolType": "consumer", "ProtocolName": "range",
            "Assignments": [{"MemberId": "$member", "Assignment": "a"}]})
    };
    run.step(&name("sync_early_generation"), 14, version.min(5), sync(7))?;
    run.step(&name("sync"), 14, version.min(5), sync(1))?;
    run.step(&name("sync_again"), 14, version.min(5), sync(1))?;
    run.step(&name("describe"), 15, version.min(6), json!({"Groups": [group]}))?;
    let beat = |member: &str, generation: i32| json!({"GroupId": group, "GenerationId": generation, "MemberId": member, "GroupInstanceId": null});
    run.step(&name("heartbeat"), 12, version.min(4), beat("$member", 1))?;
    run.step(&name("heartbeat_of_another_generation"), 12, version.min(4), beat("$member", 2))?;
    run.step(&name("heartbeat_of_nobody"), 12, version.min(4), beat("nobody", 1))?;
    run.step(&name("join_of_another_type"), 11, version, join("connect"))?;
    member_offsets(run, version, &group)?;
    run.step(&name("delete_with_a_member"), 42, version.min(3), json!({"GroupsNames": [group]}))?;
    let leave = json!({"GroupId": group, "MemberId": "$member", "Members": [
        {"MemberId": "$member", "GroupInstanceId": null}, {"MemberId": "nobody", "GroupInstanceId": null}]});
    run.step(&name("leave"), 13, version.min(5), leave.clone())?;
    run.step(&name("leave_again"), 13, version.min(5), leave)?;
    run.step(&name("describe_when_empty"), 15, version.min(6), json!({"Groups": [group]}))?;
    run.step(&name("delete"), 42, version.min(3), json!({"GroupsNames": [group, "nosuch"]}))?;
    run.step(&name("describe_when_deleted"), 15, version.min(6), json!({"Groups": [group]}))
}

fn member_offsets(run: &mut Run, version: i16, group: &str) -> io::Result<()> {
    let commit = |member: &str, generation: i32| {
        json!({"GroupId": group, "GenerationIdOrMemberEpoch": generation, "MemberId": member, "RetentionTimeMs": -1,
            "Topics": [{"Name": READ, "TopicId": "$id:w-read", "Partitions": [{
                "PartitionIndex": 0, "CommittedOffset": 2, "CommittedLeaderEpoch": -1, "CommittedMetadata": null}]}]})
    };
    let commit_version = (version + 1).clamp(2, 10);
    let name = |step: &str| format!("member/v{version}/{step}");
    run.step(&name("commit"), 8, commit_version, commit("$member", 1))?;
    run.step(&name("commit_of_another_generation"), 8, commit_version, commit("$member", 0))?;
    run.step(&name("commit_of_nobody"), 8, commit_version, commit("nobody", 1))?;
    run.step(&name("commit_of_no_member"), 8, commit_version, commit("", -1))?;
    let topics = json!([{"Name": READ, "TopicId": "$id:w-read", "PartitionIndexes": [0, 1]}]);
    let by_name = json!([{"Name": READ, "PartitionIndexes": [0, 1]}]);
    let fetch = json!({"GroupId": group, "Topics": by_name,
        "Groups": [{"GroupId": group, "MemberId": null, "MemberEpoch": -1, "Topics": topics}]});
    run.step(&name("fetch_offsets"), 9, (version + 1).clamp(1, 10), fetch)?;
    let delete = json!({"GroupId": group, "Topics": [{"Name": READ, "Partitions": [{"PartitionIndex": 0}]}]});
    run.step(&name("delete_offsets_of_a_topic_in_use"), 47, 0, delete)
}

/// A member with an instance id that comes back (KIP-345).
fn static_member(run: &mut Run) -> io::Result<()> {
    let join = |member: &str| {
        json!({"GroupId": "w-static", "SessionTimeoutMs": 30_000, "RebalanceTimeoutMs": 30_000, "MemberId": member,
            "GroupInstanceId": "one", "ProtocolType": "consumer", "Protocols": [{"Name": "range", "Metadata": "m"}]})
    };
    let with = |member: &str| {
        json!({"GroupId": "w-static", "GenerationId": 1, "MemberId": member, "GroupInstanceId": "one",
            "ProtocolType": "consumer", "ProtocolName": "range", "Assignments": [{"MemberId": member, "Assignment": "a"}]})
    };
    let beat = |member: &str| json!({"GroupId": "w-static", "GenerationId": 1, "MemberId": member, "GroupInstanceId": "one"});
    run.step("static_member/join", 11, 9, join(""))?;
    run.keep("old", "MemberId");
    run.step("static_member/sync", 14, 5, with("$old"))?;
    run.step("static_member/join_again", 11, 9, join(""))?;
    run.keep("new-id", "MemberId");
    run.step("static_member/heartbeat_of_the_old", 12, 4, beat("$old"))?;
    run.step("static_member/join_of_the_old", 11, 9, join("$old"))?;
    run.step("static_member/sync_of_the_old", 14, 5, with("$old"))?;
    run.step("static_member/heartbeat_of_the_new", 12, 4, beat("$new-id"))?;
    run.step("static_member/describe", 15, 6, json!({"Groups": ["w-static"]}))?;
    let leave = json!({"GroupId": "w-static", "Members": [{"MemberId": "", "GroupInstanceId": "two"},
        {"MemberId": "$old", "GroupInstanceId": "one"}, {"MemberId": "", "GroupInstanceId": "one"}]});
    run.step("static_member/leave", 13, 5, leave)
}

fn produce(records: &Json) -> Json {
    json!({"Acks": -1, "TimeoutMs": 5000, "TransactionalId": null, "TopicData": [{"Name": WRITE,
        "TopicId": "$id:w-write", "PartitionData": [{"Index": 2, "Records": records}]}]})
}

/// Sequences of an idempotent producer (KIP-98): the five-batch window, holes, epochs.
fn idempotence(run: &mut Run) -> io::Result<()> {
    run.step(
        "idempotence/init",
        22,
        5,
        json!({"ProducerId": -1, "ProducerEpoch": -1, "TransactionTimeoutMs": 1000}),
    )?;
    run.keep("producer", "ProducerId");
    let steps: &[(&str, i16, i32)] = &[
        ("first_not_at_zero", 0, 4),
        ("first", 0, 0),
        ("first_again", 0, 0),
        ("second", 0, 2),
        ("hole", 0, 8),
        ("third", 0, 4),
        ("fourth", 0, 6),
        ("fifth", 0, 8),
        ("sixth", 0, 10),
        ("second_again", 0, 2),
        ("first_beyond_the_window", 0, 0),
        ("newer_epoch_not_at_zero", 1, 12),
        ("newer_epoch", 1, 0),
        ("older_epoch", 0, 12),
    ];
    for (name, epoch, sequence) in steps {
        run.set("records", |names| Value::Bytes(batch(*epoch, names.number("producer"), *sequence)));
        run.step(&format!("idempotence/{name}"), 0, 9, produce(&json!("$records")))?;
    }
    Ok(())
}

/// Batches that are wrong in one place. `crc` says that the checksum is made right again.
fn bad_batches(run: &mut Run) -> io::Result<()> {
    type Spoil = fn(&mut Vec<u8>);
    let with_crc: &[(&str, Spoil)] = &[
        ("base_offset_is_ignored", |batch| batch[7] = 9),
        ("leader_epoch_is_ignored", |batch| batch[12..16].fill(7)),
        ("unknown_codec", |batch| batch[22] = 5),
        ("codec_of_plain_records", |batch| batch[22] = 1),
        ("log_append_time", |batch| batch[22] = 8),
        ("transactional_without_producer", |batch| batch[22] = 16),
        ("control", |batch| batch[22] = 32),
        ("unknown_attributes", |batch| batch[21] = 0x80),
        ("last_offset_delta_too_small", |batch| batch[26] = 0),
        ("last_offset_delta_too_large", |batch| batch[26] = 5),
        ("far_future", |batch| {
            batch[27..43].copy_from_slice(&[0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 0, 1]);
        }),
        ("max_timestamp_too_small", |batch| batch[35..43].fill(0)),
        ("count_too_small", |batch| batch[60] = 1),
        ("count_too_large", |batch| batch[60] = 3),
        ("count_zero", |batch| batch[60] = 0),
        ("count_negative", |batch| batch[57..61].fill(0xff)),
        ("producer_without_epoch", |batch| batch[43..51].copy_from_slice(&[0, 0, 0, 0, 0, 0, 3, 0xe8])),
        ("first_record_too_long", |batch| batch[61] += 2),
    ];
    let raw: &[(&str, Spoil)] = &[
        ("wrong_crc", |batch| batch[17] ^= 1),
        ("magic_0", |batch| batch[16] = 0),
        ("magic_1", |batch| batch[16] = 1),
        ("magic_3", |batch| batch[16] = 3),
        ("length_too_small", |batch| batch[11] = 20),
        ("length_negative", |batch| batch[8..12].fill(0xff)),
        ("length_too_large", |batch| batch[11] += 9),
        ("cut", |batch| batch.truncate(70)),
        ("cut_in_the_header", |batch| batch.truncate(30)),
        ("three_bytes", |batch| batch.truncate(3)),
        ("twice", |batch| batch.extend(batch.clone())),
        ("and_a_cut_second", |batch| batch.extend(batch.clone()[..40].to_vec())),
    ];
    for (name, spoil) in with_crc {
        run.set("records", |_| spoiled(*spoil, true));
        run.step(&format!("bad_batch/{name}"), 0, 9, produce(&json!("$records")))?;
    }
    for (name, spoil) in raw {
        run.set("records", |_| spoiled(*spoil, false));
        run.step(&format!("bad_batch/{name}"), 0, 9, produce(&json!("$records")))?;
    }
    run.step(
        "bad_batch/end",
        2,
        9,
        json!({"ReplicaId": -1, "Topics": [{"Name": WRITE, "Partitions": [{
        "PartitionIndex": 2, "CurrentLeaderEpoch": -1, "Timestamp": -1}]}]}),
    )
}

fn spoiled(spoil: fn(&mut Vec<u8>), new_crc: bool) -> Value {
    let mut bytes = batch(0, -1, 0);
    spoil(&mut bytes);
    if new_crc {
        let crc = crc32c::crc32c(&bytes[21..]);
        bytes[17..21].copy_from_slice(&crc.to_be_bytes());
    }
    Value::Bytes(bytes)
}

/// Records that a topic does not take, each with its cause (KIP-467).
fn rejected_records(run: &mut Run) -> io::Result<()> {
    let configs = json!([{"Name": "cleanup.policy", "Value": "compact"},
        {"Name": "message.timestamp.before.max.ms", "Value": "1000000000000"}]);
    let topic = json!({"Name": "w-compact", "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": configs});
    let create = json!({"TimeoutMs": 9000, "ValidateOnly": false, "Topics": [topic]});
    run.step("topic/create_compacted", 19, 7, create)?;
    Run::settle();
    let cases: &[(&str, &[(i64, bool)])] = &[
        ("without_a_key", &[(0, true), (0, false)]),
        ("four_without_a_key", &[(0, false), (0, false), (0, true), (0, false), (0, false)]),
        ("too_old", &[(0, true), (-1_000_000_000_000, true)]),
        ("too_new_and_without_a_key", &[(0, false), (1_000_000_000_000, true)]),
    ];
    for ((name, records), codec) in cases.iter().flat_map(|case| [(case, Codec::None), (case, Codec::Lz4)]) {
        run.set("records", |_| Value::Bytes(keyed(records, codec)));
        for version in [7, 8, 12] {
            let produce = json!({"Acks": -1, "TimeoutMs": 5000, "TransactionalId": null, "TopicData": [{
                "Name": "w-compact", "PartitionData": [{"Index": 0, "Records": "$records"}]}]});
            run.step(&format!("rejected/v{version}/{name}/{codec}"), 0, version, produce)?;
        }
    }
    Ok(())
}

/// A batch of records at these distances from a fixed time, with a key or without.
fn keyed(records: &[(i64, bool)], codec: Codec) -> Vec<u8> {
    let mut builder = BatchBuilder::new().codec(codec);
    for (delta, (ms, has_key)) in (0..).zip(records) {
        let time = Timestamp(1_700_000_000_000 + ms);
        builder.append_at(delta, time, has_key.then_some(b"key"), Some(b"value"), &[]);
    }
    builder.build().to_vec()
}

/// Incremental Fetch sessions (KIP-227).
fn sessions(run: &mut Run) -> io::Result<()> {
    let fetch = |session: Json, epoch: i32, partitions: &[i32], forgotten: &[i32]| {
        let partitions: Vec<_> = partitions
            .iter()
            .map(|partition| {
                json!({"Partition": partition,
            "CurrentLeaderEpoch": -1, "FetchOffset": 0, "LastFetchedEpoch": -1, "LogStartOffset": -1,
            "PartitionMaxBytes": 100_000})
            })
            .collect();
        let topics = if partitions.is_empty() {
            json!([])
        } else {
            json!([{"Topic": READ, "TopicId": "$id:w-read", "Partitions": partitions}])
        };
        let forgotten = if forgotten.is_empty() {
            json!([])
        } else {
            json!([{"Topic": READ, "TopicId": "$id:w-read", "Partitions": forgotten}])
        };
        json!({"ReplicaId": -1, "MaxWaitMs": 0, "MinBytes": 0, "MaxBytes": 1_000_000, "IsolationLevel": 0, "RackId": "",
            "SessionId": session, "SessionEpoch": epoch, "Topics": topics, "ForgottenTopicsData": forgotten})
    };
    for version in [7, 12, 13, 18] {
        let name = |step: &str| format!("session/v{version}/{step}");
        run.step(&name("open"), 1, version, fetch(json!(0), 0, &[0, 1], &[]))?;
        run.keep("session", "SessionId");
        let session = || json!("$session");
        run.step(&name("nothing_new"), 1, version, fetch(session(), 1, &[], &[]))?;
        run.step(&name("same_epoch_again"), 1, version, fetch(session(), 1, &[], &[]))?;
        run.step(&name("forget"), 1, version, fetch(session(), 2, &[], &[0]))?;
        run.step(&name("add"), 1, version, fetch(session(), 3, &[0], &[]))?;
        run.step(&name("unknown_partition"), 1, version, fetch(session(), 4, &[9], &[]))?;
        run.step(&name("epoch_too_far"), 1, version, fetch(session(), 9, &[], &[]))?;
        run.step(&name("unknown_session"), 1, version, fetch(json!(12345), 1, &[], &[]))?;
        run.step(&name("close"), 1, version, fetch(session(), -1, &[0], &[]))?;
        run.step(&name("closed"), 1, version, fetch(session(), 5, &[], &[]))?;
    }
    Ok(())
}

/// A topic from its creation to its deletion.
fn topic(run: &mut Run) -> io::Result<()> {
    let named = |name: &str| json!({"Name": name, "NumPartitions": 1, "ReplicationFactor": 1, "Assignments": [], "Configs": []});
    let create = |topics: Json| json!({"TimeoutMs": 9000, "ValidateOnly": false, "Topics": topics});
    run.step(
        "topic/create_twice_in_one",
        19,
        7,
        create(json!([named("w-a"), named("w-a"), named("w-topic")])),
    )?;
    run.learn_topic("w-topic")?;
    run.step("topic/create_again", 19, 7, create(json!([named("w-topic")])))?;
    run.step("topic/create_colliding", 19, 7, create(json!([named("w.topic"), named("w_topic")])))?;
    run.step(
        "topic/create_bad_names",
        19,
        7,
        create(json!([named(""), named("."), named(".."), named("a b"), named(&"n".repeat(250))])),
    )?;
    run.step(
        "topic/create_internal",
        19,
        7,
        create(json!([named("__consumer_offsets"), named("__cluster_metadata")])),
    )?;
    let both = json!({"Name": "w-both", "NumPartitions": 1, "ReplicationFactor": 1, "Configs": [],
        "Assignments": [{"PartitionIndex": 0, "BrokerIds": [1]}]});
    run.step("topic/create_with_count_and_assignment", 19, 7, create(json!([both])))?;
    let by_id =
        |id: &str| json!({"Topics": [{"Name": null, "TopicId": id}], "AllowAutoTopicCreation": false});
    for version in 12..=13 {
        run.step(&format!("topic/metadata_by_id/v{version}"), 3, version, by_id("$id:w-topic"))?;
    }
    let grow = |count: i32| {
        json!({"TimeoutMs": 9000, "ValidateOnly": false,
        "Topics": [{"Name": "w-topic", "Count": count, "Assignments": null}]})
    };
    for (name, count) in [("grow", 3), ("grow_to_the_same", 3), ("shrink", 1), ("grow_to_too_many", 20_000)] {
        run.step(&format!("topic/{name}"), 37, 3, grow(count))?;
    }
    let delete = |topics: Json| json!({"TimeoutMs": 9000, "Topics": topics});
    let and_name = json!([{"Name": "w-topic", "TopicId": "$id:w-topic"}]);
    run.step("topic/delete_by_id_and_name", 20, 6, delete(and_name))?;
    let twice = json!([{"Name": null, "TopicId": "$id:w-topic"}, {"Name": "w-topic", "TopicId": "zero"}]);
    run.step("topic/delete_twice_in_one", 20, 6, delete(twice))?;
    run.step("topic/delete_by_id", 20, 6, delete(json!([{"Name": null, "TopicId": "$id:w-topic"}])))?;
    run.step("topic/delete_by_id_again", 20, 6, delete(json!([{"Name": null, "TopicId": "$id:w-topic"}])))?;
    run.step("topic/delete_by_name", 20, 5, json!({"TimeoutMs": 9000, "TopicNames": ["w-topic", "nosuch"]}))?;
    Run::settle();
    run.step("topic/metadata_when_deleted", 3, 13, by_id("$id:w-topic"))
}

/// Topics that are there because somebody asked for them.
fn auto_creation(run: &mut Run) -> io::Result<()> {
    let metadata = |names: Json| json!({"Topics": names, "AllowAutoTopicCreation": true});
    run.step("auto/create", 3, 9, metadata(json!([{"Name": "w-auto"}])))?;
    run.learn_topic("w-auto")?;
    run.step("auto/bad_names", 3, 9, metadata(json!([{"Name": "a b"}, {"Name": ""}, {"Name": "."}])))?;
    run.step("auto/internal", 3, 9, metadata(json!([{"Name": "__share_group_state"}])))?;
    run.step(
        "auto/described",
        75,
        0,
        json!({"Topics": [{"Name": "w-auto"}, {"Name": "nosuch"}], "ResponsePartitionLimit": 9}),
    )
}

/// Configurations that really change.
fn configs(run: &mut Run) -> io::Result<()> {
    let alter = |name: &str, configs: Json| json!({"ValidateOnly": false, "Resources": [{"ResourceType": 2, "ResourceName": name, "Configs": configs}]});
    let one = |key: &str, operation: i8, value: Json| json!([{"Name": key, "ConfigOperation": operation, "Value": value}]);
    run.step("config/set", 44, 1, alter(CONFIG, one("segment.bytes", 0, json!("2000000"))))?;
    run.step("config/append", 44, 1, alter(CONFIG, one("cleanup.policy", 2, json!("compact"))))?;
    run.step("config/append_again", 44, 1, alter(CONFIG, one("cleanup.policy", 2, json!("compact"))))?;
    run.step("config/subtract", 44, 1, alter(CONFIG, one("cleanup.policy", 3, json!("delete"))))?;
    let twice = json!([{"Name": "segment.ms", "ConfigOperation": 0, "Value": "1"}, {"Name": "segment.ms", "ConfigOperation": 1, "Value": null}]);
    run.step("config/key_twice", 44, 1, alter(CONFIG, twice))?;
    run.step("config/unknown_topic", 44, 1, alter("nosuch", one("segment.bytes", 0, json!("2000000"))))?;
    let describe = json!({"IncludeSynonyms": true, "IncludeDocumentation": false, "Resources": [{"ResourceType": 2,
        "ResourceName": CONFIG, "ConfigurationKeys": ["segment.bytes", "cleanup.policy", "retention.ms"]}]});
    Run::settle();
    run.step("config/described", 32, 4, describe.clone())?;
    let replace = json!({"ValidateOnly": false, "Resources": [{"ResourceType": 2, "ResourceName": CONFIG,
        "Configs": [{"Name": "retention.ms", "Value": "-1"}]}]});
    run.step("config/replace_all", 33, 2, replace)?;
    Run::settle();
    run.step("config/described_when_replaced", 32, 4, describe)
}
