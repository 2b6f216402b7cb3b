"""Checks on whether the target's distributions fit each other, its Python and its system."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.packages import component, cuda_major
from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView, fact, facts_of
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict, unjudged
from ...findings.shell import words
from ...findings.subjects import about
from ..registry import check
from ..target import PLACE, installed, named, pip, pip_install
from .common import found
from .jax import misfits as jax_misfits
from .pairs import too_new
from .requirements import marker_environment, unmet
from .wheel_tags import System, misfit

MIXED = Cause(
    "cuda-majors-mixed",
    "warn",
    "CUDA libraries of several majors are mixed",
    "{packages} are the same library for several CUDA majors: they overwrite each other's files, and one"
    " process may load both.",
    "Give each framework an environment of its own; see which of them requires which.",
)


@check(
    "PKG-008",
    title="CUDA libraries are of one CUDA major",
    causes=[MIXED],
    about="NVIDIA's wheels for CUDA 11 and CUDA 12 unpack into the same directories. Files whose name"
    " carries no CUDA version (cuDNN, NCCL, cuRAND, cuSOLVER) overwrite each other, and the process may load"
    " libraries of both. It can work, when two frameworks require one each; it is how mixed cuDNNs come"
    " about.",
    sources=("files in the nvidia-*-cu11 and nvidia-*-cu12 wheels", "pytorch#185512 and #188892"),
)
def cuda_majors(view: SnapshotView) -> Iterator[Verdict]:
    parts: dict[str, list[tuple[Distribution, int]]] = {}
    for name, one in installed(view).items():
        part, major = component(name), cuda_major(name, one.version)
        if part is not None and major is not None:
            parts.setdefault(part.name, []).append((one, major))
    if not parts:
        raise Skip("no NVIDIA library wheels in the target")
    mixed = {name: wheels for name, wheels in parts.items() if len({m for _, m in wheels}) > 1}
    for name, wheels in mixed.items():
        names = " and ".join(named(one) for one, _ in wheels)
        yield MIXED.found(
            about("package", name),
            [view.evidence(PLACE, names)],
            commands=[pip(view, f"show {words([one.name for one, _ in wheels])}")],
            packages=names,
        )
    if not mixed:
        majors = {major for wheels in parts.values() for _, major in wheels}
        yield Passed(f"{len(parts)} libraries, all for CUDA {' or '.join(map(str, majors))}")


UNMET = Cause(
    "requirement-unmet",
    "warn",
    "a package's requirement is not met",
    "{package} requires {requirements}.",
    "Install what it requires; if two packages require different versions, give each an environment of its"
    " own.",
)


@check(
    "PKG-009",
    title="Requirements of the installed packages are met",
    causes=[UNMET],
    about="A later installation may have replaced or removed what an earlier package requires; pip says so"
    " once and goes on. Frameworks then run with libraries that they were never tried with. Requirements are"
    " read for the target's Python. Whether it still works is what the framework's checks prove.",
    sources=("the packages' own metadata (Requires-Dist)",),
    follows=("PKG-002",),
)
def requirements_met(view: SnapshotView) -> Iterator[Verdict]:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    distributions = installed(view)
    environment = marker_environment(interpreter)
    reported = {name for name in ("protobuf", "numpy") if too_new(view, distributions, name)}
    reported |= {"jaxlib", *(one.normalized for one in jax_misfits(distributions))}
    asked = [one for one in distributions.values() if known(one.requires) is not None]
    if not asked:
        raise Skip("none of the target's packages says what it requires")
    broken = 0
    for one in asked:
        gaps = unmet(one, distributions, environment)
        gaps = [gap for gap in gaps if gap.requirement.name not in reported]
        if not gaps:
            continue
        broken += 1
        wanted = [f"{gap.requirement.name}{gap.requirement.specifier}" for gap in gaps]
        states = [f"(is {gap.found.version})" if gap.found else "(is missing)" for gap in gaps]
        yield found(
            view,
            UNMET,
            one,
            evidence=[view.evidence(PLACE, named(gap.found)) for gap in gaps if gap.found],
            commands=[pip_install(view, *wanted)],
            requirements=", ".join(map(" ".join, zip(wanted, states, strict=True))),
        )
    if not broken:
        yield Passed(f"{len(asked)} packages of this field have what they require")


MISFIT = Cause(
    "wheel-misfit",
    "fail",
    "a wheel does not fit this Python or system",
    "{package} does not fit this target: {why}.",
    "Install it again with this interpreter's own pip, which takes a wheel that fits or says that there is"
    " none; a container brings its own system.",
)


@check(
    "PKG-012",
    title="Wheels were made for this Python and this system",
    causes=[MISFIT],
    about="A wheel's tags say for which Python, processor and C library it was made; an installer refuses"
    " what does not fit. A wheel that was copied, unpacked by hand or kept while the system below it changed"
    " may still be there, and its import fails with an undefined symbol or a missing GLIBC version.",
    sources=("PEP 425, PEP 600", "NVIDIA/tensorflow#32, #34, #58 and #99"),
)
def wheel_tags(view: SnapshotView) -> Iterator[Verdict]:
    system = _system(view)
    reasons = []
    for one in installed(view).values():
        tags = known(one.wheel_tags)
        if not tags:
            continue
        try:
            reasons.append(misfit(tags, system))
        except ValueError:
            why = NotKnown(f"what {named(one)}'s tags {', '.join(tags)} mean")
            yield unjudged(why, about("package", one.name))
            continue
        if reasons[-1]:
            yield found(
                view,
                MISFIT,
                one,
                evidence=[
                    view.evidence(PLACE, f"{named(one)}: {', '.join(tags)}"),
                    view.evidence("target.interpreter.version"),
                ],
                commands=[pip_install(view, f"{one.name}=={one.version}") + " --force-reinstall"],
                why=reasons[-1],
            )
    if not reasons:
        raise Skip("none of the target's packages has a wheel's tags")
    if not any(reasons):
        yield Passed(f"{len(reasons)} wheels fit Python {'.'.join(map(str, system.python))}")


def _system(view: SnapshotView) -> System:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    version = re.match(r"(\d{1,9})\.(\d{1,9})", interpreter.version)
    if version is None:
        raise Skip(f"the target's Python version {interpreter.version!r} cannot be read")
    host = view.seen.host
    libc = known(interpreter.libc) or f"{fact(host, 'libc') or ''} {fact(host, 'glibc') or ''}"
    number = re.search(r"(?<!\d)(\d{1,9})\.(\d{1,9})", libc)
    musl = "musl" in libc
    glibc = (int(number[1]), int(number[2])) if number and not musl else None
    return System((int(version[1]), int(version[2])), interpreter.architecture, glibc, musl)
