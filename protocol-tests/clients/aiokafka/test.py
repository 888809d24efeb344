"""aiokafka: the asyncio client."""

import asyncio
import sys
import time
import uuid

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewPartitions, NewTopic
from aiokafka.errors import TopicAlreadyExistsError

from harness.cases import Cases, equal

BOOTSTRAP = sys.argv[1]
cases = Cases()


def case(function):
    """A case that is a coroutine."""

    def run():
        asyncio.run(asyncio.wait_for(function(), 60))

    run.__name__ = function.__name__
    return cases.case(run)


def unique(name):
    return f"aiokafka-{name}-{uuid.uuid4().hex[:8]}"


async def new_topic(name, partitions=1):
    topic = unique(name)
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    await admin.create_topics([NewTopic(topic, partitions, 1)])
    await admin.close()
    return topic


async def produce(topic, values, **config):
    """Produces to partition 0 and returns the offsets that the broker gave."""
    client = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, **config)
    await client.start()
    futures = [await client.send(topic, value, partition=0) for value in values]
    offsets = [(await future).offset for future in futures]
    await client.stop()
    return offsets


async def consumer(*topics, group=None, **config):
    defaults = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "session_timeout_ms": 6000}
    client = AIOKafkaConsumer(*topics, bootstrap_servers=BOOTSTRAP, group_id=group, **{**defaults, **config})
    await client.start()
    return client


async def read_all(topic, count, offset=0):
    client = await consumer()
    client.assign([TopicPartition(topic, 0)])
    client.seek(TopicPartition(topic, 0), offset)
    records = [await client.getone() for _ in range(count)]
    await client.stop()
    return records


@case
async def every_codec_comes_back_as_it_was():
    topic, values = await new_topic("codecs"), [b"value %d " % n * 50 for n in range(100)]
    for codec in (None, "gzip", "snappy", "lz4", "zstd"):
        await produce(topic, values, compression_type=codec, linger_ms=5)
    equal([record.value for record in await read_all(topic, 500)], values * 5)


@case
async def keys_headers_and_nulls_come_back_as_they_were():
    topic, headers = await new_topic("shapes"), [("a", b"1"), ("a", b"2"), ("empty", b"")]
    client = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP)
    await client.start()
    await client.send_and_wait(topic, b"v", b"k", headers=headers)
    await client.send_and_wait(topic, None, b"tombstone")
    await client.send_and_wait(topic, b"no key")
    await client.stop()
    got = await read_all(topic, 3)
    equal(list(got[0].headers), headers, "headers")
    equal([(r.key, r.value) for r in got], [(b"k", b"v"), (b"tombstone", None), (None, b"no key")])


@case
async def offsets_count_up_and_a_consumer_starts_in_the_middle():
    topic = await new_topic("middle")
    equal(await produce(topic, [b"%d" % n for n in range(50)]), list(range(50)))
    equal((await read_all(topic, 1, offset=33))[0].value, b"33")


@case
async def offsets_are_found_by_time():
    topic, now = await new_topic("time"), int(time.time() * 1000)
    client = AIOKafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all")
    await client.start()
    for n in range(10):
        await client.send_and_wait(topic, b"x", timestamp_ms=now - 10_000 + n * 1000)
    await client.stop()
    reader, partition = await consumer(), TopicPartition(topic, 0)
    equal((await reader.offsets_for_times({partition: now - 4500}))[partition].offset, 6)
    equal((await reader.end_offsets([partition]))[partition], 10)
    await reader.stop()


@case
async def an_idempotent_producer_writes_each_record_once():
    topic, values = await new_topic("idempotent"), [b"%d" % n for n in range(1000)]
    await produce(topic, values, enable_idempotence=True)
    equal([record.value for record in await read_all(topic, 1000)], values)


@case
async def a_committed_offset_is_where_the_group_goes_on():
    topic, group = await new_topic("commit"), unique("group")
    await produce(topic, [b"%d" % n for n in range(10)])
    first = await consumer(topic, group=group)
    await first.getone()
    await first.commit({TopicPartition(topic, 0): 4})
    await first.stop()
    second = await consumer(topic, group=group)
    equal((await second.getone()).value, b"4")
    equal(await second.committed(TopicPartition(topic, 0)), 4)
    await second.stop()


@case
async def a_group_rebalances():
    topic, group = await new_topic("rebalance", partitions=4), unique("group")
    first, second = await consumer(topic, group=group), await consumer(topic, group=group)
    while [len(member.assignment()) for member in (first, second)] != [2, 2]:
        await asyncio.sleep(0.1)
    await first.stop()
    while len(second.assignment()) != 4:
        await asyncio.sleep(0.1)
    await second.stop()


@case
async def topics_are_created_grown_and_deleted():
    topic = await new_topic("admin", partitions=2)
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    answer = await admin.create_topics([NewTopic(topic, 2, 1)])
    equal(answer.topic_errors[0][1], TopicAlreadyExistsError.errno)
    await admin.create_partitions({topic: NewPartitions(5)})
    equal(len((await admin.describe_topics([topic]))[0]["partitions"]), 5, "partitions")
    await admin.delete_topics([topic])
    while topic in await admin.list_topics():
        await asyncio.sleep(0.1)
    await admin.close()


@case
async def groups_are_listed_and_described():
    topic, group = await new_topic("groups"), unique("group")
    await produce(topic, [b"x"])
    member = await consumer(topic, group=group)
    await member.getone()
    admin = AIOKafkaAdminClient(bootstrap_servers=BOOTSTRAP)
    await admin.start()
    equal(group in [each[0] for each in await admin.list_consumer_groups()], True, "listed")
    equal("Stable" in repr(await admin.describe_consumer_groups([group])), True, "stable")
    await member.stop()
    await admin.close()


if __name__ == "__main__":
    sys.exit(cases.run())
