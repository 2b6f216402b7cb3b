"""The environment's own pip.conf: what nvidia-pyindex was for, without what it does to a machine.

pip merges the indexes it knows and takes the highest version, whoever offers it. So a constraint file
beside it pins every locked package: no index can replace one.
"""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from ..lock.lock import Lock
from . import logs

CONSTRAINTS = "constraints.txt"  # in the environment's own folder of envcheck's

_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def write(directory: Path, lock: Lock, public: str) -> None:
    """Write both files; without an index of the stack's own, the constraints alone."""
    constraints = logs.work(directory) / CONSTRAINTS
    constraints.write_text(constraints_text(lock), encoding="utf-8")
    (directory / "pip.conf").write_text(text(constraints, own_indexes(lock, public)), "utf-8")


def own_indexes(lock: Lock, public: str) -> list[str]:
    """The indexes of locked packages that the user's own configuration does not name, each once.

    One without TLS is left out, unless it is on this machine: pip would have to be told to trust it.
    """
    found = dict.fromkeys(package.index for package in lock.packages if package.index)
    others = [index for index in found if index.rstrip("/") != public.rstrip("/")]
    return [index for index in others if _is_safe(index)]


def constraints_text(lock: Lock) -> str:
    pins = sorted(f"{package.name}=={package.version}\n" for package in lock.packages)
    return (
        "# The versions that envcheck locked: pip keeps to them in this environment.\n"
        + "".join(pins)
    )


def text(constraints: Path, indexes: list[str]) -> str:
    # As a URL: pip separates the files of this setting at white space.
    lines = [
        "# Written by envcheck for this environment alone.",
        "[global]",
        f"constraint = {constraints.absolute().as_uri()}",
    ]
    if indexes:
        lines += ["extra-index-url =", *(f"    {index}" for index in indexes)]
    return "\n".join(lines) + "\n"


def _is_safe(index: str) -> bool:
    parts = urlsplit(index)
    return parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
