"""Stand-in GPUs for containers: character devices and stub libraries, wired in by CDI.

The devices are /dev/null's under the names of NVIDIA's, the libraries those of tests/world/c.
The specification's kind is the tests' own, so that a real one on this machine is left alone.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from world import folder as loose

# podman 4.3 knows two folders by heart, and a test's own would be neither.
FOLDER = Path("/run/cdi")
INSIDE = "/usr/local/nvidia/lib64"
NULL = {"type": "c", "major": 1, "minor": 3}


@dataclass(frozen=True)
class StandinCdi:
    """kind: "envcheck.test-…/gpu". Its devices: "0", "1", "all", and "bare": both GPUs without libraries."""

    kind: str
    path: Path
    host: dict[str, str]  # variables of a process of the host that has the same GPUs

    def device(self, name: str) -> list[str]:
        """The engine's arguments."""
        return ["--device", f"{self.kind}={name}"]


@contextmanager
def standin_cdi(folder: Path) -> Iterator[StandinCdi]:
    """Two stand-in GPUs; skips the test where the specification cannot be put where podman looks."""
    if os.geteuid():
        pytest.skip("a CDI specification of the tests' own needs root")
    loose.put(folder)
    host = loose.variables(folder, loose.describe(loose.h200(2), folder / "made"))
    vendor = f"envcheck.test-{secrets.token_hex(4)}"
    made_here = not FOLDER.exists()
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{vendor}.json"
    try:
        path.write_text(json.dumps(_specification(f"{vendor}/gpu", folder)))
        yield StandinCdi(f"{vendor}/gpu", path, host)
    finally:
        path.unlink(missing_ok=True)
        if made_here:
            FOLDER.rmdir()


def _specification(kind: str, libraries: Path) -> dict[str, object]:
    mounts = [
        {
            "hostPath": str(libraries / name),
            "containerPath": f"{INSIDE}/{name}",
            "options": ["ro", "nosuid", "nodev", "bind"],
        }
        for name in loose.DRIVER
    ]
    mounts.append({**mounts[0], "hostPath": str(libraries / "made"), "containerPath": "/.made"})
    devices = [
        {"name": "0", "containerEdits": {"deviceNodes": _nodes(0), "mounts": mounts}},
        {"name": "1", "containerEdits": {"deviceNodes": _nodes(1), "mounts": mounts}},
        {"name": "all", "containerEdits": {"deviceNodes": _nodes(0, 1), "mounts": mounts}},
        {"name": "bare", "containerEdits": {"deviceNodes": _nodes(0, 1)}},
    ]
    control = {"deviceNodes": [{"path": "/dev/nvidiactl", **NULL}]}
    return {"cdiVersion": "0.3.0", "kind": kind, "devices": devices, "containerEdits": control}


def _nodes(*numbers: int) -> list[dict[str, object]]:
    return [{"path": f"/dev/nvidia{number}", **NULL} for number in numbers]
