"""Checks on whether the libraries a framework was built with are the ones it gets."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from ...data.sonames import component_of, sonames
from ...data.tensorflow_builds import build_of
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import NotKnown, Skip
from ...facts.target import FRAMEWORKS, Framework, Library
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about
from ..driver_state import NO_GPUS_THERE
from ..registry import check
from ..system_commands import on_system
from ..target import (
    each_framework,
    imported_framework,
    loaded,
    loader_libraries,
    mapped,
    need_gpus,
    sees_gpus,
    soname,
)
from .bring import bring, newer_cudnn, reachable

_ASKED = re.compile(r"Could not load dynamic library '([^']+)'(?:; dlerror: ([^;]+))?")
# What TensorFlow tries and does without: the driver (DRV's checks), and TensorRT (FRM-006).
_NOT_OURS = ("libcuda.so", "libnvinfer", "libnvidia-")
# What leaves nothing to look for libraries for.
_NO_FRAMEWORK = ("FRM-001", "FRM-005", "FRM-007")


@check(
    "LIB-004",
    title="The wheels' libraries are used, not the system's",
    problem="the system's libraries are used, not the wheels'",
    about=(
        "Wheels bring the CUDA libraries that a framework was built and tested with. Where the system "
        "has its own and the loader finds those first, the framework runs with them, whatever pip "
        "list says: a version nobody chose, which changes with the next system update. A warning for "
        "each library that a framework mapped from elsewhere although a wheel of it is installed."
    ),
    sources=("/proc/PID/maps of the framework's process",),
    follows=("LIB-002", "FRM-007"),
)
def wheels_used(view: SnapshotView) -> Iterator[Verdict]:
    wheels = {
        soname(one): one
        for one in loader_libraries(view)
        if one.how == "wheel" and known(one.distribution) is not None
    }

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        libraries = [one for several in mapped(facts).values() for one in several]
        both = [one for one in libraries if soname(one) in wheels]
        if not both:
            raise Skip(f"{title} mapped no library of which a wheel is installed")
        shadowed = [
            one for one in both if known(one.origin) in ("ld.so.cache", "system", "conda", "rpath")
        ]
        for one in shadowed:
            wheel = wheels[soname(one)]
            yield Finding(
                "warn",
                f"{title} uses {known(one.path)} ({known(one.version) or 'of unknown version'}) and not "
                f"{known(wheel.distribution)} {known(wheel.distribution_version) or ''}, which is installed.",
                subjects=about("library", soname(one)),
                evidence=[
                    view.evidence(f"target.{facts.name}.libraries", known(one.path)),
                    view.evidence("target.loader.libraries", known(wheel.path) or soname(wheel)),
                ],
                remedy=Remedy(
                    "Remove the system's copy where nothing else needs it, and look at what puts it first.",
                    [
                        *on_system(view, "owner", names=[known(one.path) or ""]),
                        f"ldconfig -p | grep -F {word(soname(one))}",
                    ],
                ),
            )
        if not shadowed:
            yield Passed(f"{title}: {len(both)} libraries, all as installed")

    yield from each_framework(view, judge)


@check(
    "LIB-005",
    title="The framework finds the cuDNN it was built with",
    problem="the framework does not find its cuDNN",
    about=(
        "A framework asks for cuDNN by its SONAME, libcudnn.so.8 or libcudnn.so.9, and refuses a minor "
        "version below the one it was built with (TensorFlow's own record leaves that out: the header in its "
        'wheel or a table tells it): "Failed to get convolution algorithm". TensorFlow that finds none lists '
        "no GPU and says so in one log line. A failure, naming the exact SONAME and what the loader finds "
        "instead."
    ),
    sources=(
        "tensorflow#60854, #63362, #65842, #85311, #96707",
        "metadata of the wheels (pypi_tf.csv)",
    ),
    follows=(*NO_GPUS_THERE, "PKG-002", "PKG-007", "PKG-013", *_NO_FRAMEWORK, "LIB-002", "LIB-008"),
)
def cudnn_found(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)

    def judge(facts: Framework) -> Iterator[Verdict]:
        title = FRAMEWORKS[facts.name]
        if known(facts.cuda_build) is False:
            raise Skip(f"{title} was built without CUDA")
        built = need(facts.built_cudnn, f"the cuDNN that {title} was built with")
        version = _with_minor(facts, built)
        if version is None:
            raise NotKnown(f"which cuDNN {title}'s {built!r} is")
        running = mapped(facts).get("libcudnn", [])
        if running:
            yield _fits(view, facts, running[0], version)
        elif sees_gpus(facts):
            yield Passed(f"{title} sees its GPUs and loads cuDNN {version.major} when it needs it")
        elif missing := _cudnn_out_of_reach(view, facts):
            yield _missing_cudnn(view, facts, missing[0])
        else:
            yield Passed(f"{title}: libcudnn.so.{version.major} is in reach")

    yield from each_framework(view, judge)


def _with_minor(facts: Framework, built: str) -> Version | None:
    """The cuDNN of a build; its minor is by the table where TensorFlow's record says the major alone."""
    said = parse_version(built)
    tensorflow = parse_version(known(facts.version) or "") if facts.name == "tensorflow" else None
    row = build_of(tensorflow) if tensorflow is not None else None
    listed = parse_version(row.cudnn) if row is not None and row.cudnn else None
    if said is None or listed is None or len(said.release) > 1 or said.major != listed.major:
        return said
    return listed


def _cudnn_out_of_reach(view: SnapshotView, facts: Framework) -> list[str]:
    """The SONAME of the cuDNN that a framework was built with, where it would not get it; else empty."""
    version = parse_version(known(facts.built_cudnn) or "")
    if version is None or mapped(facts).get("libcudnn"):
        return []
    wanted = f"libcudnn.so.{version.major}"
    return [wanted] if reachable(view, facts, wanted) is None else []


def _fits(view: SnapshotView, facts: Framework, running: Library, built: Version) -> Verdict:
    title = FRAMEWORKS[facts.name]
    has = parse_version(known(running.version) or soname(running).rpartition(".so.")[2])
    if has is None:
        raise NotKnown(f"which cuDNN {known(running.path)} is")
    told = f"cuDNN {has} ({known(running.path)})"
    older = len(has.release) > 1 and len(built.release) > 1 and has.release[:2] < built.release[:2]
    if has.major == built.major and not older:
        return Passed(f"{title}: {told}")
    return Finding(
        "fail",
        f"{title} was built with cuDNN {built} and runs with {told}: it needs the same major, and at "
        "least that minor version.",
        subjects=about("framework", title),
        evidence=[
            view.evidence(f"target.{facts.name}.built_cudnn"),
            view.evidence(f"target.{facts.name}.libraries", told),
        ],
        remedy=newer_cudnn(view, facts, running, built),
    )


def _missing_cudnn(view: SnapshotView, facts: Framework, wanted: str) -> Finding:
    title = FRAMEWORKS[facts.name]
    others = {
        soname(one): one for one in loader_libraries(view) if one.name == "libcudnn" and loaded(one)
    }
    beside = f"; it finds only {', '.join(others)}" if others else ""
    hidden = others.get(wanted)
    if hidden is not None:
        beside = f"; {known(hidden.path)} lies where it does not look"
    return Finding(
        "fail",
        f"{title} asks for {wanted}, and the loader does not find it{beside}: it will list no GPU.",
        subjects=about("framework", title),
        evidence=[
            view.evidence(f"target.{facts.name}.built_cudnn"),
            view.evidence("target.loader.libraries", ", ".join(others) or "no libcudnn"),
        ],
        remedy=bring(view, facts, [wanted]),
    )


@check(
    "LIB-008",
    title="TensorFlow finds the CUDA libraries it was built with",
    problem="TensorFlow does not find its CUDA libraries",
    about=(
        "TensorFlow loads CUDA's libraries one by one, by SONAME, when it looks for GPUs; with one "
        "missing it lists none and goes on on the CPU. What its log names is taken from there; where "
        'the log only says "Cannot dlopen some GPU libraries", the names that its CUDA version asks '
        "for are looked up. A failure while it sees no GPU, naming each SONAME; where cuDNN alone is "
        "missing, LIB-005 reports it."
    ),
    sources=(
        "NVIDIA/tensorflow#110; tensorflow#45263, #44777",
        "files in NVIDIA's wheels (cuda_sonames.csv)",
    ),
    follows=(*NO_GPUS_THERE, "PKG-002", "PKG-013", *_NO_FRAMEWORK),
)
def cuda_libraries_found(view: SnapshotView) -> Iterator[Verdict]:
    need_gpus(view)
    facts = imported_framework(view.target.tensorflow, "TensorFlow")
    if known(facts.cuda_build) is False:
        raise Skip("TensorFlow was built without CUDA")
    if sees_gpus(facts):
        yield Passed("TensorFlow has loaded what it needs")
        return
    logged = _logged(facts)
    cuda = known(facts.built_cuda) or ""
    asked = sonames(cuda)
    if not logged and not asked:
        raise NotKnown(f"which libraries CUDA {cuda or 'of this build'} asks for")
    found = {soname(one) for several in mapped(facts).values() for one in several}
    missing = logged or {
        name: ""
        for name in asked.values()
        if name not in found and reachable(view, facts, name) is None
    }
    if not missing:
        yield Passed(f"all {len(asked)} libraries of CUDA {cuda} are in reach")
        return
    cudnn = _cudnn_out_of_reach(view, facts)
    names = list(dict.fromkeys([*missing, *cudnn]))
    if names == cudnn:
        raise Skip(f"{cudnn[0]} alone is missing (LIB-005)")
    yield Finding(
        "fail",
        f"TensorFlow cannot load {', '.join(names)}: it lists no GPU and runs on the CPU.",
        subjects=about("framework", "TensorFlow"),
        evidence=[
            *(
                Evidence("target.tensorflow.log", line, "TensorFlow's log")
                for line in list(dict.fromkeys(missing.values()))[:3]
                if line
            ),
            view.evidence("target.tensorflow.built_cuda"),
        ],
        remedy=bring(view, facts, names),
    )


def _logged(facts: Framework) -> dict[str, str]:
    """{the SONAME that is really missing: the log line}; a dlerror may name a dependency instead."""
    found: dict[str, str] = {}
    for line in facts.log:
        asked = _ASKED.search(line)
        if asked is None or asked[1].startswith(_NOT_OURS):
            continue
        deeper = re.match(r"(lib[^\s:]+): cannot open", asked[2] or "")
        name = deeper[1] if deeper else asked[1]
        if not name.startswith(_NOT_OURS) and (component_of(name) or deeper):
            found.setdefault(name, line.strip()[:300])
    return found
