"""Files on disk: `kafka-dump-log` reads what Ottla wrote, and Ottla opens what Kafka wrote."""

import re
import shutil

from harness.brokers import Broker
from harness.cases import equal
from tools.scenario import CODECS, CONSUMER, OFFSETS, PRODUCER, TOPICS

# kafka-dump-log ends with 0 whatever it finds.
BAD = re.compile(r"isvalid: false|invalid bytes|[Mm]ismatch|Exception|Error|out of order|Could not|corrupt|not loadable")
FOREIGN = "f1"
FOREIGN_RECORDS = 2000


def read_everything(tools, data):
    """Dumps every file of every partition below `data`."""
    kinds = set()
    for path in sorted(data.glob("*-*/*")):
        if path.suffix in (".log", ".index", ".timeindex", ".snapshot", ".checkpoint") and path.stat().st_size:
            kinds.add(path.suffix)
            found = BAD.search(dump(tools, path))
            if found:
                raise AssertionError(f"{path.parent.name}/{path.name}: {found.group()}")
    missing = {".log", ".index", ".timeindex", ".snapshot"} - kinds
    equal(missing, set(), "kinds of files that no partition has")


def dump(tools, path):
    """What kafka-dump-log says of a file."""
    decoder = {"__cluster_metadata": "--cluster-metadata-decoder", "__consumer_offsets": "--offsets-decoder"}
    topic = path.parent.name.rsplit("-", 1)[0]
    arguments = ["--files", path]
    if path.suffix in (".log", ".checkpoint"):
        arguments += ["--print-data-log", "--deep-iteration", *([decoder[topic]] if topic in decoder else [])]
    if path.suffix == ".index":
        arguments += ["--index-sanity-check"]
    outcome = tools.run("DumpLogSegments", *arguments)
    return outcome.out + outcome.err


def say_records(tools, data):
    """The logs of groups and of the cluster hold what the scenario left, as Kafka's decoders see it."""
    metadata = "".join(dump(tools, path) for path in data.glob("__cluster_metadata-0/*.log"))
    for kind in ["REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "REMOVE_TOPIC_RECORD"]:
        equal(f'"type":"{kind}"' in metadata, True, kind)
    groups = "".join(dump(tools, path) for path in data.glob("__consumer_offsets-*/*.log"))
    for text in ['"group":"g1"', '"topic":"c1"', '"protocolType":"consumer"']:
        equal(text in groups, True, text)


def same_records(tools, kafka_data, data):
    """A partition that got the same records from the same producers holds the same."""
    equal(records(tools, data), records(tools, kafka_data), "records of c1-0")


def records(tools, data):
    """The lines of the records of `c1-0`, without their times."""
    lines = dump(tools, data / "c1-0" / "00000000000000000000.log").splitlines()
    return [re.sub(r"CreateTime: \d+", "", line) for line in lines if line.startswith("| offset")]


def create_foreign(tools, broker: Broker):
    """The topic whose files will change hands; without records."""
    create = ["--create", "--topic", FOREIGN, "--partitions", 1, "--config", "segment.bytes=1048576"]
    tools.run(TOPICS, "--bootstrap-server", broker.bootstrap, *create)


def fill_foreign(tools, kafka: Broker):
    """Records of every codec in several segments, some with keys and headers; returns what a consumer reads."""
    to = ["--bootstrap-server", kafka.bootstrap, "--topic", FOREIGN]
    for codec in CODECS:
        each = ["--num-records", (FOREIGN_RECORDS - 5) // 5, "--record-size", 2000, "--throughput", -1]
        tools.run("ProducerPerformance", *to, *each, "--command-property", f"compression.type={codec}")
    headers = ["--reader-property", "parse.headers=true", "--reader-property", "parse.key=true"]
    lines = "".join(f"h:{i},h:again\tkey {i}\tvalue {i}\n" for i in range(5))
    tools.run(PRODUCER, *to, *headers, stdin=lines)
    return consume_foreign(tools, kafka)


def consume_foreign(tools, broker):
    """Everything a consumer can see of the topic, times included."""
    show = [f"--formatter-property=print.{what}=true" for what in ["partition", "offset", "key", "headers", "timestamp"]]
    read = ["--topic", FOREIGN, "--partition", 0, "--offset", "earliest", "--max-messages", FOREIGN_RECORDS, *show]
    outcome = tools.run(CONSUMER, "--bootstrap-server", broker.bootstrap, *read, "--timeout-ms", 15000)
    lines = outcome.out.splitlines()
    equal(len(lines), FOREIGN_RECORDS, f"records read from {broker.name}")
    return lines


def move_foreign(kafka_data, data):
    """Gives Kafka's files of the partition to the other broker, both stopped. The topic's id stays the receiver's."""
    folder = data / f"{FOREIGN}-0"
    for path in folder.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in (kafka_data / f"{FOREIGN}-0").iterdir():
        if path.name != "partition.metadata":
            shutil.copy(path, folder)


def open_foreign(tools, broker, wanted):
    """The receiver shows the same records at the same offsets, and goes on where they end."""
    equal(consume_foreign(tools, broker), wanted, "records")
    to = ["--bootstrap-server", broker.bootstrap, "--topic", FOREIGN]
    tools.run(PRODUCER, *to, stdin="one more\n")
    equal(tools.run(OFFSETS, *to).out.strip(), f"{FOREIGN}:0:{FOREIGN_RECORDS + 1}", "end")
