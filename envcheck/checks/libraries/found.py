"""Checks on whether the libraries a framework was built with are the ones it gets."""

from __future__ import annotations

import re

from packaging.version import Version

from ...data.packages import component
from ...data.sonames import component_of, sonames
from ...data.tensorflow_builds import build_of
from ...data.versions import parse_version
from .. import target
from ..declared import declared_causes
from ..reading import Framework, Library, NotKnown, Skip, SnapshotView, known, need
from ..target import about_framework, mapped, sees_gpus, soname, title_of
from ..verdicts import Evidence, Finding, Passed, Verdict, Verdicts, check
from .bring import bring, newer_cudnn, out_of_reach, reachable

CAUSE = declared_causes(__name__)

_ASKED = re.compile(r"Could not load dynamic library '([^']+)'(?:; dlerror: ([^;]+))?")
# What TensorFlow tries and works without: the driver (DRV's checks), and TensorRT (FRM-006).
_NOT_OURS = ("libcuda.so", "libnvinfer", "libnvidia-")
_NVIDIA_WHEEL = re.compile(r"nvidia-[\w-]{1,60}")  # of a requirement


@check("LIB-005")
@target.per_framework(built_with_cuda=True)
def cudnn_found(view: SnapshotView, facts: Framework) -> Verdicts:
    title = title_of(facts)
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


def _with_minor(facts: Framework, built: str) -> Version | None:
    """The cuDNN of a build; the table has its minor if TensorFlow's record says the major alone."""
    recorded = parse_version(built)
    tensorflow = target.framework_version(facts) if facts.name == "tensorflow" else None
    row = build_of(tensorflow) if tensorflow is not None else None
    listed = parse_version(row.cudnn) if row is not None and row.cudnn else None
    if recorded is None or listed is None or len(recorded.release) > 1:
        return recorded
    return listed if recorded.major == listed.major else recorded


def _cudnn_out_of_reach(view: SnapshotView, facts: Framework) -> list[str]:
    """The SONAME of the cuDNN that a framework was built with, if it would not get it; else empty."""
    version = parse_version(known(facts.built_cudnn) or "")
    if version is None or mapped(facts).get("libcudnn"):
        return []
    wanted = f"libcudnn.so.{version.major}"
    return [wanted] if reachable(view, facts, wanted) is None else []


def _fits(view: SnapshotView, facts: Framework, running: Library, built: Version) -> Verdict:
    file = known(running.path) or ""
    has = parse_version(known(running.version) or soname(running).rpartition(".so.")[2])
    if has is None:
        raise NotKnown(f"which cuDNN {file} is")
    older = len(has.release) > 1 and len(built.release) > 1 and has.release[:2] < built.release[:2]
    shown = f"cuDNN {has} ({file})"
    if has.major == built.major and not older:
        return Passed(f"{title_of(facts)}: {shown}")
    return CAUSE["cudnn-misfit"].found(
        about_framework(facts),
        [
            view.evidence(f"target.{facts.name}.built_cudnn"),
            view.evidence(f"target.{facts.name}.libraries", shown),
        ],
        advice=newer_cudnn(view, facts, running, built),
        framework=title_of(facts),
        built=str(built),
        version=str(has),
        file=file,
    )


def _missing_cudnn(view: SnapshotView, facts: Framework, wanted: str) -> Finding:
    libraries = (one for one in target.loader_libraries(view) if one.name == "libcudnn")
    others = {soname(one): one for one in libraries if target.loaded(one)}
    beside = f"; it finds only {', '.join(others)}" if others else ""
    if wanted in others:
        beside = f"; {known(others[wanted].path)} lies where it does not look"
    return CAUSE["cudnn-not-found"].found(
        about_framework(facts),
        [
            view.evidence(f"target.{facts.name}.built_cudnn"),
            view.evidence("target.loader.libraries", ", ".join(others) or "no libcudnn"),
        ],
        advice=bring(view, facts, [wanted]),
        framework=title_of(facts),
        wanted=wanted,
        beside=beside,
    )


@check("LIB-008")
def cuda_libraries_found(view: SnapshotView) -> Verdicts:
    target.need_gpus(view)
    facts = target.imported_framework(view.target.tensorflow, "TensorFlow")
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
    missing = list(logged) or [
        name
        for name in asked.values()
        if name not in found and reachable(view, facts, name) is None
    ]
    if not missing:
        yield Passed(f"all {len(asked)} libraries of CUDA {cuda} are in reach")
        return
    cudnn = _cudnn_out_of_reach(view, facts)
    names = list(dict.fromkeys([*missing, *cudnn]))
    if names == cudnn:
        raise Skip(f"{cudnn[0]} alone is missing (LIB-005)")
    lines = list(dict.fromkeys(logged.values()))[:3]
    aside = next((path for name in names if (path := out_of_reach(view, facts, name))), "")
    broken = {component_of(name) for name in names} <= _broken_wheels(view)
    yield (CAUSE["cuda-wheels-broken"] if broken else CAUSE["cuda-libraries-not-found"]).found(
        about_framework(facts),
        [
            *(Evidence("target.tensorflow.log", line, "TensorFlow's log") for line in lines),
            view.evidence("target.tensorflow.built_cuda"),
        ],
        advice=bring(view, facts, names),
        libraries=", ".join(names),
        where=f" from where they lie ({aside}), since it does not look there" if aside else "",
    )


def _broken_wheels(view: SnapshotView) -> set[str]:
    """The components of NVIDIA's wheels that lack files (PKG-001) or are required and not there (PKG-009)."""
    there = target.installed(view)
    names = {name for name, one in there.items() if one.missing_count or one.cut_off}
    asked = (line for one in there.values() for line in known(one.requires) or [])
    wanted = {found[0].lower() for line in asked if (found := _NVIDIA_WHEEL.match(line))}
    return {part.name for name in names | (wanted - there.keys()) if (part := component(name))}


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
