"""Docker for the suites: an engine that runs, and base images where they cannot be pulled.

The images in `docker/` are what a user anywhere builds. Where no registry is reached, their base images are made here
under the same names: Debian by debootstrap, the compiler's by copying this machine's toolchain. Certificate authorities
that this machine trusts besides the usual ones go into these base images too.
"""

import contextlib
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

from harness import install

DEBIAN = "debian:bookworm-slim"
RUST = "rust:1.95-slim-bookworm"
LOCAL_AUTHORITIES = Path("/usr/local/share/ca-certificates")


@contextlib.contextmanager
def engine():
    """A running engine with the base images; one that was started here is stopped at the end."""
    install.program("docker-compose", "docker.io", "docker-compose")
    started = None if is_up() else start_engine()
    try:
        base_images()
        yield
    finally:
        if started:
            started.terminate()
            started.wait(30)
            # The engine leaves it at DROP, which would cut off bridges of others.
            subprocess.run(["iptables", "-P", "FORWARD", "ACCEPT"], check=False)


def is_up():
    """Whether an engine answers."""
    return subprocess.run(["docker", "info"], capture_output=True).returncode == 0


def start_engine():
    """Starts dockerd; returns its process."""
    install.debian("docker.io", "iptables")
    for stale in ("/var/run/docker.pid", "/var/run/docker/containerd/containerd.pid"):
        Path(stale).unlink(missing_ok=True)
    install.CACHE.mkdir(parents=True, exist_ok=True)
    with (install.CACHE / "dockerd.log").open("wb") as log:
        process = subprocess.Popen(["dockerd"], stdout=log, stderr=subprocess.STDOUT)
    for _ in range(300):
        if is_up():
            return process
        time.sleep(0.1)
    raise SystemExit(f"dockerd does not start: see {install.CACHE}/dockerd.log")


def base_images():
    """Pulls the base images, or makes them."""
    for image, make in ((DEBIAN, make_debian), (RUST, make_rust)):
        if docker("image", "inspect", image) or docker("pull", "-q", image):
            continue
        print(f"{image} cannot be pulled: making it", flush=True)
        with tempfile.TemporaryDirectory(dir=install.CACHE) as folder:
            make(Path(folder))


def docker(*arguments):
    """Whether a docker command succeeds."""
    return subprocess.run(["docker", *arguments], capture_output=True, timeout=120).returncode == 0


def make_debian(folder):
    """Debian's smallest system, by debootstrap."""
    install.debian("debootstrap")
    root = folder / "root"
    shell(f"debootstrap --variant=minbase bookworm {root} >/dev/null")
    authorities = root / LOCAL_AUTHORITIES.relative_to("/")
    authorities.mkdir(parents=True, exist_ok=True)
    for certificate in LOCAL_AUTHORITIES.glob("*.crt"):
        shutil.copy(certificate, authorities)
    archive = f"tar -C {root} --exclude=./var/cache/apt/archives --exclude=./var/lib/apt/lists -c ."
    shell(f"{archive} | docker import --change 'CMD [\"bash\"]' - {DEBIAN}")


def make_rust(folder):
    """The compiler's image, with this machine's toolchain."""
    (folder / "Dockerfile").write_text(
        f"FROM {DEBIAN}\n"
        "RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates gcc libc6-dev\n"
        "COPY . /usr/local/rustup\n"
        "ENV PATH=/usr/local/rustup/bin:$PATH CARGO_HOME=/usr/local/cargo\n"
    )
    sysroot = '"$(rustc --print sysroot)"'
    shell(f"tar -C {sysroot} -c --exclude=./share . -C {folder} Dockerfile | docker build -q -t {RUST} -")


def shell(line):
    """Runs a line of bash; its failure ends the suite."""
    subprocess.run(["bash", "-euo", "pipefail", "-c", line], check=True)
