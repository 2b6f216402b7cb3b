"""NVIDIA's registry and a machine with one of its GPUs, both stand-ins, in a mount namespace.

There /etc is a copy with two changes: nvcr.io is Debian's docker-registry on a loopback address of its own,
over TLS by a test CA; and /etc/cdi holds a specification that gives containers a device node (/dev/null's)
and ``standin_gpu``'s libraries. Nothing of it is NVIDIA's, and outside of the namespace nothing changes.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import certificates
import image_registry
import pytest
from cli import environment
from image_registry import Registry
from installing import Home
from podman import PodmanWorld
from processes import ran
from world import folder as loose

KEY = "nvapi-standin-0123456789"  # what NGC_API_KEY has to be
LOGIN = base64.b64encode(f"$oauthtoken:{KEY}".encode()).decode()  # the same in an auth file
ADDRESS = "127.83.65.2"  # nobody else's: port 443 is free there, as a rule
INSIDE = "/usr/local/nvidia/lib64"
NULL = "/dev/null"


@dataclass(frozen=True)
class Machine:
    """etc: what stands in /etc's place. libraries: of the stand-in GPU."""

    etc: Path
    libraries: Path
    registry: Registry
    authority: Path

    @property
    def cdi(self) -> Path:
        return self.etc / "cdi/nvidia.json"

    @property
    def gpu(self) -> dict[str, str]:
        """The variables by which the shims are a GPU on the host; the specification has them for inside."""
        return _shims(str(self.libraries))

    def wire(self, version: str = "0.5.0") -> None:
        """Write the specification of the stand-in GPU."""
        self.cdi.parent.mkdir(exist_ok=True)
        names = [path.name for path in self.libraries.iterdir()]
        mounts = [_mount(self.libraries / name, f"{INSIDE}/{name}") for name in names]
        node = {"path": "/dev/nvidia0", "hostPath": NULL}
        inside = _shims(INSIDE)
        edits = {
            "deviceNodes": [{"path": "/dev/nvidiactl", "hostPath": NULL}],
            "env": [f"{name}={value}" for name, value in inside.items()],
            "mounts": mounts,
        }
        devices = [{"name": n, "containerEdits": {"deviceNodes": [node]}} for n in ("0", "all")]
        text = {
            "cdiVersion": version,
            "kind": "nvidia.com/gpu",
            "devices": devices,
            "containerEdits": edits,
        }
        self.cdi.write_text(json.dumps(text))

    def unwire(self) -> None:
        shutil.rmtree(self.cdi.parent, ignore_errors=True)

    def envcheck(
        self, home: Home, world: PodmanWorld, *arguments: str | Path, **changes: str
    ) -> subprocess.CompletedProcess[bytes]:
        argv = [
            "unshare", "--mount", "--propagation", "private",
            "sh", "-c", 'mount --bind "$0" /etc && exec "$@"', self.etc,
            sys.executable, "-m", "envcheck", *arguments,
        ]  # fmt: skip
        own = {"SSL_CERT_FILE": str(self.authority), "NGC_API_KEY": KEY}
        variables = home.variables | world.variables | own
        done = ran(argv, env=environment(**(variables | self.gpu | changes)))
        assert KEY.encode() not in done.stdout + done.stderr
        return done

    def install(
        self, home: Home, world: PodmanWorld, *arguments: str | Path, **changes: str
    ) -> dict[str, Any]:
        """The JSON of an installation, whatever it has come to."""
        words = ["install", "--mode", "container", *arguments, "--yes", "--format", "json"]
        done = self.envcheck(home, world, *words, **changes)
        assert b"Traceback" not in done.stderr
        report: dict[str, Any] = json.loads(done.stdout)
        assert report["exit_code"] == done.returncode
        return report


def _shims(folder: str) -> dict[str, str]:
    """The libraries' variables, where they and the description are in this folder."""
    return {**loose.variables(folder, folder), "SHIM_FAST": "950"}


def _mount(source: Path, place: str) -> dict[str, object]:
    options = ["ro", "nosuid", "nodev", "bind"]
    return {"hostPath": str(source), "containerPath": place, "options": options}


@contextmanager
def machine(folder: Path) -> Iterator[Machine]:
    """Skips the test where there can be no such namespace, or the port is taken."""
    tried = ran(
        ["unshare", "--mount", "--propagation", "private", "mount", "--bind", folder, "/etc"]
    )
    if tried.returncode:
        pytest.skip(f"no mount namespace of one's own here: {tried.stderr.decode().strip()}")
    etc = folder / "etc"
    shutil.copytree("/etc", etc, symlinks=True, ignore=shutil.ignore_patterns("cdi"))
    (etc / "hosts").write_text(f"127.0.0.1 localhost\n{ADDRESS} nvcr.io\n")
    made = certificates.make(folder / "tls", "DNS:nvcr.io", f"IP:{ADDRESS}")
    libraries = loose.put(folder / "libraries", loose.COMPUTING)
    loose.describe(loose.h200(), libraries)
    with image_registry.serve_registry(
        folder / "registry", tls=made, address=ADDRESS, port=443, htpasswd=("$oauthtoken", KEY)
    ) as registry:
        yield Machine(etc, libraries, registry, made.authority)
