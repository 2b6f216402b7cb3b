"""Checks on whether the target's distributions fit each other, its Python and its system."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...data.packages import component, cuda_major
from ...facts.base import known
from ...facts.missing import NotKnown, Skip
from ...facts.target import Distribution
from ...facts.view import SnapshotView, facts_of
from ...findings.model import Finding, Passed, Remedy, Verdict, unjudged
from ...findings.shell import words
from ...findings.subjects import about
from ..registry import check
from ..target import PLACE, installed, named, pip, pip_install
from .conflicts import numpy_breaks, protobuf_breaks
from .jax import misfits as jax_misfits
from .requirements import marker_environment, unmet
from .wheel_tags import System, misfit


@check(
    "PKG-008",
    title="CUDA libraries are of one CUDA major",
    problem="CUDA libraries of several majors are mixed",
    about=(
        "NVIDIA's wheels for CUDA 11 and CUDA 12 unpack into the same directories. Files whose name "
        "carries no CUDA version (cuDNN, NCCL, cuRAND, cuSOLVER) overwrite each other, and the process "
        "may load libraries of both. It can work, when two frameworks ask for one each; it is how "
        "mixed cuDNNs come about. A warning for each component that is there for several CUDA majors, "
        "or in two cuDNN majors."
    ),
    sources=("files in the nvidia-*-cu11 and nvidia-*-cu12 wheels", "pytorch#185512 and #188892"),
)
def cuda_majors(view: SnapshotView) -> Iterator[Verdict]:
    parts: dict[str, list[Distribution]] = {}
    for name, one in installed(view).items():
        part = component(name)
        if part is not None and cuda_major(name, one.version) is not None:
            parts.setdefault(part.name, []).append(one)
    if not parts:
        raise Skip("no NVIDIA library wheels in the target")
    mixed = 0
    for name, several in parts.items():
        for_cuda = {cuda_major(one.normalized, one.version) for one in several}
        if len(for_cuda) < 2:
            continue
        mixed += 1
        names = " and ".join(named(one) for one in several)
        yield Finding(
            "warn",
            f"{names} are the same library for several CUDA majors: they overwrite each other's "
            "files, and one process may load both.",
            subjects=about("package", name),
            evidence=[view.evidence(PLACE, names)],
            remedy=Remedy(
                "Give each framework an environment of its own; see which of them asks for which.",
                [pip(view, f"show {words([one.name for one in several])}")],
            ),
        )
    if not mixed:
        majors = {
            cuda_major(one.normalized, one.version) for several in parts.values() for one in several
        }
        yield Passed(f"{len(parts)} libraries, all for CUDA {' or '.join(map(str, majors))}")


@check(
    "PKG-009",
    title="Requirements of the installed packages are met",
    problem="a package's requirement is not met",
    about=(
        "A later installation may have replaced or removed what an earlier package asked for; pip "
        "says so once and goes on. Frameworks then run with libraries that they were never tried "
        "with. A warning for each package whose own requirements, read for the target's Python, do "
        "not hold. Whether it still works is what the framework's checks prove."
    ),
    sources=("the packages' own metadata (Requires-Dist)",),
    follows=("PKG-002",),
)
def requirements_met(view: SnapshotView) -> Iterator[Verdict]:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    distributions = installed(view)
    environment = marker_environment(interpreter)
    told = {"protobuf"} if protobuf_breaks(view, distributions) else set()
    told |= {"numpy"} if numpy_breaks(view, distributions) else set()
    told |= {"jaxlib", *(one.normalized for one in jax_misfits(distributions))}
    asked = [one for one in distributions.values() if known(one.requires) is not None]
    if not asked:
        raise Skip("none of the target's packages says what it requires")
    broken = 0
    for one in asked:
        gaps = [
            gap
            for gap in unmet(one, distributions, environment)
            if gap.requirement.name not in told
        ]
        if not gaps:
            continue
        broken += 1
        words = [
            f"{gap.requirement.name}{gap.requirement.specifier} "
            + (f"(is {gap.found.version})" if gap.found else "(is missing)")
            for gap in gaps
        ]
        yield Finding(
            "warn",
            f"{named(one)} asks for {', '.join(words)}.",
            subjects=about("package", one.name),
            evidence=[view.evidence(PLACE, named(gap.found)) for gap in gaps if gap.found]
            or [view.evidence(PLACE, named(one))],
            remedy=Remedy(
                "Install what it asks for; where two packages ask for different versions, give each "
                "an environment of its own.",
                [
                    pip_install(
                        view,
                        *(f"{gap.requirement.name}{gap.requirement.specifier}" for gap in gaps),
                    )
                ],
            ),
        )
    if not broken:
        yield Passed(f"{len(asked)} packages of this field have what they ask for")


@check(
    "PKG-012",
    title="Wheels were made for this Python and this system",
    problem="a wheel does not fit this Python or system",
    about=(
        "A wheel's tags say for which Python, processor and C library it was made; an installer "
        "refuses what does not fit. A wheel that was copied, unpacked by hand or carried along while "
        "the system below it changed may still sit there, and its import fails with an "
        "undefined symbol or a missing GLIBC version. A failure where none of a wheel's tags fits."
    ),
    sources=("PEP 425, PEP 600", "NVIDIA/tensorflow#32, #34, #58 and #99"),
)
def wheel_tags(view: SnapshotView) -> Iterator[Verdict]:
    system = _system(view)
    judged = misfits = 0
    for one in installed(view).values():
        tags = known(one.wheel_tags)
        if not tags:
            continue
        try:
            reason = misfit(tags, system)
        except ValueError:
            yield unjudged(
                NotKnown(f"what {named(one)}'s tags {', '.join(tags)} mean"),
                about("package", one.name),
            )
            continue
        judged += 1
        if not reason:
            continue
        misfits += 1
        yield Finding(
            "fail",
            f"{named(one)} does not fit this target: {reason}.",
            subjects=about("package", one.name),
            evidence=[
                view.evidence(PLACE, f"{named(one)}: {', '.join(tags)}"),
                view.evidence("target.interpreter.version"),
            ],
            remedy=Remedy(
                "Install it again with this interpreter's own pip, which takes a wheel that fits or "
                "says that there is none; a container brings its own system along.",
                [pip_install(view, f"{one.name}=={one.version}") + " --force-reinstall"],
            ),
        )
    if judged == 0:
        raise Skip("none of the target's packages has a wheel's tags")
    if not misfits:
        yield Passed(f"{judged} wheels fit Python {'.'.join(map(str, system.python))}")


def _system(view: SnapshotView) -> System:
    interpreter = facts_of(view.target.interpreter, "the target's interpreter")
    found = re.match(r"(\d{1,9})\.(\d{1,9})", interpreter.version)
    if found is None:
        raise Skip(f"the target's Python version {interpreter.version!r} cannot be read")
    libc = known(interpreter.libc) or ""
    host = view.seen.host
    if not libc and host is not None and host.facts is not None:
        libc = f"{known(host.facts.libc) or 'glibc'} {known(host.facts.glibc) or ''}"
    number = re.search(r"(?<!\d)(\d{1,9})\.(\d{1,9})", libc)
    musl = "musl" in libc
    glibc = (int(number[1]), int(number[2])) if number and not musl else None
    return System((int(found[1]), int(found[2])), interpreter.architecture, glibc, musl)
