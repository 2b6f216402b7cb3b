"""uv's cache, which is envcheck's alone: which unpacked wheels are in it, and letting go of some.

uv itself removes; only the names of the wheels are read here, from the directories that the wheel format
prescribes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from ...exit_codes import Cannot
from .. import places, processes
from . import uv

_DEADLINE = 600.0  # seconds; a slow network file system takes its time for 100,000 files


def packages() -> dict[str, set[str]]:
    """What is unpacked in it: normalised name → versions."""
    found: dict[str, set[str]] = {}
    for folder in places.uv_cache().glob("archive-v*/*/*.dist-info"):
        name, _, version = folder.name.removesuffix(".dist-info").partition("-")
        found.setdefault(re.sub(r"[-_.]+", "-", name).lower(), set()).add(_in_a_name(version))
    return found


def superfluous(kept: Iterable[tuple[str, str]]) -> list[str]:
    """Names of which it holds other versions than ``kept`` ones, (name, version) each.

    uv lets go of a name, with all its versions: what is installed stays as it is, since it is linked, and
    the next installation of a version that is kept unpacks it again.
    """
    versions: dict[str, set[str]] = {}
    for name, version in kept:
        versions.setdefault(name, set()).add(_in_a_name(version))
    return sorted(name for name, there in packages().items() if there - versions.get(name, set()))


def clean(names: list[str]) -> str:
    """Let go of these, and of what nothing refers to any more. Gives "", or why uv could not.

    From the main thread.
    """
    if not places.uv_cache().is_dir():
        return ""
    for arguments in ([["clean", *names]] if names else []) + [["prune"]]:
        try:
            argv = [*uv.program(), "--no-config", "cache", *arguments]
        except Cannot as error:
            return str(error)
        result = processes.run(argv, deadline=_DEADLINE, env=uv.settings(), cwd=Path("/"))
        if not result.ok:
            return f"uv cache {arguments[0]} failed: {uv.sentence(result)}"
    return ""


def _in_a_name(version: str) -> str:
    """A version as directory names have it, whichever of the two customs the wheel's builder had."""
    return version.replace("-", "_").lower()
