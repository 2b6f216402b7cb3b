"""The packages that are built here, because they have no wheel: which may be, and what their builds need."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from ...exit_codes import Cannot, PutBack
from ..catalogue.model import Sdist, Stack
from ..lockfile import LockedFile, LockedPackage, Lockfile
from . import child_env

_ALLOWING = "a stack file of your own can allow it, by name, version and sha256, under [[sdists]]"

_LINES = 6  # of a build's last words that an error shows
_FRAME = re.compile(r"^\s*(?:DEBUG |[│╰─>]+)\s*")  # what uv puts before a build's own lines
_OF_UV = ("hint:", "note:", "help:", "[", "cause:", "Caused by", "error: Failed to build")
_ERROR = re.compile(r"[Ee]rror:|ERROR|\bfatal\b|CMake Error")


class Job(NamedTuple):
    """One sdist of the lock, and how the stack says that it is built."""

    package: LockedPackage
    sdist: Sdist

    @property
    def title(self) -> str:
        return f"{self.package.name} {self.package.version}"


def jobs(lock: Lockfile, stack: Stack) -> list[Job]:
    """What is to be built, those last that import what they are built for.

    Raises Cannot for an sdist that the stack does not allow by name, version and hash.
    """
    found = [
        Job(package, allowed(package.name, package.version, package.file, stack))
        for package in lock.packages
        if package.file.kind == "sdist"
    ]
    return sorted(found, key=lambda job: not job.sdist.build.isolated)


def allowed(name: str, version: str, file: LockedFile, stack: Stack) -> Sdist:
    """What the stack says of this source distribution, whose build runs its code. Raises Cannot for one that
    it does not name."""
    named = [sdist for sdist in stack.sdists if canonicalize_name(sdist.name) == name]
    same = [sdist for sdist in named if Version(sdist.version) == Version(version)]
    found = next((sdist for sdist in same if sdist.sha256 == file.sha256), None)
    if found is not None:
        return found
    why = "an sdist, whose build runs unreviewed code; the stack allows none of this name"
    if same:
        why = f"an sdist with the sha256 {file.sha256}; the stack allows the one with {same[0].sha256}"
    elif named:
        versions = ", ".join(sdist.version for sdist in named)
        why = f"an sdist; the stack allows that of {versions} alone"
    raise Cannot(f"{file.name} is {why}", _ALLOWING)


def check_programs(
    lock: Lockfile, stack: Stack, which: Callable[[str], str | None] = shutil.which
) -> None:
    """Raises Cannot where a program is missing that a build needs; nothing is fetched before that."""
    for job in jobs(lock, stack):
        missing = [program for program in job.sdist.build.programs if which(program) is None]
        if missing:
            raise Cannot(
                f"{job.title} is built from source ({job.sdist.why}), and this machine has no "
                f"{' and no '.join(missing)}",
                hint=f"install {' and '.join(missing)} with the distribution's packages",
            )


def tools_of(job: Job, lock: Lockfile) -> list[LockedPackage]:
    """The packages that a build finds beside the environment's."""
    pins: dict[str, Requirement] = {
        canonicalize_name(one.name): one for one in map(Requirement, job.sdist.build.requires)
    }
    return [
        package
        for package in lock.building
        if package.name not in pins or pins[package.name].specifier.contains(package.version, True)
    ]


def environment(job: Job, directory: Path, tools: Path) -> dict[str, str]:
    """The variables of a build. tools: the folder that they are installed in."""
    path = child_env.bin_first(directory, child_env.plain())
    return {
        **child_env.building(),
        "PATH": f"{tools / 'bin'}:{path}",
        "PYTHONPATH": str(tools),
        "VIRTUAL_ENV": str(directory),
        **job.sdist.build.environment,
    }


def failure(job: Job, result: Any, log: Path) -> PutBack:
    """The error of a build that failed: its last words, and where all of them are."""
    hint = f"its log is {log}"
    if " " in str(log):
        hint += "; some builds need an environment whose path (--path) has no space"
    if result.outcome != "exited" or result.code < 0:
        return PutBack(f"building {job.title} {result.describe()}", hint)
    words = last_words((result.stderr + b"\n" + result.stdout).decode("utf-8", "replace"))
    return PutBack(f"building {job.title} failed: {words}", hint)


def last_words(output: str) -> str:
    """The error that a build's output ends with, in one line."""
    lines = [_FRAME.sub("", line).strip() for line in output.splitlines()]
    lines = [line for line in lines if line and not line.startswith(_OF_UV)]
    errors = [line for line in lines if _ERROR.search(line)]
    return " / ".join(dict.fromkeys((errors or lines)[-_LINES:])) or "it printed nothing"
