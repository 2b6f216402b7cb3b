"""Resolving through envcheck at indexes that the tests serve."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import pytest

from envcheck.install.catalogue.model import Index, Release, Sdist, Stack
from envcheck.install.fit.models import Candidate, Choice
from envcheck.install.lockfile import Lockfile
from envcheck.install.network.access import Access
from envcheck.install.network.public_index import PublicIndex
from envcheck.install.pythons.interpreter import Interpreter
from envcheck.install.request import Request
from envcheck.install.wheels import resolve
from envcheck.install.wheels.indexes import Indexes

MINOR = "{}.{}".format(*sys.version_info)
PYTHON = Interpreter(path=sys.executable, version=f"{MINOR}.0", found_in="PATH")


def isolate(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of this machine's configuration, and a uv with a cache of its own; for an autouse fixture."""
    for name in [name for name in os.environ if name.startswith(("PIP_", "UV_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(resolve, "seed", lambda minor: [])


def stack(
    requirement: str, nvidia: str = "", *, sdists: Sequence[Sdist] = (), **changes: Any
) -> Stack:
    """nvidia: the URL of an index that claims NVIDIA's names."""
    indexes = [Index(name="nvidia", urls=[nvidia], packages=["nvidia-*", "tensorrt"], source="")]
    fields: dict[str, Any] = {
        "name": "test",
        "title": "a test's",
        "distribution": requirement.partition("[")[0].partition("=")[0],
        "requirement": requirement,
        "gpu": False,
        "architectures": ["x86_64"],
        "source": "made up",
        "indexes": indexes if nvidia else [],
        "sdists": list(sdists),
        "provides": {"nvidia-pyindex": "pip.conf"},
    }
    return Stack(**(fields | changes))


def choice(of: Stack, *, python_to_get: str = "", **changes: Any) -> Choice:
    """For this Python, or for one that has to be got first."""
    release = {"release": "23.03", "version": "1.0", "python": [MINOR], "source": "made up"}
    chosen = Candidate(
        release=Release(**(release | changes)),
        interpreter=None if python_to_get else PYTHON,
        python_to_get=python_to_get,
    )
    return Choice(stack=of, candidate=chosen)


def locked(chosen: Choice, public: str, request: Request | None = None) -> Lockfile:
    """What envcheck locks; public: the URL of the public index."""
    request = request or Request()
    index = PublicIndex(url=public, origin="a test")
    indexes = Indexes(chosen.stack, request, index, Access(request.allow_insecure))
    return resolve.resolve(chosen, indexes)


def versions(lock: Lockfile) -> dict[str, str]:
    return {package.name: package.version for package in lock.packages}
