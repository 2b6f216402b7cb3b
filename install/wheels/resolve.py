"""From the choice to the lock: every package's version, and the one file of it that is installed.

uv resolves against envcheck's own index, which asks each package's one index and shows what the policy
lets through. Which file is taken is decided here, by the interpreter's tags.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

import msgspec
from packaging.requirements import Requirement
from packaging.utils import InvalidWheelFilename, canonicalize_name, parse_wheel_filename
from packaging.version import Version

from ...exit_codes import Cannot, CouldNotLook
from ..catalogue.model import Sdist, Stack
from ..catalogue.pythons import seed
from ..fit.models import Choice
from ..lockfile import LockedPackage, Lockfile
from ..pythons.interpreter import Interpreter
from ..pythons.wheel_tags import tags
from ..request import Request
from . import compiled, uv
from .compiled import NoSolution, Pin, Target

if TYPE_CHECKING:
    from ..index.simple import ProjectFile
    from ..index.views import OpenIndex

_KEPT_OUT = 3  # sentences on what the policy kept out


def resolve(
    choice: Choice, *, indexes: OpenIndex, interpreter: Interpreter | None, request: Request
) -> Lockfile:
    """Ask the indexes and lock what they answer; nothing is installed.

    interpreter: None where the chosen Python has to be got first. Raises Cannot where the requirements
    cannot be met, with what the policy kept out, or no uv runs; CouldNotLook where an index or uv fails.
    """
    from ..index.server import IndexServer

    if uv.binary() is None:
        raise Cannot(
            "envcheck resolves with uv, and none runs on this machine",
            hint="install it (python3 -m pip install uv), or bring a lock or bundle that another "
            "machine made (--lock, --offline)",
        )
    stack, target = choice.stack, _target(choice, interpreter)
    order = _tags(target)
    # The metadata of an sdist has to be built. Without its Python, envcheck's own does that, which may be
    # too new for the tools that the build itself is pinned to.
    tools = _build_pins(stack) if interpreter is not None else []
    with IndexServer(indexes) as server:

        def solve(wanted: Sequence[str], bounds: Sequence[str]) -> list[Pin]:
            try:
                return compiled.compile_(wanted, bounds, tools, target, server)
            except NoSolution as error:
                raise _no_solution(error, choice, target, indexes.explain) from None

        def lock(pins: Sequence[Pin]) -> list[LockedPackage]:
            return _locked(pins, indexes, order)

        packages = lock(solve(requirements(choice, target.minor), constraints(choice)))
        building = _building(packages, stack, solve, lock)
    return Lockfile(
        stack=stack.name,
        release=choice.candidate.release.release,
        python=target.minor,
        architecture=target.architecture,
        packages=packages,
        building=building,
        provided=dict(stack.provides),
        created_at=datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )


def beside(
    lock: Lockfile,
    wanted: Mapping[str, str],
    choice: Choice,
    *,
    indexes: OpenIndex,
    interpreter: Interpreter | None,
) -> tuple[list[LockedPackage], dict[str, str]]:
    """Packages that a user wants beside the lock's, with what they need; and why others do not fit, by name.

    wanted: name → version. The lock's packages keep their versions. Raises CouldNotLook where an index fails.
    """
    from ..index.server import IndexServer

    target = _target(choice, interpreter)
    locked = {package.name for package in lock.packages}
    bounds = [f"{package.name}=={package.version}" for package in lock.packages]
    unfit: dict[str, str] = {}
    with IndexServer(indexes) as server:

        def solve(names: Iterable[str]) -> list[Pin]:
            exactly = [f"{name}=={wanted[name]}" for name in names]
            return compiled.compile_(exactly, bounds, [], target, server)

        try:
            pins = solve(wanted) if wanted else []
        except (NoSolution, CouldNotLook):
            fit: list[str] = []
            pins = []
            for name in wanted:  # each beside those that fit
                try:
                    pins = solve([*fit, name])
                    fit.append(name)
                except (NoSolution, CouldNotLook) as error:
                    unfit[name] = str(error)
        new = [pin for pin in pins if pin.name not in locked]
        return _locked(new, indexes, _tags(target)), unfit


def requirements(choice: Choice, minor: str) -> list[str]:
    """What the environment is asked to hold: the stack, the release's extras, and this Python's pip."""
    release = choice.candidate.release
    wanted = choice.stack.requirement.format(version=release.version)
    return [wanted, *release.extra_requirements, *seed(minor)]


def constraints(choice: Choice) -> list[str]:
    """The catalogue's pins: the stack's, and the release's."""
    return [*choice.stack.constraints, *choice.candidate.release.constraints]


def best_file(
    files: Iterable[ProjectFile], version: str, order: Mapping[str, int]
) -> ProjectFile | None:
    """The wheel that the interpreter likes best, by tag and then build number; else the sdist.

    order: wheel tag → its place, best first.
    """
    same = [file for file in files if file.version is not None and file.version == Version(version)]
    wheels = [(rank, file) for file in same if (rank := _rank(file.filename, order)) is not None]
    if wheels:
        return min(wheels, key=lambda ranked: (ranked[0], ranked[1].filename))[1]
    return next((file for file in same if file.kind == "sdist"), None)


def _rank(filename: str, order: Mapping[str, int]) -> tuple[int, tuple[int, str]] | None:
    """Less is better; None for what is no wheel or does not fit."""
    if not filename.endswith(".whl"):
        return None
    try:
        _, _, build, offered = parse_wheel_filename(filename)
    except InvalidWheelFilename:
        return None
    places = [order[str(tag)] for tag in offered if str(tag) in order]
    number, letters = (build[0], build[1]) if build else (0, "")
    return (min(places), (-number, letters)) if places else None


def _target(choice: Choice, interpreter: Interpreter | None) -> Target:
    return Target(
        minor=interpreter.minor if interpreter else choice.candidate.python_to_get,
        architecture=interpreter.architecture if interpreter else platform.machine(),
        glibc=_glibc(),
        interpreter=interpreter,
    )


def _glibc() -> str:
    """This machine's, "2.36"; "" for another C library."""
    name, version = platform.libc_ver()
    return ".".join(version.split(".")[:2]) if name == "glibc" else ""


def _tags(target: Target) -> dict[str, int]:
    listed = target.interpreter.tags if target.interpreter else []
    if not listed:
        major, minor = target.minor.split(".")
        flavour = "m" if (int(major), int(minor)) < (3, 8) else ""  # pymalloc's mark, until 3.7
        abi = f"cpython-{major}{minor}{flavour}"
        listed = tags(target.minor, abi, target.architecture, target.glibc)
    return {tag: place for place, tag in enumerate(listed)}


def _locked(
    pins: Sequence[Pin], indexes: OpenIndex, order: Mapping[str, int]
) -> list[LockedPackage]:
    """The pins with their files. Raises CouldNotLook where an index has changed its mind."""
    from ..index.views import key

    chosen = []
    for pin in pins:
        file = best_file(indexes.project(pin.name) or [], pin.version, order)
        if file is None:
            raise CouldNotLook(
                f"the index of {pin.name} no longer offers a file of {pin.name} {pin.version} that fits"
            )
        chosen.append(key(file))
    pinned = indexes.pin(chosen)
    return [
        LockedPackage(
            name=pin.name,
            version=str(Version(pin.version)),
            index=pinned[one].index,
            file=pinned[one].file,
            needed_by=pin.needed_by,
        )
        for pin, one in zip(pins, chosen, strict=True)
    ]


def _building(
    packages: Sequence[LockedPackage],
    stack: Stack,
    solve: Callable[[Sequence[str], Sequence[str]], list[Pin]],
    lock: Callable[[Sequence[Pin]], list[LockedPackage]],
) -> list[LockedPackage]:
    """What the sdists among them are built with, each file once."""
    found: dict[str, LockedPackage] = {}
    for package in packages:
        sdist = _sdist(package, stack)
        if sdist is None or not sdist.build.requires:
            continue
        for tool in lock(solve(sdist.build.requires, [])):
            needed_by = tool.needed_by or [package.name]
            found[tool.file.sha256] = msgspec.structs.replace(tool, needed_by=needed_by)
    return sorted(found.values(), key=lambda tool: (tool.name, Version(tool.version)))


def _build_pins(stack: Stack) -> list[str]:
    """What sdists are built with; of two that disagree, the first's."""
    pins: dict[str, str] = {}
    for sdist in stack.sdists:
        for pin in sdist.build.requires:
            pins.setdefault(canonicalize_name(Requirement(pin).name), pin)
    return list(pins.values())


def _sdist(package: LockedPackage, stack: Stack) -> Sdist | None:
    if package.file.kind == "wheel":
        return None
    hashes = {sdist.sha256: sdist for sdist in stack.sdists}
    return hashes.get(package.file.sha256)


def _no_solution(
    error: NoSolution, choice: Choice, target: Target, explain: Callable[[str], str]
) -> Cannot:
    """uv's words, and what the policy kept out of the packages that its whole explanation names."""
    words = re.findall(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?", error.whole)
    named = dict.fromkeys(canonicalize_name(word) for word in words)
    kept_out = [sentence for name in named if (sentence := explain(name))]
    release = choice.candidate.release.release
    return Cannot(
        f"{choice.stack.name} {release} cannot be resolved for Python {target.minor}: {error}"
        + "".join(f"; {sentence}" for sentence in kept_out[:_KEPT_OUT]),
        hint=" ".join(error.hints),
    )
