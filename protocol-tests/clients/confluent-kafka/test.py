"""confluent-kafka (PyPI's newest, with a librdkafka of its own): everyday use of producer, consumer and admin client."""

import sys
import time
import uuid

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)

from harness.cases import Cases, equal, eventually

PARTITION_ANY = -1
BOOTSTRAP = sys.argv[1]
ADMIN = AdminClient({"bootstrap.servers": BOOTSTRAP})
cases = Cases()


def unique(name):
    return f"confluent-{name}-{uuid.uuid4().hex[:8]}"


def new_topic(name, partitions=1, **config):
    topic = unique(name)
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    ADMIN.create_topics([NewTopic(topic, partitions, config=settings)])[topic].result(20)
    eventually(lambda: topic in ADMIN.list_topics(timeout=20).topics, "topic in the list of topics")
    return topic


def producer(**config):
    return Producer({"bootstrap.servers": BOOTSTRAP, **config_of(config)})


def consumer(group=None, **config):
    defaults = {"auto.offset.reset": "earliest", "enable.auto.commit": False, "session.timeout.ms": 6000}
    group = group or unique("group")
    return Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": group, **defaults, **config_of(config)})


def config_of(config):
    return {key.replace("_", "."): value for key, value in config.items()}


def produce(topic, values, partition=0, **config):
    """Produces, waits for all, and returns the offsets that the broker gave."""
    offsets, errors = [], []
    client = producer(**config)
    for value in values:
        told = lambda error, message: errors.append(error) if error else offsets.append(message.offset())
        client.produce(topic, value, partition=partition, on_delivery=told)
        client.poll(0)
    equal(client.flush(30), 0, "records without an answer")
    equal(errors, [], "delivery errors")
    return offsets


def read(client, count, seconds=30):
    """Polls until `count` messages came."""
    messages, end = [], time.monotonic() + seconds
    while len(messages) < count:
        if time.monotonic() > end:
            raise AssertionError(f"{len(messages)} of {count} messages within {seconds} s")
        message = client.poll(0.2)
        if message is None:
            continue
        if message.error():
            raise KafkaException(message.error())
        messages.append(message)
    return messages


def read_from(topic, offset, count, partition=0):
    client = consumer()
    client.assign([TopicPartition(topic, partition, offset)])
    messages = read(client, count)
    client.close()
    return messages


@cases.case
def every_codec_comes_back_as_it_was():
    topic = new_topic("codecs")
    values = [b"value %d " % n * 50 for n in range(200)]
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        produce(topic, values, compression_type=codec)
    got = [message.value() for message in read_from(topic, OFFSET_BEGINNING, 1000)]
    equal(got, values * 5)


@cases.case
def keys_headers_and_nulls_come_back_as_they_were():
    topic = new_topic("shapes")
    client = producer()
    headers = [("a", b"1"), ("a", b"2"), ("empty", b""), ("null", None)]
    client.produce(topic, b"v", b"k", headers=headers)
    client.produce(topic, None, b"tombstone")
    client.produce(topic, b"", b"")
    client.produce(topic, b"no key", None)
    equal(client.flush(30), 0)
    got = read_from(topic, OFFSET_BEGINNING, 4)
    equal(got[0].headers(), headers, "headers")
    equal([(m.key(), m.value()) for m in got], [(b"k", b"v"), (b"tombstone", None), (b"", b""), (None, b"no key")])


@cases.case
def timestamps_are_kept():
    topic = new_topic("timestamps")
    client = producer()
    stamp = int(time.time() * 1000) - 3_600_000
    client.produce(topic, b"v", timestamp=stamp)
    equal(client.flush(30), 0)
    equal(read_from(topic, OFFSET_BEGINNING, 1)[0].timestamp()[1], stamp)


@cases.case
def a_large_record_passes_and_a_too_large_one_is_refused():
    topic = new_topic("large")
    value = bytes(range(256)) * 3900
    produce(topic, [value])
    equal(read_from(topic, OFFSET_BEGINNING, 1)[0].value(), value)
    errors = []
    client = producer(message_max_bytes=5_000_000)
    client.produce(topic, bytes(2_000_000), on_delivery=lambda error, _: errors.append(error))
    client.flush(30)
    equal(errors[0].code(), KafkaError.MSG_SIZE_TOO_LARGE)


@cases.case
def offsets_count_up_from_zero():
    equal(produce(new_topic("offsets"), [b"x"] * 500), list(range(500)))


@cases.case
def a_consumer_starts_in_the_middle():
    topic = new_topic("middle")
    produce(topic, [b"%d" % n for n in range(300)])
    equal(read_from(topic, 123, 1)[0].value(), b"123")


@cases.case
def a_consumer_starts_at_a_time():
    topic = new_topic("time")
    client = producer()
    now = int(time.time() * 1000)
    for n in range(10):
        client.produce(topic, b"%d" % n, timestamp=now - 10_000 + n * 1000)
        client.flush(30)
    reader = consumer()
    found = reader.offsets_for_times([TopicPartition(topic, 0, now - 4500)], timeout=20)
    reader.close()
    equal(found[0].offset, 6)


@cases.case
def watermarks_are_told():
    topic = new_topic("watermarks")
    produce(topic, [b"x"] * 7)
    reader = consumer()
    equal(reader.get_watermark_offsets(TopicPartition(topic, 0), timeout=20), (0, 7))
    reader.close()


@cases.case
def an_offset_out_of_range_is_reset():
    topic = new_topic("range")
    produce(topic, [b"0", b"1"])
    equal(read_from(topic, 1000, 1)[0].value(), b"0")


@cases.case
def an_idempotent_producer_writes_each_record_once():
    topic = new_topic("idempotent")
    values = [b"%d" % n for n in range(2000)]
    produce(topic, values, enable_idempotence=True, linger_ms=1)
    equal([m.value() for m in read_from(topic, OFFSET_BEGINNING, 2000)], values)


@cases.case
def every_kind_of_acks_is_served():
    topic = new_topic("acks")
    for acks in ("0", "1", "all"):
        client = producer(acks=acks)
        client.produce(topic, acks.encode())
        equal(client.flush(30), 0)
    equal(sorted(m.value() for m in read_from(topic, OFFSET_BEGINNING, 3)), [b"0", b"1", b"all"])


@cases.case
def a_committed_offset_is_where_the_group_goes_on():
    topic, group = new_topic("commit"), unique("group")
    produce(topic, [b"%d" % n for n in range(10)])
    first = consumer(group)
    first.subscribe([topic])
    message = read(first, 4)[-1]
    first.commit(message, asynchronous=False)
    first.close()
    second = consumer(group)
    second.subscribe([topic])
    equal(read(second, 1)[0].value(), b"4")
    equal(second.committed([TopicPartition(topic, 0)], timeout=20)[0].offset, 4)
    second.close()


def assignment_of(*members):
    for member in members:
        message = member.poll(0.1)
        if message is not None and message.error():
            raise KafkaException(message.error())
    return [sorted(part.partition for part in member.assignment()) for member in members]


def rebalances(strategy):
    topic, group = new_topic("rebalance", partitions=4), unique("group")
    first, second = (consumer(group, partition_assignment_strategy=strategy) for _ in range(2))
    first.subscribe([topic])
    eventually(lambda: assignment_of(first) == [[0, 1, 2, 3]], "assignment to one member")
    second.subscribe([topic])
    eventually(lambda: [len(part) for part in assignment_of(first, second)] == [2, 2], "assignment to two members")
    first.close()
    eventually(lambda: assignment_of(second) == [[0, 1, 2, 3]], "assignment after a member left")
    second.close()


@cases.case
def a_group_rebalances_eagerly():
    rebalances("range,roundrobin")


@cases.case
def a_group_rebalances_cooperatively():
    rebalances("cooperative-sticky")


@cases.case
def a_static_member_comes_back_without_a_rebalance():
    topic, group = new_topic("static", partitions=2), unique("group")
    members = [consumer(group, group_instance_id=name, session_timeout_ms=30000) for name in ("a", "b")]
    for member in members:
        member.subscribe([topic])
    eventually(lambda: sorted(assignment_of(*members)) == [[0], [1]], "assignment to two static members")
    had, stays = assignment_of(*members)
    members[0].close()
    again = consumer(group, group_instance_id="a", session_timeout_ms=30000)
    again.subscribe([topic])
    eventually(lambda: assignment_of(again, members[1]) == [had, stays], "the same assignment after the restart")
    again.close()
    members[1].close()


@cases.case
def a_member_that_dies_is_replaced_after_its_session():
    topic, group = new_topic("dead", partitions=2), unique("group")
    first, second = consumer(group, max_poll_interval_ms=6000), consumer(group)
    for member in (first, second):
        member.subscribe([topic])
    eventually(lambda: sorted(assignment_of(first, second)) == [[0], [1]], "assignment to two members")
    eventually(lambda: assignment_of(second) == [[0, 1]], "all partitions at the member that still polls", 30)
    first.close()
    second.close()


@cases.case
def topics_are_created_described_grown_and_deleted():
    topic = unique("admin")
    created = ADMIN.create_topics([NewTopic(topic, 2, 1, config={"retention.ms": "1234567"})])[topic]
    created.result(20)
    described = ADMIN.list_topics(topic, timeout=20).topics[topic]
    equal(sorted(described.partitions), [0, 1])
    try:
        ADMIN.create_topics([NewTopic(topic, 2, 1)])[topic].result(20)
        raise AssertionError("the second creation was accepted")
    except KafkaException as refusal:
        equal(refusal.args[0].code(), KafkaError.TOPIC_ALREADY_EXISTS)
    ADMIN.create_partitions([NewPartitions(topic, 5)])[topic].result(20)
    eventually(lambda: len(ADMIN.list_topics(topic, timeout=20).topics[topic].partitions) == 5, "five partitions")
    ADMIN.delete_topics([topic])[topic].result(20)
    eventually(lambda: topic not in ADMIN.list_topics(timeout=20).topics, "topic list without it")


@cases.case
def a_validate_only_creation_creates_nothing():
    topic = unique("validate")
    ADMIN.create_topics([NewTopic(topic, 1)], validate_only=True)[topic].result(20)
    equal(topic in ADMIN.list_topics(timeout=20).topics, False)


@cases.case
def configs_are_described_and_altered():
    topic = new_topic("configs", retention_ms=1234567)
    resource = ConfigResource(ResourceType.TOPIC, topic)
    described = ADMIN.describe_configs([resource])[resource].result(20)
    equal(described["retention.ms"].value, "1234567")
    equal(described["cleanup.policy"].value, "delete")
    change = ConfigEntry("retention.ms", "7654321", incremental_operation=AlterConfigOpType.SET)
    altered = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    ADMIN.incremental_alter_configs([altered])[altered].result(20)
    eventually(
        lambda: ADMIN.describe_configs([resource])[resource].result(20)["retention.ms"].value == "7654321", "new value"
    )


@cases.case
def an_unknown_config_is_refused():
    topic = new_topic("badconfig")
    change = ConfigEntry("no.such.key", "1", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[change])
    try:
        ADMIN.incremental_alter_configs([resource])[resource].result(20)
        raise AssertionError("the change was accepted")
    except KafkaException as refusal:
        equal(refusal.args[0].code(), KafkaError.INVALID_CONFIG)


@cases.case
def the_cluster_is_described():
    described = ADMIN.describe_cluster().result(20)
    equal(len(described.nodes), 1)
    equal(f"{described.nodes[0].host}:{described.nodes[0].port}", BOOTSTRAP)


@cases.case
def offsets_are_listed_by_the_admin_client():
    topic = new_topic("listoffsets")
    produce(topic, [b"x"] * 5)
    partition = TopicPartition(topic, 0)
    for spec, wanted in ((OffsetSpec.earliest(), 0), (OffsetSpec.latest(), 5)):
        equal(ADMIN.list_offsets({partition: spec})[partition].result(20).offset, wanted)


@cases.case
def groups_are_listed_described_altered_and_deleted():
    topic, group = new_topic("groups"), unique("group")
    produce(topic, [b"x"] * 5)
    member = consumer(group)
    member.subscribe([topic])
    member.commit(read(member, 3)[-1], asynchronous=False)
    described = ADMIN.describe_consumer_groups([group])[group].result(20)
    equal((described.state.name, len(described.members)), ("STABLE", 1))
    equal(group in [each.group_id for each in ADMIN.list_consumer_groups().result(20).valid], True, "listed")
    member.close()
    wanted = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0, 1)])
    ADMIN.alter_consumer_group_offsets([wanted])[group].result(20)
    asked = ConsumerGroupTopicPartitions(group)
    equal(ADMIN.list_consumer_group_offsets([asked])[group].result(20).topic_partitions[0].offset, 1)
    ADMIN.delete_consumer_groups([group])[group].result(20)
    equal(group in [each.group_id for each in ADMIN.list_consumer_groups().result(20).valid], False, "listed")


@cases.case
def a_producer_creates_the_topic_that_it_writes_to():
    topic = unique("auto")
    equal(produce(topic, [b"first"], partition=PARTITION_ANY), [0])


if __name__ == "__main__":
    sys.exit(cases.run())
