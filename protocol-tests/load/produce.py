"""produce.py BOOTSTRAP TOPIC PARTITIONS NAME: librdkafka as an idempotent producer that never gives up.

Each record's value is `NAME SEQUENCE`, the sequence counting from 0 in each partition. Standard output is the ledger: a
line `PARTITION SEQUENCE OFFSET` for each acknowledged record, or `error WHY`. It ends when standard input is closed and
everything is acknowledged.
"""

import sys
import threading

from confluent_kafka import Producer

BOOTSTRAP, TOPIC, PARTITIONS, NAME = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
WAITING_MAX = 2000
SETTINGS = {
    "bootstrap.servers": BOOTSTRAP,
    "enable.idempotence": True,
    "acks": "all",
    "linger.ms": 2,
    "message.timeout.ms": 600_000,
    # A broker that is away is what this is about: only what must not happen is told.
    "log_level": 2,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
}


def main():
    stop = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), stop.set()), daemon=True).start()
    producer = Producer(SETTINGS)
    sequence = 0
    while not stop.is_set():
        if len(producer) < WAITING_MAX:
            for partition in range(PARTITIONS):
                send(producer, partition, sequence)
            sequence += 1
        producer.poll(0.002)
    left = producer.flush(120)
    if left:
        tell(f"error {left} records have no answer")


def send(producer, partition, sequence):
    """One record, and its line when it is acknowledged."""

    def answered(error, message):
        tell(f"error {error}" if error else f"{partition} {sequence} {message.offset()}")

    producer.produce(TOPIC, f"{NAME} {sequence}", partition=partition, on_delivery=answered)


def tell(line):
    """A line of the ledger."""
    print(line, flush=True)


main()
