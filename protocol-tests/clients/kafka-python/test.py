"""kafka-python: a client with a protocol implementation of its own, in Python."""

import sys
import threading
import time
import uuid

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, ConfigResourceType, NewPartitions, NewTopic
from kafka.errors import MessageSizeTooLargeError, TopicAlreadyExistsError
from kafka.structs import OffsetAndMetadata

from harness.cases import Cases, equal, eventually

BOOTSTRAP = sys.argv[1]
ADMIN = KafkaAdminClient(bootstrap_servers=BOOTSTRAP)
cases = Cases()


def unique(name):
    return f"kafka-python-{name}-{uuid.uuid4().hex[:8]}"


def new_topic(name, partitions=1):
    topic = unique(name)
    ADMIN.create_topics([NewTopic(topic, partitions, 1)])
    eventually(lambda: topic in ADMIN.list_topics(), "topic in the list of topics")
    return topic


def produce(topic, values, **config):
    """Produces to partition 0 and returns the offsets that the broker gave."""
    client = KafkaProducer(bootstrap_servers=BOOTSTRAP, **config)
    futures = [client.send(topic, value, partition=0) for value in values]
    offsets = [future.get(30).offset for future in futures]
    client.close()
    return offsets


def consumer(*topics, group=None, **config):
    defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "session_timeout_ms": 6000}
    return KafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, group_id=group, **{**defaults, **config})


def read(client, count, seconds=30):
    records, end = [], time.monotonic() + seconds
    while len(records) < count and time.monotonic() < end:
        left = max(0, end - time.monotonic())
        for batch in client.poll(int(left * 1000), max_records=count - len(records)).values():
            records.extend(batch)
    equal(len(records), count, "records")
    return records


def read_all(topic, count, offset=0):
    client = consumer()
    client.assign([TopicPartition(topic, 0)])
    client.seek(TopicPartition(topic, 0), offset)
    records = read(client, count)
    client.close()
    return records


@cases.case
def every_codec_comes_back_as_it_was():
    topic, values = new_topic("codecs"), [b"value %d " % n * 50 for n in range(100)]
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        produce(topic, values, compression_type=codec, linger_ms=5)
    equal([record.value for record in read_all(topic, 500)], values * 5)


@cases.case
def keys_headers_and_nulls_come_back_as_they_were():
    topic, headers = new_topic("shapes"), [("a", b"1"), ("a", b"2"), ("empty", b"")]
    client = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    client.send(topic, b"v", b"k", headers=headers)
    client.send(topic, None, b"tombstone")
    client.send(topic, b"no key")
    client.flush(30)
    client.close()
    got = read_all(topic, 3)
    equal(list(got[0].headers), headers, "headers")
    equal([(r.key, r.value) for r in got], [(b"k", b"v"), (b"tombstone", None), (None, b"no key")])


@cases.case
def a_too_large_record_is_refused():
    client = KafkaProducer(bootstrap_servers=BOOTSTRAP, max_request_size=5_000_000)
    future = client.send(new_topic("large"), bytes(2_000_000))
    try:
        future.get(30)
        raise AssertionError("the record was accepted")
    except MessageSizeTooLargeError:
        client.close()


@cases.case
def offsets_count_up_and_a_consumer_starts_in_the_middle():
    topic = new_topic("middle")
    equal(produce(topic, [b"%d" % n for n in range(50)]), list(range(50)))
    equal(read_all(topic, 1, offset=33)[0].value, b"33")


@cases.case
def offsets_are_found_by_time():
    topic, now = new_topic("time"), int(time.time() * 1000)
    client = KafkaProducer(bootstrap_servers=BOOTSTRAP)
    for n in range(10):
        client.send(topic, b"x", timestamp_ms=now - 10_000 + n * 1000).get(30)
    client.close()
    reader, partition = consumer(), TopicPartition(topic, 0)
    equal(reader.offsets_for_times({partition: now - 4500})[partition].offset, 6)
    equal(reader.beginning_offsets([partition])[partition], 0)
    equal(reader.end_offsets([partition])[partition], 10)
    reader.close()


@cases.case
def an_idempotent_producer_writes_each_record_once():
    topic, values = new_topic("idempotent"), [b"%d" % n for n in range(1000)]
    produce(topic, values, enable_idempotence=True, linger_ms=1)
    equal([record.value for record in read_all(topic, 1000)], values)


@cases.case
def a_committed_offset_is_where_the_group_goes_on():
    topic, group = new_topic("commit"), unique("group")
    partition = TopicPartition(topic, 0)
    produce(topic, [b"%d" % n for n in range(10)])
    first = consumer(topic, group=group)
    read(first, 1)
    first.commit({partition: OffsetAndMetadata(4, "note", -1)})
    first.close()
    second = consumer(topic, group=group)
    equal(read(second, 1)[0].value, b"4")
    equal(second.committed(partition, metadata=True).metadata, "note")
    second.close()


class Member:
    """A consumer that polls in a thread of its own, as good as without a pause.

    kafka-python 3.0.12 throws an assignment away that arrives between two polls, and joins again. Members that take
    turns in polling can go on like that for ever, with Apache Kafka too: it takes one SyncGroup slower than a poll.
    """

    def __init__(self, topic, group):
        self.client = consumer(topic, group=group)
        self.leaving = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while not self.leaving.is_set():
            self.client.poll(3000)
        self.client.close()

    def leave(self):
        self.leaving.set()
        self.thread.join()


@cases.case
def a_group_rebalances():
    topic, group = new_topic("rebalance", partitions=4), unique("group")

    def sizes(*members):
        return [len(member.client.assignment()) for member in members]

    first = Member(topic, group)
    eventually(lambda: sizes(first) == [4], "assignment to one member")
    second = Member(topic, group)
    eventually(lambda: sizes(first, second) == [2, 2], "assignment to two members")
    first.leave()
    eventually(lambda: sizes(second) == [4], "assignment after a member left")
    second.leave()


@cases.case
def topics_are_created_grown_and_deleted():
    topic = new_topic("admin", partitions=2)
    try:
        ADMIN.create_topics([NewTopic(topic, 2, 1)])
        raise AssertionError("the second creation was accepted")
    except TopicAlreadyExistsError:
        pass
    ADMIN.create_partitions({topic: NewPartitions(5)})
    eventually(lambda: len(ADMIN.describe_topics([topic])[0]["partitions"]) == 5, "five partitions")
    ADMIN.delete_topics([topic])
    eventually(lambda: topic not in ADMIN.list_topics(), "topic list without it")


@cases.case
def configs_are_described():
    topic = new_topic("configs")
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    described = ADMIN.describe_configs([resource], config_filter="all")["topic"][topic]
    equal(described["retention.ms"]["value"], "604800000")


@cases.case
def groups_are_listed_described_and_deleted():
    topic, group = new_topic("groups"), unique("group")
    produce(topic, [b"x"])
    member = consumer(topic, group=group)
    read(member, 1)
    member.commit()
    equal(group in repr(ADMIN.list_groups()), True, "listed")
    equal("Stable" in repr(ADMIN.describe_groups([group])), True, "stable")
    member.close()
    eventually(lambda: "Empty" in repr(ADMIN.describe_groups([group])), "empty group")
    ADMIN.delete_groups([group])
    equal(group in repr(ADMIN.list_groups()), False, "listed")


if __name__ == "__main__":
    sys.exit(cases.run())
