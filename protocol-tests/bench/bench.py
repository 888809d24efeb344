"""Measures Ottla beside Apache Kafka 4.4 and the floor, in turns in one run, and prints tables.

What counts is the CPU time of the broker's process for each GB (10^9 bytes) of record batches: throughput on a machine
that client and broker share says little. Each value is the median of the runs, its range behind it. Kafka runs as it comes,
without fsync; Ottla and the floor answer when the bytes are on disk.

How to read it, and what to beware of:
* A machine's first touch of memory, and its disk, cost every broker alike: `bare append` is a loop that only writes as
  many bytes to a file.
* An idle virtual CPU wakes slowly, so a quiet machine looks slower than a busy one. `latency` measures twice, the second
  time with a process of idle priority that spins on each CPU. The kernel's own workers, by which a flush ends, may stand
  behind such a process for tens of ms: that time is the kernel's, and only a broker that flushes has it.
* Below a factor of two, single runs of a busy machine are noise.
* Kafka's code is compiled while it runs: each broker is warmed up before it is measured.
"""

import argparse
import contextlib
import os
import socket
import statistics
import subprocess
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

from harness import brokers, install

BENCH = Path(__file__).resolve().parent
PARTS = ["produce", "latency", "memory", "start"]
TICKS = os.sysconf("SC_CLK_TCK")
CELLS = [(partitions, size, codec) for partitions in (6, 64) for size in (100, 1024) for codec in ("none", "lz4")]
QUICK_CELLS = [(6, 1024, "none"), (64, 1024, "none"), (6, 100, "lz4")]


def main():
    arguments = command_line()
    programs = Programs(arguments)
    print(f"{machine()}; {arguments.runs} runs each")
    for part in arguments.part or PARTS:
        globals()[part](arguments, programs)


def command_line():
    parser = argparse.ArgumentParser(prog="protocol-tests/bench/run", description="Measures Ottla, Kafka and the floor.")
    parser.add_argument("part", nargs="*", metavar="PART", help=f"of: {', '.join(PARTS)} (all)")
    parser.add_argument("--runs", type=int, help="how often each value is measured (5)")
    parser.add_argument("--quick", action="store_true", help="few cells, few bytes, 3 runs: a first look")
    parser.add_argument("--only", action="append", help="these brokers alone: ottla, kafka, floor, or NAME=BINARY of another Ottla")
    parser.add_argument("--profile", default="dist", choices=["dist", "release"], help="how Ottla is built (dist)")
    parser.add_argument("--seconds", type=float, help="how long each load runs")
    parser.add_argument("--cells", help="of `produce`: as 6x1024xnone,64x100xlz4")
    arguments = parser.parse_args()
    unknown = [part for part in arguments.part if part not in PARTS]
    if unknown:
        parser.error(f"no part {', '.join(unknown)}; there are: {', '.join(PARTS)}")
    arguments.runs = arguments.runs or (3 if arguments.quick else 5)
    arguments.seconds = arguments.seconds or (2 if arguments.quick else 5)
    arguments.bytes = 300_000_000 if arguments.quick else 1_000_000_000
    return arguments


def machine():
    """What the values were measured on."""
    load = os.getloadavg()[0]
    return f"{os.cpu_count()} CPUs, kernel {os.uname().release}, load {load:.1f}"


class Programs:
    """The binaries that are measured and that measure."""

    def __init__(self, arguments):
        self.kinds = {}
        target = Path(os.environ.get("CARGO_TARGET_DIR", install.ROOT / "target"))
        only = arguments.only or ["ottla", "kafka", "floor"]
        if "ottla" in only:
            cargo("--package", "ottla", "--profile", arguments.profile, cwd=install.ROOT)
            self.kinds["ottla"] = ottla(target / arguments.profile / "ottla")
        for name, binary in (each.split("=") for each in only if "=" in each):
            self.kinds[name] = ottla(Path(binary).resolve())
        if "kafka" in only:
            self.kinds["kafka"] = Kafka
        cargo("--release", cwd=BENCH)
        own = Path(os.environ.get("CARGO_TARGET_DIR", BENCH / "target"))
        self.load = own / "release" / "bench"
        self.has_floor = "floor" in only

    def run(self, command, port=None, **options):
        """One of the load generator's commands: what it printed, as numbers."""
        words = [str(self.load), command, *(["--port", str(port)] if port else [])]
        words += [word for name, value in options.items() for word in (f"--{name.replace('_', '-')}", str(value))]
        done = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True)
        return {name: float(value) for name, value in (pair.split("=") for pair in done.stdout.split())}


def cargo(*arguments, cwd):
    subprocess.run(["cargo", "build", "--quiet", *arguments], cwd=cwd, check=True)


class Kafka(brokers.Kafka):
    """With the options of kafka-server-start.sh."""

    HEAP = "-Xms1G -Xmx1G -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35"

    def command(self):
        java, *rest = super().command()
        options = [word for word in rest if not word.startswith("-X")]
        return [java, "-server", *self.HEAP.split(), "-XX:+ExplicitGCInvokesConcurrent", *options]


def ottla(path):
    """A broker class for one binary."""

    class Ottla(brokers.Ottla):
        binary = str(path)

    return Ottla


class Floor(brokers.Broker):
    """It knows no topics: its folder is new for every run."""

    name = "floor"

    def __init__(self, load):
        super().__init__()
        self.load = load

    def command(self):
        self.data.mkdir()
        return [self.load, "floor", "--port", str(self.port), "--folder", str(self.data)]

    def wait_until_ready(self):
        while True:
            with contextlib.suppress(ConnectionRefusedError), socket.create_connection(("127.0.0.1", self.port)):
                return
            time.sleep(0.01)


SETTINGS = {"log.segment.delete.delay.ms": "1000", "auto.create.topics.enable": "false"}


@dataclass
class Values:
    """The values of one broker in one row."""

    cpu: list = field(default_factory=list)
    rate: list = field(default_factory=list)


def cpu_seconds(process):
    """User and system time of a process and all its threads."""
    words = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(words[11]) + int(words[12])) / TICKS


def status_mib(process, name):
    """A line of /proc/PID/status, such as VmRSS, in MiB."""
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError(f"no {name}")


def spread(values, digits=2):
    """The median and the range."""
    if not values:
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} [{low:.{digits}f}..{high:.{digits}f}]"


def ratio(ours, theirs):
    """How many times one median is the other."""
    return f"{statistics.median(ours) / max(statistics.median(theirs), 0.001):.2f}"


def print_row(title, *words):
    print((title.ljust(18) + "".join(word.ljust(24) for word in words)).rstrip(), flush=True)


@contextlib.contextmanager
def all_brokers(programs):
    """One of each, all running: each is idle while another is measured."""
    with contextlib.ExitStack() as stack:
        yield {name: stack.enter_context(kind(SETTINGS)) for name, kind in programs.kinds.items()}


def produce(arguments, programs):
    """CPU for each GB produced and consumed, and throughput."""
    cells = QUICK_CELLS if arguments.quick else CELLS
    if arguments.cells:
        cells = [(int(p), int(s), c) for p, s, c in (cell.split("x") for cell in arguments.cells.split(","))]
    limits = {"seconds": arguments.seconds, "bytes": arguments.bytes}
    print("\nCPU seconds of the broker for each GB, and MB/s; acks=all")
    with all_brokers(programs) as running:
        for broker in running.values():
            turn(programs, broker, "warm", (6, 1024, "none"), {**limits, "seconds": 2 * arguments.seconds})
        for cell in cells:
            produce_cell(arguments, programs, running, cell, limits)


def produce_cell(arguments, programs, running, cell, limits):
    floor = ["floor"] if programs.has_floor else []
    produced = {name: Values() for name in [*running, *floor]}
    consumed = {name: Values() for name in running}
    bare = []
    for number in range(arguments.runs):
        for name, broker in running.items():
            results = turn(programs, broker, f"run{number}", cell, limits)
            for values, (cpu, rate) in zip((produced[name], consumed[name]), results):
                values.cpu.append(cpu)
                values.rate.append(rate)
        if programs.has_floor:
            with Floor(programs.load) as floor:
                cpu, rate = measure(programs, floor, "produce", cell, limits, "run")
                produced["floor"].cpu.append(cpu)
                produced["floor"].rate.append(rate)
        bare.append(bare_append(programs, limits["bytes"] // 2))
    print_cell(cell, bare, produced, consumed)


def print_cell(cell, bare, produced, consumed):
    """A small table: a column a broker, and how many times its CPU Ottla needs."""
    partitions, size, codec = cell
    others = [name for name in produced if name != "ottla" and "ottla" in produced]
    print(f"\n{partitions} partitions, {size} B, {codec}; bare append {spread(bare)} s/GB")
    print_row("", *produced, *(f"ottla/{name}" for name in others))
    for title, table in (("produce", produced), ("consume", consumed)):
        if not table:
            continue
        columns = [table.get(name, Values()) for name in produced]
        ratios = [ratio(table["ottla"].cpu, table[name].cpu) for name in others if name in table]
        print_row(f"{title} s/GB", *(spread(values.cpu) for values in columns), *ratios)
        print_row(f"{title} MB/s", *(spread(values.rate, 0) for values in columns))


def turn(programs, broker, topic, cell, limits):
    """Produces to a new topic, reads it, and deletes it."""
    partitions, size, codec = cell
    topic = f"{topic}-{partitions}-{size}-{codec}"
    programs.run("create", broker.port, topic=topic, partitions=partitions)
    produced = measure(programs, broker, "produce", cell, limits, topic)
    consumed = measure(programs, broker, "consume", cell, {"connections": 2}, topic)
    programs.run("delete", broker.port, topic=topic)
    return produced, consumed


def measure(programs, broker, command, cell, limits, topic):
    """CPU seconds for each GB, and MB/s."""
    partitions, size, codec = cell
    before = cpu_seconds(broker.process)
    done = programs.run(command, broker.port, topic=topic, partitions=partitions, record_bytes=size, codec=codec, **limits)
    cpu = cpu_seconds(broker.process) - before
    return cpu / (done["bytes"] / 1e9), done["bytes"] / 1e6 / done["seconds"]


def bare_append(programs, size):
    """CPU seconds for each GB of a loop that appends to a file."""
    with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
        before = children_seconds()
        done = programs.run("append", file=f"{folder}/file", bytes=size)
        return (children_seconds() - before) / (done["bytes"] / 1e9)


def children_seconds():
    times = os.times()
    return times.children_user + times.children_system


def latency(arguments, programs):
    """The time until a batch is acknowledged, at 20,000 records of 1 KiB each second; fdatasync beside it."""
    print("\nack latency in ms at 20,000 x 1 KiB/s, 6 partitions, acks=all, a batch each ms")
    with all_brokers(programs) as running:
        latency_table(arguments, programs, running, "CPUs idle")
        with spinners():
            latency_table(arguments, programs, running, "CPUs kept awake")


def latency_table(arguments, programs, running, title):
    times = {name: {"p50_us": [], "p99_us": []} for name in [*running, "fdatasync"]}
    seconds = max(2, int(arguments.seconds * 2))
    for number in range(-1, arguments.runs):
        for name, broker in running.items():
            programs.run("create", broker.port, topic=f"latency{number}", partitions=6)
            done = programs.run("latency", broker.port, topic=f"latency{number}", partitions=6, seconds=seconds)
            programs.run("delete", broker.port, topic=f"latency{number}")
            keep(times[name], done, number)
        with tempfile.TemporaryDirectory(prefix="ottla-bench-") as folder:
            keep(times["fdatasync"], programs.run("fdatasync", file=f"{folder}/file", seconds=seconds), number)
    print_row(title, *times)
    for row, key in (("p50", "p50_us"), ("p99", "p99_us")):
        print_row(row, *(spread([value / 1000 for value in each[key]]) for each in times.values()))


def keep(times, done, number):
    """The first round only warms up."""
    if number >= 0:
        for name, values in times.items():
            values.append(done[name])


@contextlib.contextmanager
def spinners():
    """A process of idle priority on each CPU, so that none of them sleeps deeply."""
    spin = ["chrt", "--idle", "0", "sh", "-c", "while :; do :; done"]
    processes = [subprocess.Popen(spin) for _ in range(os.cpu_count())]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def memory(arguments, programs):
    """RSS when idle, with 64 partitions, and at most under load."""
    rows = {"idle": {}, "64 partitions": {}, "peak, produce": {}, "peak, consume": {}}
    limits = {"seconds": arguments.seconds * 2, "bytes": 2 * arguments.bytes}
    for _ in range(arguments.runs):
        for name, kind in programs.kinds.items():
            with kind(SETTINGS) as broker:
                time.sleep(1)
                note(rows, "idle", name, status_mib(broker.process, "VmRSS"))
                programs.run("create", broker.port, topic="memory", partitions=64)
                time.sleep(1)
                note(rows, "64 partitions", name, status_mib(broker.process, "VmRSS"))
                measure(programs, broker, "produce", (64, 1024, "none"), limits, "memory")
                note(rows, "peak, produce", name, status_mib(broker.process, "VmHWM"))
                measure(programs, broker, "consume", (64, 1024, "none"), {"connections": 2}, "memory")
                note(rows, "peak, consume", name, status_mib(broker.process, "VmHWM"))
    print_rows("\nRSS in MiB; load: 64 partitions, 1 KiB", rows, programs, 0)


def start(arguments, programs):
    """The time from exec to the first answered ApiVersions; then, to the first Produce to 100 of the 1,000 partitions."""
    rows = {row: {} for row in ("empty folder", "1,000 partitions", "and Produce", "after kill -9", "and Produce again")}
    for _ in range(arguments.runs):
        for name, kind in programs.kinds.items():
            broker = kind(SETTINGS)
            with contextlib.ExitStack() as stack:
                stack.push(broker.__exit__)
                note(rows, "empty folder", name, started(broker))
                for number in range(10):
                    programs.run("create", broker.port, topic=f"start{number}", partitions=100)
                broker.stop(60)
                begin = time.monotonic()
                note(rows, "1,000 partitions", name, started(broker))
                note(rows, "and Produce", name, writable(programs, broker, begin))
                programs.run("produce", broker.port, topic="start0", partitions=100, seconds=1, bytes=200_000_000)
                broker.kill()
                begin = time.monotonic()
                note(rows, "after kill -9", name, started(broker))
                note(rows, "and Produce again", name, writable(programs, broker, begin))
    print_rows("\nms from exec to the first answered ApiVersions, and to the first Produce to 100 partitions", rows, programs, 0)


def started(broker):
    """Milliseconds until a broker that does not run answers."""
    broker.command()  # formats the folder, where a broker wants that
    begin = time.monotonic()
    broker.start()
    return (time.monotonic() - begin) * 1000


def writable(programs, broker, begin):
    """Milliseconds since `begin` until 100 partitions were written to."""
    programs.run("wait", broker.port, topic="start0", partitions=100)
    return (time.monotonic() - begin) * 1000


def note(rows, row, name, value):
    rows[row].setdefault(name, []).append(value)


def print_rows(title, rows, programs, digits):
    print(title)
    print_row("", *programs.kinds)
    for row, values in rows.items():
        print_row(row, *(spread(values.get(name, []), digits) for name in programs.kinds))


if __name__ == "__main__":
    main()
