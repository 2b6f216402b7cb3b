"""The check on TensorRT: the one that TensorFlow was built with, where somebody wants it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from packaging.version import Version

from ...data import table
from ...data.packages import NVIDIA_INDEX, tensorflow_builds
from ...data.versions import parse_version
from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.missing import CannotJudge, Skip
from ...facts.target import Distribution, Framework, Library
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ...findings.subjects import about
from ..registry import check
from ..target import (
    directory,
    imported_framework,
    installed,
    loaded,
    loader_libraries,
    mapped,
    named,
    pip_install,
    soname,
    version_of,
)

_ASKS = re.compile(r"Could not load dynamic library '(libnvinfer\.so[\w.]*)'")
_NOT_FOUND = re.compile(r"TF-TRT Warning: (?:Could not find TensorRT|Cannot dlopen some TensorRT)")


@check(
    "FRM-006",
    title="TensorRT loads where TensorFlow was built with it",
    problem="TensorFlow does not find its TensorRT",
    about=(
        "Builds of TensorFlow with TensorRT (2.17 and earlier, NVIDIA's own) look for libnvinfer when "
        "a model is converted; without it everything else works, so a missing TensorRT is no fault "
        "and is shown as a detail. A warning where TensorRT is installed and is not the one that this "
        "build asks for (2.10 and 2.11 take TensorRT 7, 2.12 and later TensorRT 8), or cannot be loaded."
    ),
    sources=(
        "metadata of the tensorflow wheels (pypi_tf.csv)",
        "tensorflow's log messages",
        "tensorflow#57679, #61468, NVIDIA/tensorflow#75 (tensorrt_links.csv)",
    ),
    follows=("PKG-007", "FRM-001", "FRM-007", "LIB-007"),
)
def tensorrt(view: SnapshotView) -> Iterator[Verdict]:
    facts = imported_framework(view.target.tensorflow, "TensorFlow")
    if not need(facts.tensorrt_build, "whether TensorFlow was built with TensorRT"):
        raise Skip("this TensorFlow was built without TensorRT")
    running = mapped(facts).get("libnvinfer", [])
    if running:
        yield Passed(f"TensorRT {known(running[0].version) or soname(running[0])}")
        return
    version = parse_version(known(facts.version) or "")
    wanted, line = _asked(facts, version)
    there, wheels = tensorrt_libraries(view), tensorrt_wheels(view)
    if not wanted or not (there or wheels):
        yield Passed(_how_to_have_it(view, version))
        return
    beside = ", ".join([soname(one) for one in there] or [named(one) for one in wheels])
    yield Finding(
        "warn",
        f"TensorFlow asks for {wanted} and does not get it, though {beside} is installed: models "
        "cannot be converted with TensorRT.",
        subjects=about("framework", "TensorFlow"),
        evidence=[
            Evidence("target.tensorflow.log", line, "TensorFlow's log"),
            view.evidence("target.loader.libraries", beside),
        ],
        remedy=bring_tensorrt(view, wanted, version, there, wheels),
    )


def _asked(facts: Framework, version: Version | None) -> tuple[str, str]:
    """(the library that TensorFlow asked for and did not get, the line that says so), or ("", "")."""
    for line in facts.log:
        found = _ASKS.search(line)
        if found is not None:
            return found[1], line
        major = _major(version)
        if major and _NOT_FOUND.search(line):
            return f"libnvinfer.so.{major}", line
    return "", ""


def _major(version: Version | None) -> str:
    """The TensorRT that a release of TensorFlow links, where that is known."""
    if version is None:
        return ""
    for row in table("tensorrt_links"):
        first, last = Version(row["first"]), Version(row["last"])
        if first.release <= version.release[:2] <= last.release:
            return row["major"]
    return ""


def tensorrt_libraries(view: SnapshotView) -> list[Library]:
    try:
        there = loader_libraries(view)
    except CannotJudge:
        return []
    return [one for one in there if one.name == "libnvinfer" and loaded(one)]


def tensorrt_wheels(view: SnapshotView) -> list[Distribution]:
    try:
        wheels = installed(view).values()
    except CannotJudge:
        return []
    return [one for one in wheels if one.normalized.startswith(("tensorrt", "nvidia-tensorrt"))]


def bring_tensorrt(
    view: SnapshotView,
    wanted: str,
    version: Version | None,
    there: list[Library],
    wheels: list[Distribution],
) -> Remedy:
    major = wanted.rpartition(".so.")[2]
    same = next((one for one in there if soname(one) == wanted), None)
    if same is not None:
        return Remedy(
            "It is installed, and lies where TensorFlow does not look: add its directory.",
            [f"export LD_LIBRARY_PATH={word(directory(same))}:$LD_LIBRARY_PATH"],
        )
    holder = next((one for one in wheels if _is_of(one, major)), None)
    if holder is not None:
        where = f"find {word(holder.location)} -name {word(wanted + '*')} -printf %h -quit"
        return Remedy(
            "Its wheel is installed, and lies where TensorFlow does not look: add its directory.",
            [f'export LD_LIBRARY_PATH="$({where}):$LD_LIBRARY_PATH"'],
        )
    if major == "7":
        return Remedy(
            "Take TensorFlow 2.12 to 2.15, which look for TensorRT 8, or NVIDIA's container of this "
            "one, which brings its TensorRT along.",
            [pip_install(view, "tensorflow>=2.12,<2.16")],
        )
    return Remedy(
        f"Install the TensorRT of this build ({wanted}).", install_tensorrt(view, version)
    )


def _is_of(one: Distribution, major: str) -> bool:
    version = version_of(one)
    return version is not None and str(version.major) == major


def install_tensorrt(view: SnapshotView, version: Version | None) -> list[str]:
    """The commands for the TensorRT that [and-cuda] pinned for the same CUDA; none where none did."""
    builds = tensorflow_builds()
    mine = next((one for one in builds if one.version == version), None)
    cuda = "11" if mine is None else mine.cuda.partition(".")[0]
    pins = [one.tensorrt_pins for one in builds if one.tensorrt_pins and one.cuda.startswith(cuda)]
    if version is None or not _major(version) or not pins:
        return []
    wanted = [str(pin) for pin in pins[-1]]
    if len(wanted) == 1:
        return [pip_install(view, *wanted)]
    return [pip_install(view, *wanted) + f" --index-url {NVIDIA_INDEX} --no-deps"]


def _how_to_have_it(view: SnapshotView, version: Version | None) -> str:
    commands = install_tensorrt(view, version)
    way = f" ({commands[0]})" if commands else ""
    return f"built with it; what is not loaded now is needed only for TF-TRT conversions{way}"
