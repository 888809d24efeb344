"""Installs what the suites need, by the ordinary clients of Debian, PyPI, npm and Maven.

Everything but Debian packages goes to a cache folder outside the checkout, named after the file that asks for it, so
that a second run installs nothing and a changed list is installed anew.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent
ROOT = TESTS.parent
CACHE = Path(os.environ.get("OTTLA_TESTS_CACHE", Path.home() / ".cache" / "ottla-tests"))

KAFKA_VERSION = "4.4.0"


def debian(*packages):
    """Installs the Debian packages that are not there yet."""
    missing = [package for package in packages if not _debian_has(package)]
    if not missing:
        return
    root = [] if os.geteuid() == 0 else ["sudo"]
    quiet = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    _command(root + ["apt-get", "update", "-qq"], **quiet)
    _command(root + ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], **quiet)


def program(name, *packages):
    """The path of a program; its Debian packages are installed if it is on no path."""
    if not shutil.which(name):
        debian(*packages)
    return shutil.which(name) or _refuse(f"{name} is not on the path, and {packages} did not bring it")


def python():
    """The interpreter of a virtual environment that has the Python clients."""
    wanted = TESTS / "clients" / "requirements.txt"

    def fill(folder):
        debian("python3-venv")
        _command(["python3", "-m", "venv", folder])
        _command([folder / "bin" / "pip", "install", "-q", "--disable-pip-version-check", "-r", wanted])

    return cached("python", [wanted], fill, in_place=True) / "bin" / "python"


def node_modules(package_json):
    """The folder `node_modules` that npm makes of a `package.json`."""

    def fill(folder):
        shutil.copy(package_json, folder)
        npm = program("npm", "nodejs", "npm")
        _command([npm, "install", "--silent", "--no-audit", "--no-fund", "--prefix", folder])

    return cached("node", [package_json], fill) / "node_modules"


def jars(pom, **properties):
    """The folder with all jars that a `pom.xml` asks for; `properties` are Maven's."""

    def fill(folder):
        mvn = program("mvn", "maven", "default-jdk-headless")
        defines = [f"-D{name.replace('_', '.')}={value}" for name, value in properties.items()]
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={folder}"]
        _command([mvn, "-q", "-B", "-f", pom, *defines, *goal])

    return cached("jars", [pom, *properties.values()], fill)


def kafka():
    """The jars of Apache Kafka's broker and tools."""
    return jars(TESTS / "kafka" / "pom.xml")


def java():
    """The Java launcher; `javac` stands beside it."""
    return program("java", "default-jdk-headless")


def cached(kind, inputs, fill, in_place=False):
    """A folder that `fill` fills once for the same inputs (files count by content). An interrupted fill is done again;
    `in_place` is for what may not be moved once it is made."""
    digest = hashlib.sha256()
    for each in inputs:
        digest.update(each.read_bytes() if isinstance(each, Path) else str(each).encode())
    folder = CACHE / f"{kind}-{digest.hexdigest()[:12]}"
    stamp = folder / ".complete"
    if not stamp.exists():
        shutil.rmtree(folder, ignore_errors=True)
        work = folder if in_place else folder.with_suffix(".part")
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        fill(work)
        if not in_place:
            work.rename(folder)
        stamp.touch()
    return folder


def _debian_has(package):
    query = ["dpkg-query", "-W", "-f=${db:Status-Status}", package]
    return subprocess.run(query, capture_output=True, text=True).stdout == "installed"


def _command(arguments, **options):
    arguments = [str(each) for each in arguments]
    done = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode:
        _refuse(f"{' '.join(arguments)} failed:\n{done.stdout[-4000:]}")


def _refuse(why):
    raise SystemExit(f"cannot install: {why}")
