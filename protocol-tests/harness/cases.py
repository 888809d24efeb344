"""Runs the cases of a test program and says `ok NAME` or `FAIL NAME why` of each: the lines that the runner counts."""

import sys
import time
import traceback


class Cases:
    """The cases of one program. Give functions to `case`, and end with `sys.exit(cases.run())`."""

    def __init__(self):
        self.functions = []

    def case(self, function):
        """Registers a case; its name is the function's, its failure is any exception."""
        self.functions.append(function)
        return function

    def run(self, *arguments):
        """Runs every case with the same arguments; returns the number of failures, as an exit code."""
        return sum(not attempt(function.__name__, function, *arguments) for function in self.functions)


def attempt(name, function, *arguments):
    """Runs one case and prints its line; returns whether it passed."""
    try:
        function(*arguments)
    except Exception as why:
        traceback.print_exc(file=sys.stderr)
        fail(name, f"{type(why).__name__}: {why}")
        return False
    ok(name)
    return True


def ok(name):
    """One case passed."""
    print(f"ok {name}", flush=True)


def fail(name, why):
    """One case failed."""
    print(f"FAIL {name} {' '.join(str(why).split())[:500]}", flush=True)


def equal(got, wanted, what="value"):
    """Asserts equality, and says both sides when it does not hold."""
    if got != wanted:
        raise AssertionError(f"{what}: got {short(got)}, wanted {short(wanted)}")


def eventually(probe, what, seconds=20):
    """Calls `probe` until it gives something true; returns that."""
    end = time.monotonic() + seconds
    while True:
        value = probe()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"no {what} within {seconds} s")
        time.sleep(0.05)


def short(value):
    """A value's text, cut to a readable length."""
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}… ({len(text)} characters)"
