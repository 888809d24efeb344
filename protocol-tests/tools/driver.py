"""Runs Kafka's command line tools, many in one JVM: see Tools.java."""

import base64
import subprocess
from dataclasses import dataclass
from pathlib import Path

from harness import install


@dataclass
class Outcome:
    """How a tool ended (-1: not in time), and what it printed."""

    code: int
    out: str
    err: str


class Tools:
    """A JVM that runs tools one after the other. Use it in a `with`."""

    def __enter__(self):
        java = [install.java(), "-Xmx256M", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        quiet = f"-Dlog4j2.configurationFile={Path(__file__).parent / 'log4j2.properties'}"
        class_path = f"{install.kafka()}/*:{_classes()}"
        self.process = subprocess.Popen(
            [*java, quiet, "-cp", class_path, "Tools"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def run(self, tool, *arguments, stdin="", seconds=60):
        """Runs a tool by its class, from `org.apache.kafka.tools.` on."""
        words = [seconds, f"org.apache.kafka.tools.{tool}", stdin, *arguments]
        self.process.stdin.write(" ".join(_encode(str(word)) for word in words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the JVM of the tools has ended in {tool}")
        code, out, err = (_decode(word) for word in answer.rstrip("\n").split(" "))
        return Outcome(int(code), out, err)


def _classes():
    """The folder with the compiled Tools.java."""
    source = Path(__file__).parent / "Tools.java"

    def fill(folder):
        javac = install.program("javac", "default-jdk-headless")
        subprocess.run([javac, "-cp", f"{install.kafka()}/*", "-d", folder, source], check=True)

    return install.cached("tools", [source], fill)


def _encode(text):
    return base64.b64encode(text.encode()).decode()


def _decode(word):
    return base64.b64decode(word).decode(errors="replace")
