"""Disks that lose power, fail and fill up: ext4 in a file, mounted through a loop device.

This needs root and loop devices. Where they are missing, a `LoopDisk` cannot be made and the case fails: durability is
not something to skip.
"""

import fcntl
import os
import shutil
import struct
import subprocess
import tempfile
import time
from pathlib import Path

from harness import install

# EXT4_IOC_SHUTDOWN, and its flag for not even writing the journal: what a power cut leaves.
SHUTDOWN = 0x8004587D
NO_LOG_FLUSH = 2
# What `fill` leaves to others.
LEFT_BYTES = 256 << 10


class LoopDisk:
    """A small disk of its own. Use it in a `with`: it is unmounted and removed at the end."""

    def __init__(self, mebibytes):
        self.folder = Path(tempfile.mkdtemp(prefix="ottla-tests-disk-"))
        self.image, self.mount_point = self.folder / "image", self.folder / "mnt"
        self.ballast = self.mount_point / "ballast"
        self.mount_point.mkdir()
        with self.image.open("wb") as image:
            image.truncate(mebibytes << 20)

    def __enter__(self):
        command("mkfs.ext4", "-q", "-F", "-m", "0", self.image)
        self.mount()
        return self

    def __exit__(self, *_):
        if self.mount_point.is_mount():
            self.unmount()
        shutil.rmtree(self.folder, ignore_errors=True)

    def mount(self):
        """Makes it usable; after a power cut this replays the journal."""
        command("mount", "-o", "loop", self.image, self.mount_point)

    def unmount(self):
        """Waits for those that a killed process still keeps open."""
        end = time.monotonic() + 20
        while subprocess.run(["umount", self.mount_point], stderr=subprocess.DEVNULL).returncode:
            if time.monotonic() > end:
                raise RuntimeError(f"{self.mount_point} stays busy")
            time.sleep(0.05)

    def cut_power(self):
        """From now on nothing reaches the disk and every call fails, until `restore_power`."""
        descriptor = os.open(self.mount_point, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, SHUTDOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(descriptor)

    def restore_power(self):
        """What was synced is there again, and nothing else. Nobody may have a file open."""
        self.unmount()
        self.mount()

    def fill(self, leave=LEFT_BYTES):
        """Takes the space that is left, but a little that whoever writes takes himself."""
        statistics = os.statvfs(self.mount_point)
        free = statistics.f_bavail * statistics.f_frsize
        with self.ballast.open("wb") as ballast:
            os.posix_fallocate(ballast.fileno(), 0, max(free - leave, 1))

    def free(self):
        """Gives that space back."""
        self.ballast.unlink()


class FailingCalls:
    """Makes these system calls of a process fail with EIO on these files. Use it in a `with`."""

    def __init__(self, pid, calls, paths):
        paths = [word for path in paths for word in ("-P", path)]
        inject = ["-e", f"trace={calls}", "-e", f"inject={calls}:error=EIO"]
        self.command = [install.program("strace", "strace"), "-f", "-p", pid, "-o", "/dev/null", *inject, *paths]
        self.process = None

    def __enter__(self):
        words = [str(word) for word in self.command]
        self.process = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
        attached = self.process.stderr.readline()
        if "attached" not in attached:
            raise RuntimeError(f"strace: {attached.strip()}")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


def command(*words):
    """Runs a program; its failure says what it wrote."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.stdout.strip()}")
