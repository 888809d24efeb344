"""confluent-kafka: an idempotent producer goes on while its broker is killed and started again.

Says `producing` when it has begun; whoever runs it kills the broker then. Afterwards every record must be there once and
in order.
"""

import sys
import time
import uuid

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness.cases import Cases, equal

BOOTSTRAP = sys.argv[1]
SECONDS = 12
cases = Cases()


def produce(topic):
    """Numbers the records from 0; returns how many there were, when all are acknowledged."""
    errors = []
    producer = Producer({"bootstrap.servers": BOOTSTRAP, "enable.idempotence": True, "message.timeout.ms": 120_000})
    end, count = time.monotonic() + SECONDS, 0
    while time.monotonic() < end:
        producer.produce(topic, str(count), partition=0, on_delivery=lambda error, _: error and errors.append(error))
        producer.poll(0.001)
        count += 1
        if count == 100:
            print("producing", flush=True)
    equal(producer.flush(120), 0, "records without an answer")
    equal(errors, [], "delivery errors")
    return count


def read(topic):
    """All values of the topic, up to its end."""
    consumer = Consumer({"bootstrap.servers": BOOTSTRAP, "group.id": topic})
    _, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=30)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    values, deadline = [], time.monotonic() + 60
    while len(values) < end and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and not message.error():
            values.append(int(message.value()))
    consumer.close()
    return values


@cases.case
def records_are_there_once_and_in_order_after_the_broker_was_killed():
    topic = f"confluent-survive-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": BOOTSTRAP})
    admin.create_topics([NewTopic(topic, 1)])[topic].result(20)
    count = produce(topic)
    values = read(topic)
    lost, twice = set(range(count)) - set(values), len(values) - len(set(values))
    equal((len(lost), twice, values == sorted(values)), (0, 0, True), "lost, twice, in order")


if __name__ == "__main__":
    sys.exit(cases.run())
