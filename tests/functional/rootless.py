"""A rootless podman of a user that this machine does not have, for tests that run as root.

Each command runs in a mount name space of its own, in which /etc/passwd and /etc/subuid know the user.

with rootless_podman(base_tar) as user:
    user.run([user.podman, "run", "--rm", user.image, "id"])
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
from processes import PATIENCE

UID = 64321
NAME = "ectest"
REPOSITORY = Path(__file__).resolve().parents[2]
_ENTER = (
    'for file in passwd group subuid subgid; do mount --bind "$0/$file" "/etc/$file" || exit 99; done\n'
    f'exec setpriv --reuid={UID} --regid={UID} --clear-groups "$@"'
)
_CONF = """\
[containers]
default_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]
netns = "none"
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "runc"
"""
_STORAGE = '[storage]\ndriver = "overlay"\n'


@dataclass(frozen=True)
class Rootless:
    """The user: ``folder`` is theirs. image: the id of the base image in their storage."""

    folder: Path
    podman: str
    python: str  # that they may execute; it finds envcheck
    image: str = ""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def variables(self) -> dict[str, str]:
        return {
            "HOME": str(self.home),
            "PATH": os.environ["PATH"],
            "TMPDIR": str(self.folder / "tmp"),
            "XDG_DATA_HOME": str(self.home / "data"),  # where started.installed puts what it makes
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_RUNTIME_DIR": str(self.folder / "run"),
            "CONTAINERS_CONF": str(self.folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(self.folder / "storage.conf"),
            "PYTHONPATH": f"{REPOSITORY}:{sysconfig.get_path('purelib')}",
        }

    def run(
        self, argv: Sequence[str | Path], *, cwd: Path | None = None, **changes: str
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c",
             _ENTER, str(self.folder), *map(str, argv)],
            cwd=cwd or self.home,
            env=self.variables | changes,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )  # fmt: skip


@contextmanager
def rootless_podman(base: Path) -> Iterator[Rootless]:
    """Their podman with the base image; skips the test where there is none that works.

    base: the tar of base_files.base_tar.
    """
    podman = _needed()
    folder = Path(
        tempfile.mkdtemp(prefix="ec-", dir="/tmp")
    )  # pytest's own folders are root's alone
    folder.chmod(0o755)
    user = Rootless(folder, podman, _python())
    _furnish(user)
    try:
        yield Rootless(folder, podman, user.python, _imported(user, base))
    finally:
        _clear(user)


def _needed() -> str:
    if os.geteuid():
        pytest.skip("a user of the tests' own needs root")
    for program in ("podman", "runc", "unshare", "setpriv", "newuidmap"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin") is None:
            pytest.skip(f"there is no {program} on this machine")
    return str(shutil.which("podman"))


def _python() -> str:
    """This Python, or another of its version that a stranger may execute."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    for found in (sys.executable, f"/usr/bin/{name}", f"/usr/local/bin/{name}"):
        asked = ["setpriv", f"--reuid={UID}", f"--regid={UID}", "--clear-groups"]
        with suppress(OSError):
            ran = subprocess.run(
                [*asked, found, "-c", "import msgspec"],
                env={"PYTHONPATH": sysconfig.get_path("purelib")},
                cwd="/",
                capture_output=True,
                check=False,
            )
            if ran.returncode == 0:
                return found
    pytest.skip(f"no {name} that another user may execute")


def _furnish(user: Rootless) -> None:
    for name in ("home", "run", "tmp"):
        place = user.folder / name
        place.mkdir()
        os.chown(place, UID, UID)
    (user.folder / "run").chmod(0o700)
    entries = {
        "passwd": Path("/etc/passwd").read_text() + f"{NAME}:x:{UID}:{UID}::{user.home}:/bin/sh\n",
        "group": Path("/etc/group").read_text() + f"{NAME}:x:{UID}:\n",
        "subuid": f"{NAME}:2000000:65536\n",
        "subgid": f"{NAME}:2000000:65536\n",
        "containers.conf": _CONF,
        "storage.conf": _STORAGE,
    }
    for name, text in entries.items():
        (user.folder / name).write_text(text)


def _imported(user: Rootless, base: Path) -> str:
    readable = user.folder / "base.tar"
    shutil.copy(base, readable)
    readable.chmod(0o644)
    done = user.run([user.podman, "import", "--quiet", readable, "localhost/base:1"])
    if done.returncode == 0:
        done = user.run([user.podman, "run", "--rm", "localhost/base:1", "true"])
    if done.returncode:
        pytest.skip(f"rootless podman does not work here: {done.stderr.strip()}")
    told = user.run([user.podman, "image", "inspect", "--format", "{{.Id}}", "localhost/base:1"])
    return told.stdout.strip()


def _clear(user: Rootless) -> None:
    """No container, no process of theirs, no file."""
    user.run([user.podman, "rm", "--all", "--force", "--time", "0"])
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if entry.stat().st_uid == UID:
                os.kill(int(entry.name), signal.SIGKILL)
    subprocess.run(["rm", "-rf", "--", user.folder], check=True)
