"""Runs the test suites and counts what they say.

A suite is an executable file in `suites/`. Its first comments hold the line `# budget: N minutes`: it is stopped, and has
failed, when it takes longer. It prints `ok NAME` or `FAIL NAME why` for each case, and may print anything else; it has
also failed if it prints no case, or ends with another code than 0. Suites run in the order of their budgets, short ones
first. What each printed stays in the cache folder (~/.cache/ottla-tests/logs, or $OTTLA_TESTS_CACHE/logs).
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from harness import install

SUITES = Path(__file__).parent / "suites"


@dataclass
class Result:
    """What came out of one suite."""

    suite: str
    passed: int
    failed: int
    seconds: float


def main():
    arguments = command_line()
    environment = suite_environment(arguments)
    if arguments.against == "ottla" and not build(environment):
        print("0 passed, 1 failed")
        sys.exit(1)
    results = [run(name, environment, arguments.verbose) for name in arguments.suite or suites()]
    print_table(results)
    sys.exit(any(result.failed for result in results))


def command_line():
    names = suites()
    parser = argparse.ArgumentParser(prog="protocol-tests/run", description="Builds Ottla and runs test suites.")
    parser.add_argument("suite", nargs="*", help=f"suites to run, of: {', '.join(names)} (all)")
    parser.add_argument("--against", choices=["ottla", "kafka"], default="ottla", help="the broker; kafka tests the tests")
    parser.add_argument("--full", action="store_true", help="all rounds and seeds, not the shorter run of every day")
    parser.add_argument("--rounds", type=int, help="so many rounds, in suites that count by rounds")
    parser.add_argument("-v", "--verbose", action="store_true", help="print all that the suites print")
    arguments = parser.parse_args()
    unknown = [name for name in arguments.suite if name not in names]
    if unknown:
        parser.error(f"no suite {', '.join(unknown)}; there are: {', '.join(names)}")
    return arguments


def suites():
    """All suites, those with the shortest budget first."""
    return sorted((path.name for path in SUITES.iterdir() if os.access(path, os.X_OK)), key=lambda name: (budget(name), name))


def budget(name):
    """The minutes that a suite may take."""
    found = re.search(r"^# budget: (\d+) minutes?$", (SUITES / name).read_text(), re.MULTILINE)
    if not found:
        raise SystemExit(f"suite {name} says no budget")
    return int(found.group(1))


def suite_environment(arguments):
    """What every suite finds in its environment."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", install.ROOT / "target"))
    return {
        **os.environ,
        "PYTHONPATH": str(install.TESTS),
        "OTTLA_BINARY": str(target / "release" / "ottla"),
        "OTTLA_TESTS_AGAINST": arguments.against,
        "OTTLA_TESTS_FULL": "1" if arguments.full else "",
        "OTTLA_TESTS_ROUNDS": str(arguments.rounds or ""),
    }


def build(environment):
    """The binary that the suites start: README's first command, without running it."""
    print("building", flush=True)
    command = ["cargo", "build", "--release", "--quiet", "--package", "ottla"]
    return subprocess.run(command, cwd=install.ROOT, env=environment).returncode == 0


def run(name, environment, verbose):
    """Runs one suite in a process group of its own, so that nothing of it outlives its budget."""
    print(f"\n{name}: at most {budget(name)} minutes", flush=True)
    log_path = install.CACHE / "logs" / f"{name}.log"
    log_path.parent.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    process = subprocess.Popen(
        [SUITES / name],
        cwd=install.ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    timer = threading.Timer(budget(name) * 60, stop_group, [process])
    timer.start()
    with log_path.open("w") as log:
        passed, failed = count(process.stdout, log, verbose)
    code = process.wait()
    timer.cancel()
    seconds = time.monotonic() - start
    stop_group(process)
    if failed == 0 and (code != 0 or passed == 0):
        failed = 1
        print_end(name, code, seconds, log_path)
    print(f"{name}: {passed} passed, {failed} failed, {seconds:.0f} s", flush=True)
    return Result(name, passed, failed, seconds)


def count(lines, log, verbose):
    """Counts the cases of a suite while it runs; shows those that failed."""
    passed = failed = 0
    for line in lines:
        log.write(line)
        passed += line.startswith("ok ")
        failed += line.startswith("FAIL ")
        if verbose or line.startswith("FAIL "):
            print(f"  {line.rstrip()}", flush=True)
    return passed, failed


def stop_group(process):
    """Ends whatever is left of a suite."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def print_end(name, code, seconds, log_path):
    """Why a suite that named no failed case has failed."""
    late = seconds >= budget(name) * 60
    why = "took longer than its budget" if late else f"ended with code {code}, or without a case"
    print(f"  FAIL {name} {why}; the end of {log_path}:")
    for line in log_path.read_text().splitlines()[-30:]:
        print(f"    {line}")


def print_table(results):
    """The table of suites, and the line that sums it up."""
    print(f"\n{'suite':<12}{'passed':>8}{'failed':>8}{'seconds':>9}")
    for result in results:
        print(f"{result.suite:<12}{result.passed:>8}{result.failed:>8}{result.seconds:>9.0f}")
    passed, failed = sum(result.passed for result in results), sum(result.failed for result in results)
    print(f"\n{passed} passed, {failed} failed", flush=True)


if __name__ == "__main__":
    main()
