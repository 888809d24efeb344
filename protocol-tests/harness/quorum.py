"""Controllers in one quorum: Ottla's, Apache Kafka's, or some of each; and Ottla's nodes that are brokers too.

Ottla's alone begin with empty folders. Where one of them is Kafka's, all folders are formatted by Kafka's own tool.
"""

import base64
import json
import uuid
from pathlib import Path

from harness.brokers import Kafka, Ottla, free_port, tool
from harness.cases import eventually

FOLDER = "__cluster_metadata-0"


class Quorum:
    """One controller of each kind that is given, with the ids from 1 on. Use it in a `with`."""

    def __init__(self, *kinds):
        ports, is_formatted = [free_port() for _ in kinds], KafkaController in kinds
        self.nodes = [kind(number, ports, is_formatted) for number, kind in enumerate(kinds, 1)]
        self.is_formatted = is_formatted

    def __enter__(self):
        try:
            if self.is_formatted:
                self.format()
            for node in self.nodes:
                node.begin()
            return self
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        for node in self.nodes:
            node.__exit__()

    def format(self):
        """What a user of Kafka does with every new node."""
        cluster = random_id()
        initial = ",".join(f"{node.number}@{node.bootstrap}:{random_id()}" for node in self.nodes)
        for node in self.nodes:
            arguments = ["format", "-t", cluster, "-c", node.write_properties(), "--initial-controllers", initial]
            tool("kafka.tools.StorageTool", *arguments).check_returncode()

    def leader(self, seconds=60):
        """The node that all that run follow, when it is so."""
        return eventually(self._leader, "leader that all follow", seconds)

    def _leader(self):
        alive = [node for node in self.nodes if node.process.poll() is None]
        led = {node.led_by() for node in alive}
        return next((node for node in alive if {node.number} == {leader for leader, _ in led} and len(led) == 1), None)

    def wait_until_equal(self, seconds=60):
        """Until all metadata logs are the same, but for what was appended just now; how many bytes they share."""
        return eventually(self._equal_bytes, "metadata logs that are equal", seconds)

    def _equal_bytes(self):
        logs = [node.metadata_log() for node in self.nodes]
        shared, longest = min(map(len, logs)), max(map(len, logs))
        return shared if longest - shared < 500 and len({log[:shared] for log in logs}) == 1 else 0


class Controller:
    """What both kinds have."""

    def __init__(self, number, ports, is_formatted):
        super().__init__(controller_settings(number, ports, is_formatted), ports[number - 1])
        self.number = number

    def write_properties(self):
        """Writes the configuration as a file; its path."""
        path = self.folder / "server.properties"
        settings = {**self.settings, "log.dirs": self.data}
        path.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
        return path

    def led_by(self):
        """The leader that its quorum-state names, and the epoch; -1 where there is none."""
        try:
            state = json.loads((self.data / FOLDER / "quorum-state").read_text())
            return state["leaderId"], state["leaderEpoch"]
        except (FileNotFoundError, ValueError):
            return -1, -1

    def metadata_log(self):
        """The bytes of its metadata log."""
        return (self.data / FOLDER / "00000000000000000000.log").read_bytes()


class OttlaController(Controller, Ottla):
    """A controller of this checkout."""


class OttlaNode(OttlaController):
    """A broker and controller of this checkout."""

    def __init__(self, number, ports, is_formatted):
        super().__init__(number, ports, is_formatted)
        self.clients = f"127.0.0.1:{free_port()}"
        listeners = f"{self.settings['listeners']},PLAINTEXT://{self.clients}"
        self.settings |= {"process.roles": "broker,controller", "listeners": listeners}


class KafkaController(Controller, Kafka):
    """A controller of Apache Kafka."""


def controller_settings(number, ports, is_formatted):
    """What a controller alone is told: all voters; or, where the folder names them, where it may ask."""
    servers = [f"127.0.0.1:{port}" for port in ports]
    voters = [f"{each}@{server}" for each, server in enumerate(servers, 1)]
    asked, told = ("bootstrap.servers", servers) if is_formatted else ("voters", voters)
    return {
        "process.roles": "controller",
        "node.id": str(number),
        "controller.listener.names": "CONTROLLER",
        "listeners": f"CONTROLLER://{servers[number - 1]}",
        f"controller.quorum.{asked}": ",".join(told),
    }


def random_id():
    """A random id as Kafka writes them; none begins with a dash."""
    text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
    return random_id() if text.startswith("-") else text
