"""Runs `cargo test` and says each test as a case."""

import re
import subprocess
import sys

from harness.cases import fail, ok

BINARY = re.compile(r"^\s*(?:Running|Doc-tests) (.*)$")
TEST = re.compile(r"^test (\S.*) \.\.\. (ok|FAILED|ignored.*)$")


def test(*arguments):
    """`cargo test` with these arguments; ends the process with Cargo's code. A test's name has its crate in front."""
    command = ["cargo", "test", "--no-fail-fast", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    crate = "?"
    for line in process.stdout:
        print(line, end="", flush=True)
        if found := BINARY.match(line):
            crate = crate_of(found.group(1))
        elif found := TEST.match(line):
            tell(f"{crate}::{found.group(1)}", found.group(2))
    sys.exit(process.wait())


def crate_of(running):
    """`model` of Cargo's `unittests lib.rs (target/debug/deps/model-0123456789abcdef)`, or of a doc test's `model`."""
    found = re.search(r"/([^/]+)-[0-9a-f]{16}\)", running)
    return found.group(1) if found else running


def tell(name, outcome):
    """One test's line. An ignored test is a failure: here a test is right or it is not there."""
    name = name.replace(" ", "_")
    if outcome == "ok":
        ok(name)
    else:
        fail(name, outcome)
