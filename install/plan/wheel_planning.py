"""From a choice and its lock to the plan: pure, and the last place where an installation is refused."""

from __future__ import annotations

from ..fit.disk_space import DiskSpace
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..pythons.interpreter import listed
from .models import DiskNeed, PlannedPackage, Step, WheelPlan
from .shared import (
    ELSEWHERE,
    MIB,
    DiskUse,
    PlanInputs,
    check_writable,
    disk_needs,
    number,
    reasons,
    verify_and_swap,
)

# tensorflow[and-cuda] 2.21: 3.28 GB of wheels became 6.36 GB (facts, installing.md). For stacks whose
# installed size nobody has measured.
UNPACKED_PER_FETCHED = 1.94

# What an environment has that is not linked from unpacked wheels: its directories, scripts, and byte code.
OWN_MIB = 40
OWN_SHARE = 0.05


class WheelPlanInputs(PlanInputs, frozen=True, kw_only=True):
    """What planning needs to know beyond the choice and the lock."""

    installer: str  # "uv 0.13.9"
    environment: DiskSpace
    cache: DiskSpace  # of uv, and of downloads
    cached: frozenset[str] = frozenset()  # sha256 of files that are not fetched

    @property
    def copied(self) -> bool:
        """Whether uv cannot link from its cache: what lies on another file system is copied."""
        return self.environment.device != self.cache.device


def plan(choice: Choice, lock: Lockfile, here: WheelPlanInputs) -> WheelPlan:
    """Everything that will happen. Raises Cannot for a place that cannot be used, or has too little space."""
    _check_places(here)
    sums = _Sums(choice, lock, here)
    interpreter = choice.candidate.interpreter
    return WheelPlan(
        stack=lock.stack,
        release=lock.release,
        title=choice.stack.title,
        reasons=reasons(choice),
        notes=_notes(choice, lock, sums, here),
        directory=here.directory,
        version=here.version,
        python=interpreter.version if interpreter else choice.candidate.python_to_get,
        interpreter=interpreter.path if interpreter else "",
        installer=here.installer,
        steps=_steps(choice, lock, sums, here),
        packages=_packages(lock, here.cached),
        provided=dict(lock.provided),
        disk_needs=_disk_needs(sums, here),
        download_bytes=sums.to_fetch,
        in_store_bytes=sums.cached,
        sizes_unknown=sums.unknown,
    )


class _Sums:
    """Bytes: what is to be fetched, what is there, and what becomes of both."""

    def __init__(self, choice: Choice, lock: Lockfile, here: WheelPlanInputs) -> None:
        release = choice.candidate.release
        missing = [file for file in lock.files if file.sha256 not in here.cached]
        self.files = len(missing)
        self.cached = sum(file.size or 0 for file in lock.files if file not in missing)
        self.unknown = sum(file.size is None for file in missing)
        self.to_fetch = sum(file.size or 0 for file in missing)
        if self.unknown:
            self.to_fetch = max(self.to_fetch, release.download_mib * MIB - self.cached)
        self.guessed = bool(self.unknown) and not release.download_mib
        self.estimated = bool(self.unknown) or not release.installed_mib
        fetched = self.cached + self.to_fetch
        self.unpacked = release.installed_mib * MIB or round(fetched * UNPACKED_PER_FETCHED)
        # What uv has not unpacked before.
        self.to_unpack = round(self.unpacked * (self.to_fetch / fetched if fetched else 0.0))


def _check_places(here: WheelPlanInputs) -> None:
    """Raises Cannot for the first place that cannot be written to."""
    check_writable(here.environment, "the environment", ELSEWHERE)
    check_writable(here.cache, "the cache", "XDG_CACHE_HOME=DIR names another cache")


def _disk_needs(sums: _Sums, here: WheelPlanInputs) -> list[DiskNeed]:
    own = OWN_MIB * MIB + round(sums.unpacked * OWN_SHARE)
    uses = [(here.cache, "uv's unpacked wheels", sums.to_unpack)]
    if here.offline:
        uses.append((here.cache, "fetched files", sums.to_fetch))
    copied = sums.unpacked if here.copied else 0
    uses.append((here.environment, "the environment", own + copied))
    return disk_needs(
        [DiskUse(*use, sums.estimated) for use in uses],
        "envcheck prune removes old versions and unused files; --path DIR puts the environment and"
        " XDG_CACHE_HOME=DIR the cache on another file system",
    )


def _notes(choice: Choice, lock: Lockfile, sums: _Sums, here: WheelPlanInputs) -> list[str]:
    notes = [*choice.candidate.notes, *here.remarks]
    if here.copied:
        notes.append(
            "the environment and the cache are on different file systems: files are copied and not"
            " hard-linked, and the room for both is counted"
        )
    notes += [
        f"{package.name} {package.version} has no wheel and is built here from its sdist"
        for package in lock.packages
        if package.file.kind == "sdist"
    ]
    if sums.guessed:
        notes.append(
            f"the index does not say the size of {number(sums.unknown, 'file')}: what is to be fetched,"
            " and the room for it, are lower bounds"
        )
    return notes


def _steps(choice: Choice, lock: Lockfile, sums: _Sums, here: WheelPlanInputs) -> list[Step]:
    candidate = choice.candidate
    python, steps = candidate.python_to_get, []
    if candidate.interpreter is not None:
        python = candidate.interpreter.version
    else:
        steps.append(Step(name="python", sentence=f"get Python {python} with uv, for this user"))
    whence = "copy {} from the bundle" if here.offline else "fetch {}"
    fetch = whence.format(number(sums.files, "file")) + ", verified by sha256"
    if not sums.files:
        fetch = f"nothing to fetch: all {len(lock.files)} files are in the cache"
    packages = number(len(lock.packages), "package")
    return [
        *steps,
        Step(name="create", sentence=f"create a virtual environment of Python {python}"),
        Step(name="fetch", sentence=fetch),
        Step(name="install", sentence=f"install {packages} with uv"),
        Step(name="configure", sentence=_configure(choice, lock)),
        *verify_and_swap(choice.stack.must_pass, "on it"),
    ]


def _configure(choice: Choice, lock: Lockfile) -> str:
    parts = ["write its own pip.conf"]
    if choice.stack.environment:
        parts.append("have activation set " + ", ".join(sorted(choice.stack.environment)))
    if lock.provided:
        parts.append("provide what " + ", ".join(sorted(lock.provided)) + " would")
    return listed(parts)


def _packages(lock: Lockfile, cached: frozenset[str]) -> list[PlannedPackage]:
    """Largest first; those of unknown size after them."""
    installed = {package.file.sha256 for package in lock.packages}
    tools = [package for package in lock.building if package.file.sha256 not in installed]
    planned = [
        PlannedPackage(
            name=package.name,
            version=package.version,
            file=package.file.name,
            size=package.file.size,
            sha256=package.file.sha256,
            index=package.index,
            in_store=package.file.sha256 in cached,
            building=package in tools,
        )
        for package in [*lock.packages, *tools]
    ]
    return sorted(planned, key=lambda package: (-(package.size or 0), package.name))
