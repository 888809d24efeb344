"""Keeps what tools said of one broker, masked, so that two brokers can be compared."""

import re

from harness.brokers import tool as in_a_process
from tools.driver import Outcome
from tools.masks import masked


class Record:
    """What each step printed. Call it as the scenario's `run`."""

    def __init__(self, tools, bootstrap):
        self.tools = tools
        self.bootstrap = bootstrap
        self.steps = {}

    def __call__(self, name, tool, *arguments, first=False, own=False, stdin="", seconds=60, **shape):
        """Runs a tool; `first` puts the address before the tool's own command, `own` is a JVM of its own for a
        tool that says more when its process ends. See `shaped` for the rest."""
        address = ["--bootstrap-server", self.bootstrap]
        words = [*address, *arguments] if first else [*arguments, *address]
        outcome = alone(tool, *words) if own else self.tools.run(tool, *words, stdin=stdin, seconds=seconds)
        out, err = shaped(masked(outcome.out), **shape), shaped(masked(outcome.err), **shape)
        self.steps[name] = [f"exit {outcome.code}", *out, *(f"stderr: {line}" for line in err)]


def alone(tool, *words):
    """Runs a tool in its own process."""
    done = in_a_process(tool, *words)
    return Outcome(done.returncode, done.stdout, "")


def shaped(lines, sort=False, numbers=True, add=False, merge=False, unique=False):
    """Lines without what has no order (`sort`), no fixed numbers, no fixed parting (`add` adds up the last number of
    all lines) or no fixed count (`merge` leaves each kind of line once, `unique` each JSON object)."""
    if add:
        return [f"sum {sum(int(line.rsplit(':', 1)[1]) for line in lines)}"] if lines else []
    if not numbers or merge:
        lines = [re.sub(r"-?\d+(\.\d+)?", "N", line) for line in lines]
    if unique:
        lines = "\n".join(lines).replace("}{", "}\n{").splitlines()
        lines = sorted({line for line in lines if not line.startswith("Processed a total of")})
    if merge:
        lines = dict.fromkeys(re.sub(r"\[.*\]", "[…]", line) for line in lines)
    return sorted(lines) if sort else list(lines)


def without_absent_keys(kafka, ottla):
    """Kafka's lines `key=value` of those keys that Ottla has too: it has only those that it needs."""
    keys = {line.split("=")[0] for line in ottla}
    return [line for line in kafka if "=" not in line or line.split("=")[0] in keys]


def differences(kafka, ottla, explained):
    """Lines of a step that only one broker printed and that no entry of `explained` covers, as text; empty if none."""
    only_kafka = [line for line in kafka if line not in ottla and not explained(line)]
    only_ottla = [line for line in ottla if line not in kafka and not explained(line)]
    if only_kafka or only_ottla:
        return f"kafka: {' | '.join(only_kafka)} || ottla: {' | '.join(only_ottla)}"
    same = [line for line in ottla if line in kafka]
    if same != [line for line in kafka if line in ottla]:
        return f"in another order or number: kafka: {' | '.join(kafka)} || ottla: {' | '.join(ottla)}"
    return ""
