"""From a choice and its lock to the plan: pure, and the last place where an installation is refused."""

from __future__ import annotations

from typing import NamedTuple

from ...reports.plain import number_of
from ..fit.disk_space import DiskSpace
from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from .models import PlannedPackage, Step, WheelPlan
from .shared import (
    ELSEWHERE,
    MIB,
    VERIFY_AND_SWAP,
    DiskUse,
    PlanInputs,
    check_writable,
    disk_needs,
    fetching,
    reasons,
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


class _Sizes(NamedTuple):
    """Bytes of a lock's files."""

    cached: int
    to_fetch: int
    unknown: int  # files to fetch whose size the index does not say
    unpacked: int

    @classmethod
    def of(cls, choice: Choice, lock: Lockfile, cached: frozenset[str]) -> _Sizes:
        release = choice.candidate.release
        missing = [file.size for file in lock.files if file.sha256 not in cached]
        there = sum(file.size or 0 for file in lock.files if file.sha256 in cached)
        to_fetch = sum(size or 0 for size in missing)
        if None in missing:
            to_fetch = max(to_fetch, release.download_mib * MIB - there)
        unpacked = release.installed_mib * MIB or round((there + to_fetch) * UNPACKED_PER_FETCHED)
        return cls(there, to_fetch, missing.count(None), unpacked)


def plan(choice: Choice, lock: Lockfile, here: WheelPlanInputs) -> WheelPlan:
    """Everything that will happen. Raises Cannot for a place that cannot be used, or has too little space."""
    check_writable(here.environment, "the environment", ELSEWHERE)
    check_writable(here.cache, "the cache", "XDG_CACHE_HOME=DIR names another cache")
    sizes = _Sizes.of(choice, lock, here.cached)
    interpreter = choice.candidate.interpreter
    python = interpreter.version if interpreter else choice.candidate.python_to_get
    get_python = [] if interpreter else [Step(name="python", sentence=f"get Python {python}")]
    return WheelPlan(
        stack=lock.stack,
        release=lock.release,
        title=choice.stack.title,
        reasons=reasons(choice),
        notes=_notes(choice, lock, here),
        directory=here.directory,
        version=here.version,
        python=python,
        interpreter=interpreter.path if interpreter else "",
        installer=here.installer,
        steps=[
            *get_python,
            Step(name="create", sentence="create the environment"),
            fetching("copy" if here.offline else "fetch", sizes.to_fetch),
            Step(name="install", sentence=f"install {number_of(len(lock.packages), 'package')}"),
            Step(name="configure", sentence="configure it"),
            *VERIFY_AND_SWAP,
        ],
        packages=_packages(lock, here.cached),
        provided=dict(lock.provided),
        disk_needs=disk_needs(
            _disk_uses(choice, sizes, here),
            "envcheck prune removes old versions and unused files; --path DIR puts the environment and"
            " XDG_CACHE_HOME=DIR the cache on another file system",
        ),
        download_bytes=sizes.to_fetch,
        in_store_bytes=sizes.cached,
        sizes_unknown=sizes.unknown,
    )


def _disk_uses(choice: Choice, sizes: _Sizes, here: WheelPlanInputs) -> list[DiskUse]:
    estimated = bool(sizes.unknown) or not choice.candidate.release.installed_mib
    share = sizes.to_fetch / (sizes.cached + sizes.to_fetch) if sizes.to_fetch else 0.0
    own = OWN_MIB * MIB + round(sizes.unpacked * OWN_SHARE)
    own += sizes.unpacked if here.copied else 0
    return [
        DiskUse(here.cache, "uv's unpacked wheels", round(sizes.unpacked * share), estimated),
        DiskUse(here.environment, "the environment", own, estimated),
    ]


def _notes(choice: Choice, lock: Lockfile, here: WheelPlanInputs) -> list[str]:
    notes = [*choice.candidate.notes, *here.remarks]
    if here.copied:
        notes.append(
            "the environment and the cache are on different file systems: files are copied and not"
            " hard-linked, and the room for both is counted"
        )
    built = [package for package in lock.packages if package.file.kind == "sdist"]
    return notes + [
        f"{package.name} {package.version} has no wheel and is built here from its sdist"
        for package in built
    ]


def _packages(lock: Lockfile, cached: frozenset[str]) -> list[PlannedPackage]:
    """Largest first; those of unknown size after them."""
    installed = {package.file.sha256 for package in lock.packages}
    tools = [package for package in lock.building if package.file.sha256 not in installed]

    def planned(package: LockedPackage) -> PlannedPackage:
        return PlannedPackage(
            name=package.name,
            version=package.version,
            file=package.file.name,
            size=package.file.size,
            sha256=package.file.sha256,
            index=package.index,
            in_store=package.file.sha256 in cached,
            building=package in tools,
        )

    found = map(planned, [*lock.packages, *tools])
    return sorted(found, key=lambda package: (-(package.size or 0), package.name))
