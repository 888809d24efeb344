"""Starts, kills and restarts the brokers that the suites talk to: Ottla, and Apache Kafka as the reference.

A broker is one process on a free port of 127.0.0.1 with a data folder of its own under a temporary folder. It is ready
when it has answered a real ApiVersions request.
"""

import os
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from harness import install

# Settings of a single node that tests need on both brokers: no wait for more members, groups on one node.
SINGLE_NODE = {
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "5",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
}


class Broker:
    """One broker process and its folder. Use it in a `with`: it is stopped and its folder removed at the end."""

    name = None
    ready_seconds = 30

    def __init__(self, settings=None, port=None):
        self.folder = Path(tempfile.mkdtemp(prefix=f"ottla-tests-{self.name}-"))
        self.data = self.folder / "data"
        self.log = self.folder / "broker.log"
        self.port = port or free_port()
        self.bootstrap = f"127.0.0.1:{self.port}"
        self.settings = {**SINGLE_NODE, **(settings or {})}
        self.process = None

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()
        if not os.environ.get("OTTLA_TESTS_KEEP"):
            shutil.rmtree(self.folder, ignore_errors=True)

    def command(self):
        """The command line that runs the broker; the folder is prepared here where a broker needs that."""
        raise NotImplementedError

    def start(self):
        """Starts the process and waits until it answers; returns the broker."""
        self.begin()
        self.wait_until_ready()
        return self

    def begin(self):
        """Starts the process."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), cwd=self.folder, env=clean_environment(), stdout=log, stderr=subprocess.STDOUT
            )

    def wait_until_ready(self):
        """Returns the seconds until the first ApiVersions was answered."""
        start = time.monotonic()
        while not answers(self.port):
            if self.process.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.process.returncode}:\n{self.tail()}")
            if time.monotonic() - start > self.ready_seconds:
                raise RuntimeError(f"{self.name} is not ready after {self.ready_seconds} s:\n{self.tail()}")
            time.sleep(0.002)
        return time.monotonic() - start

    def kill(self):
        """kill -9: nothing is flushed, nothing is said."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self, seconds=20):
        """SIGTERM; returns the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def restart(self):
        """Starts again on the same port and folder, after `kill` or `stop`."""
        return self.start()

    def tail(self, lines=30):
        """The last lines of the broker's log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Ottla(Broker):
    """The broker of this checkout, as the runner built it (`OTTLA_BINARY`)."""

    name = "ottla"

    @property
    def binary(self):
        return os.environ["OTTLA_BINARY"]

    def command(self):
        settings = {
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "log.dirs": str(self.data),
            **self.settings,
        }
        sets = [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]
        return [self.binary, "serve", *sets]


class Kafka(Broker):
    """Apache Kafka, one combined node."""

    name = "kafka"
    ready_seconds = 120

    def __init__(self, settings=None, port=None):
        super().__init__(settings, port)
        self.controller_port = free_port()
        self.properties = self.folder / "server.properties"

    def command(self):
        if not self.properties.exists():
            self.prepare()
        java = [install.java(), "-Xms512M", "-Xmx512M", "-XX:+UseG1GC", "-Djava.awt.headless=true"]
        return [*java, *self.class_path("info"), "kafka.Kafka", str(self.properties)]

    def prepare(self):
        """Writes server.properties and formats the folder, as every new Kafka node needs."""
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{self.controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self.controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
            "log.dirs": str(self.data),
            **self.settings,
        }
        self.properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        java = [install.java(), "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", *self.class_path("warn")]
        storage_tool = ["kafka.tools.StorageTool", "format", "-t", "5L6g3nShT-eMCtK--X86sw", "-c", self.properties]
        subprocess.run([*java, *storage_tool], check=True, stdout=subprocess.DEVNULL)

    def class_path(self, level):
        """Java's options for the class path and for a log of that level on standard output."""
        return [f"-Dlog4j2.configurationFile={log4j(self.folder, level)}", "-cp", f"{install.kafka()}/*"]


def tool(class_name, *arguments, seconds=60, **options):
    """Runs one of Kafka's command line tools (`TopicCommand`, `consumer.ConsoleConsumer`, or a name from `kafka.` on)."""
    if not class_name.startswith("kafka."):
        class_name = f"org.apache.kafka.tools.{class_name}"
    folder = install.CACHE
    java = [install.java(), "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command = [*java, f"-Dlog4j2.configurationFile={log4j(folder, 'warn')}", "-cp", f"{install.kafka()}/*", class_name]
    return subprocess.run([*command, *map(str, arguments)], capture_output=True, text=True, timeout=seconds, **options)


def log4j(folder, level):
    """A log4j2 configuration: `info` to standard output, anything else to standard error. Returns its path."""
    path = Path(folder) / f"log4j2-{level}.properties"
    path.write_text(
        f"rootLogger.level = {level}\n"
        "rootLogger.appenderRef.a.ref = a\n"
        "appender.a.type = Console\n"
        "appender.a.name = a\n"
        f"appender.a.target = {'SYSTEM_OUT' if level == 'info' else 'SYSTEM_ERR'}\n"
        "appender.a.layout.type = PatternLayout\n"
        "appender.a.layout.pattern = [%d] %p %m (%c)%n\n"
    )
    return path


def clean_environment():
    """The environment without what a broker would take for its configuration."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("KAFKA_", "OTTLA_"))}


def broker_under_test(settings=None, port=None):
    """Ottla; or Apache Kafka where the runner was called with `--against kafka`, which tests the tests."""
    kind = Kafka if os.environ.get("OTTLA_TESTS_AGAINST") == "kafka" else Ottla
    return kind(settings, port)


def free_port():
    """A port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def answers(port):
    """Whether the broker at that port answers an ApiVersions request (version 0)."""
    # api key 18, version 0, correlation id 7, no client id
    request = struct.pack(">hhih", 18, 0, 7, -1)
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.recv(8)
            return len(answer) == 8 and struct.unpack(">ii", answer)[1] == 7
    except OSError:
        return False
