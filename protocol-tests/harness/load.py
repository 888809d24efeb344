"""Producers that go on whatever happens to their broker, a consumer that looks on, and what must hold in the end.

Each producer numbers its records from 0 in each partition, so that one look at what is in a partition says whether
anything is lost, twice, or out of order. Run this with the interpreter of `install.python()`.
"""

import subprocess
import sys
import tempfile
import threading
import time
import uuid
from array import array
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from harness import install
from harness.cases import equal, eventually

PROGRAMS = install.TESTS / "load"
JAVA_CLIENT = "4.4.0"
NAMES = ("librdkafka", "java")


class Load:
    """A topic under load. Use it in a `with`; `check` ends the load and says whether all is well."""

    def __init__(self, bootstrap, partitions=3, names=NAMES, replicas=1):
        self.bootstrap, self.partitions, self.names, self.replicas = bootstrap, partitions, names, replicas
        self.topic = f"load-{uuid.uuid4().hex[:8]}"
        self.folder = tempfile.TemporaryDirectory(prefix="ottla-tests-load-")
        self.processes = {}
        self.witness = None

    def __enter__(self):
        create_topic(self.bootstrap, self.topic, self.partitions, self.replicas)
        for name in self.names:
            command = {"librdkafka": librdkafka, "java": java}[name](Path(self.folder.name))
            arguments = [*command, self.bootstrap, self.topic, str(self.partitions), name]
            with self.ledger(name).open("wb") as ledger:
                self.processes[name] = subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=ledger)
        self.witness = Witness(self.bootstrap, self.topic, self.partitions)
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.kill()
            process.wait()
        if self.witness:
            self.witness.end()
        self.folder.cleanup()

    def ledger(self, name):
        """The file of what a producer was told."""
        return Path(self.folder.name) / f"{name}.ledger"

    def wait_for_progress(self, seconds=60):
        """Returns when every producer has had something acknowledged from now on."""
        before = {name: self.ledger(name).stat().st_size for name in self.names}
        for name in self.names:
            eventually(lambda: self.ledger(name).stat().st_size > before[name], f"progress of {name}", seconds)

    def is_still(self, seconds):
        """Whether nothing is acknowledged for so long."""
        before = {name: self.ledger(name).stat().st_size for name in self.names}
        time.sleep(seconds)
        return before == {name: self.ledger(name).stat().st_size for name in self.names}

    def read_and_commit(self):
        """A consumer reads from the start and commits what it read, whatever the producers are told."""
        settings = {"bootstrap.servers": self.bootstrap, "group.id": self.topic, "enable.auto.commit": False}
        consumer = Consumer(settings | {"auto.offset.reset": "error"})
        partition = TopicPartition(self.topic, 0, OFFSET_BEGINNING)
        consumer.assign([partition])
        messages = consumer.consume(10, 20)
        equal([message.error() for message in messages], [None] * 10, "ten records read")
        wanted = TopicPartition(self.topic, 0, 10)
        eventually(lambda: commits(consumer, wanted), "commit")
        equal(consumer.committed([wanted], 20)[0].offset, 10, "committed offset")
        consumer.close()

    def check(self):
        """Ends the load and reads all back; returns how many records were acknowledged."""
        for name, process in self.processes.items():
            process.stdin.close()
            equal(process.wait(180), 0, f"exit code of {name}")
        self.witness.end()
        found = Reader(self.bootstrap, self.topic, self.partitions)
        found.read_to_end()
        self.witness.reader.check_prefix_of(found)
        return sum(self.check_producer(name, found) for name in self.names)

    def check_producer(self, name, found):
        """Every acknowledged record is where its producer was told, once, in order, with nothing left out."""
        acknowledged = 0
        for line in self.ledger(name).read_text().splitlines():
            if line.startswith("error"):
                raise AssertionError(f"{name}: {line}")
            partition, sequence, offset = map(int, line.split())
            found.check_record(partition, offset, name, sequence)
            acknowledged += 1
        equal(found.count(name), acknowledged, f"records of {name} in the log, as against acknowledged")
        return acknowledged


class Reader:
    """Reads all partitions from the start, and keeps whose record stands where."""

    def __init__(self, bootstrap, topic, partitions):
        settings = {"bootstrap.servers": bootstrap, "group.id": topic, "enable.auto.commit": False}
        settings |= {"auto.offset.reset": "error", "reconnect.backoff.max.ms": 100, "log_level": 2}
        self.consumer = Consumer(settings)
        self.partitions = [TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(partitions)]
        self.consumer.assign(self.partitions)
        # For each partition, by offset: the sequence and the producer of each record, as one number.
        self.seen = [array("q") for _ in range(partitions)]
        self.expected = {(name, each): 0 for name in NAMES for each in range(partitions)}

    def poll(self):
        """Takes in what there is; a record out of its place is a failure."""
        for message in self.consumer.consume(500, 0.2):
            if not message.error():
                self.take(message.partition(), message.offset(), message.value().decode())
            elif not is_of_the_network(message.error()):
                raise AssertionError(f"the consumer was told: {message.error()}")

    def take(self, partition, offset, value):
        """One record: the next offset of its partition, and the next of its producer."""
        name, sequence = value.split()
        equal(offset, len(self.seen[partition]), f"next offset of partition {partition}")
        equal(int(sequence), self.expected[name, partition], f"next of {name} in partition {partition} at {offset}")
        self.expected[name, partition] += 1
        self.seen[partition].append(int(sequence) * len(NAMES) + NAMES.index(name))

    def read_to_end(self, seconds=120):
        """Reads up to the high watermarks of now."""
        ends = [self.consumer.get_watermark_offsets(each, timeout=30)[1] for each in self.partitions]
        deadline = time.monotonic() + seconds
        while any(len(seen) < end for seen, end in zip(self.seen, ends)):
            self.poll()
            if time.monotonic() > deadline:
                raise AssertionError(f"read {[len(seen) for seen in self.seen]} of {ends} in {seconds} s")
        self.consumer.close()

    def check_record(self, partition, offset, name, sequence):
        """That record is there."""
        seen = self.seen[partition]
        if offset >= len(seen):
            raise AssertionError(f"lost: {name} {sequence} at {offset} of partition {partition}, which ends at {len(seen)}")
        wanted = sequence * len(NAMES) + NAMES.index(name)
        if seen[offset] != wanted:
            other = f"{NAMES[seen[offset] % len(NAMES)]} {seen[offset] // len(NAMES)}"
            raise AssertionError(f"{name} {sequence} was acknowledged at {offset} of {partition}, where {other} stands")

    def check_prefix_of(self, later):
        """Whatever was seen once stays."""
        for partition, seen in enumerate(self.seen):
            if later.seen[partition][: len(seen)] != seen:
                raise AssertionError(f"partition {partition}: a consumer saw what is not there any more")

    def count(self, name):
        """How many records of a producer there are."""
        return sum(count for (whose, _), count in self.expected.items() if whose == name)


class Witness:
    """A consumer that reads along from the start to the end."""

    def __init__(self, *arguments):
        self.reader = Reader(*arguments)
        self.failure = None
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        """Reads until it is stopped."""
        try:
            while not self.stop.is_set():
                self.reader.poll()
        except Exception as why:  # told by `end`, in the thread that waits for it
            self.failure = why

    def end(self):
        """Stops it; what it saw out of place is raised."""
        if self.stop.is_set():
            return
        self.stop.set()
        self.thread.join()
        self.reader.consumer.close()
        if self.failure:
            raise self.failure


def is_of_the_network(error):
    """Whether a consumer's error only says that its broker is away."""
    return error.name().startswith("_") and error.name() not in ("_AUTO_OFFSET_RESET", "_FATAL")


def commits(consumer, offset):
    """Whether a commit goes well; a coordinator that is not ready is asked again."""
    try:
        consumer.commit(offsets=[offset], asynchronous=False)
        return True
    except KafkaException as refused:
        if not refused.args[0].retriable() and not is_of_the_network(refused.args[0]):
            raise
        return False


def create_topic(bootstrap, topic, partitions, replicas=1):
    """Makes a topic, and waits until it is there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic(topic, partitions, replicas)])[topic].result(30)
    eventually(lambda: topic in admin.list_topics(timeout=10).topics, f"topic {topic}")


def librdkafka(_folder):
    """The command line of the librdkafka producer."""
    return [sys.executable, str(PROGRAMS / "produce.py")]


def java(folder):
    """Compiles the Java producer; returns its command line."""
    jars = install.jars(install.TESTS / "clients" / "java" / "pom.xml", kafka_version=JAVA_CLIENT)
    javac = install.program("javac", "default-jdk-headless")
    subprocess.run([javac, "-nowarn", "-cp", f"{jars}/*", "-d", folder, PROGRAMS / "Produce.java"], check=True)
    options = ["-Xmx192M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    return [install.java(), *options, "-cp", f"{folder}:{jars}/*", "Produce"]
