"""From a choice and its lock to the plan: pure, and the last place where an installation is refused."""

from __future__ import annotations

from collections.abc import Mapping

from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from .models import PlannedPackage, Step, WheelPlan
from .rooms import MIB, Surroundings, check_path, check_places, rooms
from .shared import VERIFY_SECONDS, number, rate, reasons, verify_and_swap

# tensorflow[and-cuda] 2.21: 3.28 GB of wheels became 6.36 GB (facts, installing.md). For stacks whose
# installed size nobody has measured.
UNPACKED_PER_FETCHED = 1.94
# Bytes of wheels a second that uv unpacks on 2 cores: 3.28 GB from a local directory in 43 s (same source).
UNPACK_RATE = 76e6


def plan(choice: Choice, lock: Lockfile, here: Surroundings) -> WheelPlan:
    """Everything that will happen. Refuses what cannot: Cannot (no disk, no place), UsageError (path)."""
    check_path(here.directory, here.version)
    with_uv = here.installer.startswith("uv")
    check_places(here, with_uv=with_uv)
    sums = _Sums(choice, lock, here)
    interpreter = choice.candidate.interpreter
    speed, speed_from = rate(here.rate, offline=here.offline)
    return WheelPlan(
        stack=lock.stack,
        release=lock.release,
        title=choice.stack.title,
        reasons=reasons(choice.reasons, choice.newer_refused),
        notes=_notes(choice, lock, sums, here),
        directory=here.directory,
        version=here.version,
        python=interpreter.version if interpreter else choice.candidate.python_to_get,
        interpreter=interpreter.path if interpreter else "",
        installer=here.installer,
        steps=_steps(choice, lock, sums, here),
        packages=_packages(lock, here.in_store),
        provided=dict(lock.provided),
        rooms=rooms(sums, here, with_uv=with_uv),
        download_bytes=sums.to_fetch,
        in_store_bytes=sums.in_store,
        sizes_unknown=sums.unknown,
        seconds=_seconds(sums, speed),
        rate=speed,
        rate_from=speed_from,
    )


class _Sums:
    """Bytes: what is to be fetched, what is there, and what becomes of both."""

    def __init__(self, choice: Choice, lock: Lockfile, here: Surroundings) -> None:
        release = choice.candidate.release
        missing = [file for file in lock.files if file.sha256 not in here.in_store]
        self.files = len(missing)
        self.in_store = sum(
            here.in_store[file.sha256] for file in lock.files if file.sha256 in here.in_store
        )
        self.unknown = sum(file.size is None for file in missing)
        self.to_fetch = sum(file.size or 0 for file in missing)
        if self.unknown:
            measured = release.download_mib * MIB
            self.to_fetch = max(self.to_fetch, measured - self.in_store)
        self.guessed = bool(self.unknown) and not release.download_mib
        fetched = self.in_store + self.to_fetch
        self.unpacked = release.installed_mib * MIB or round(fetched * UNPACKED_PER_FETCHED)
        self.estimated = bool(self.unknown) or not release.installed_mib
        self.not_unpacked = _not_unpacked(lock, here)
        self.to_unpack = fetched * self.not_unpacked


def _not_unpacked(lock: Lockfile, here: Surroundings) -> float:
    """The share of what is fetched, from 0 to 1, that uv has not unpacked before."""
    files = [package.file for package in lock.packages]
    sizes = [here.in_store.get(file.sha256, file.size or MIB) for file in files]
    left = sum(
        size for file, size in zip(files, sizes, strict=True) if file.name not in here.in_unpacked
    )
    return left / sum(sizes) if sizes else 0.0


def _notes(choice: Choice, lock: Lockfile, sums: _Sums, here: Surroundings) -> list[str]:
    notes = [*choice.candidate.notes, *here.remarks]
    if here.installer.startswith("uv") and here.environment.device != here.unpacked.device:
        notes.append(
            "the environment and the cache are on different file systems: files are copied and not"
            " hard-linked, and the room for both is counted"
        )
    sdists = [package for package in lock.packages if package.file.kind == "sdist"]
    notes += [
        f"{package.name} {package.version} has no wheel and is built here from its sdist"
        for package in sdists
    ]
    if sums.guessed:
        notes.append(
            f"the index does not say the size of {number(sums.unknown, 'file')}: what is to be fetched,"
            " and the room for it, are lower bounds"
        )
    return notes


def _steps(choice: Choice, lock: Lockfile, sums: _Sums, here: Surroundings) -> list[Step]:
    candidate = choice.candidate
    steps: list[Step] = []
    if candidate.interpreter is None:
        steps.append(
            Step(
                name="python",
                sentence=f"get Python {candidate.python_to_get} with uv, for this user",
            )
        )
    python = candidate.interpreter.version if candidate.interpreter else candidate.python_to_get
    whence = "copy {} from the bundle" if here.offline else "fetch {}"
    fetch = whence.format(number(sums.files, "file")) + " into the store, verified by sha256"
    if not sums.files:
        fetch = f"fetch nothing: all {len(lock.files)} files are in the store"
    return [
        *steps,
        Step(name="fetch", sentence=fetch),
        Step(name="create", sentence=f"create a virtual environment of Python {python}"),
        Step(
            name="install",
            sentence=f"install {number(len(lock.packages), 'package')} with {here.installer.split()[0]}",
        ),
        Step(name="configure", sentence=_configure(choice, lock)),
        *verify_and_swap(choice.stack.must_pass, "on it"),
    ]


def _configure(choice: Choice, lock: Lockfile) -> str:
    parts = ["write its own pip.conf"]
    if choice.stack.environment:
        parts.append("have activation set " + ", ".join(sorted(choice.stack.environment)))
    if lock.provided:
        parts.append("provide what " + ", ".join(sorted(lock.provided)) + " would")
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def _packages(lock: Lockfile, in_store: Mapping[str, int]) -> list[PlannedPackage]:
    """Largest first; those of unknown size after them."""
    installed = {package.file.sha256 for package in lock.packages}
    listed = [
        *(_package(package, in_store, False) for package in lock.packages),
        *(
            _package(package, in_store, True)
            for package in lock.building
            if package.file.sha256 not in installed
        ),
    ]
    return sorted(listed, key=lambda package: (-(package.size or 0), package.name))


def _package(package: LockedPackage, in_store: Mapping[str, int], building: bool) -> PlannedPackage:
    file = package.file
    return PlannedPackage(
        name=package.name,
        version=package.version,
        file=file.name,
        size=in_store.get(file.sha256, file.size),
        sha256=file.sha256,
        index=package.index,
        in_store=file.sha256 in in_store,
        building=building,
    )


def _seconds(sums: _Sums, rate: float) -> float | None:
    """Unpacking goes on while the rest is fetched, so the slower of the two counts."""
    if sums.guessed:
        return None
    return round(max(sums.to_fetch / rate, sums.to_unpack / UNPACK_RATE) + VERIFY_SECONDS, 1)
