"""The check on TensorRT: the one that TensorFlow was built with, if any is installed."""

from __future__ import annotations

import re

from packaging.version import Version

from ...data import table
from ...data.packages import NVIDIA_INDEX
from ...data.tensorflow_wheels import tensorflow_builds
from ...data.versions import parse_version
from .. import target
from ..declared import declared_causes
from ..reading import CannotJudge, Framework, Library, Skip, SnapshotView, known, need
from ..system_commands import on_system
from ..target import pip_install, python_version, soname
from ..verdicts import Evidence, Finding, Passed, Remedy, Verdicts, check, word
from .causes import found

CAUSE = declared_causes(__name__)

_ASKS = re.compile(r"Could not load dynamic library '(libnvinfer\.so[\w.]*)'")
_NOT_FOUND = re.compile(r"TF-TRT Warning: (?:Could not find TensorRT|Cannot dlopen some TensorRT)")
_FIRST_COMPATIBLE = 7  # from then on a newer minor version serves what was built with an older one


@check("FRM-006")
def tensorrt(view: SnapshotView) -> Verdicts:
    facts = target.imported_framework(view.target.tensorflow, "TensorFlow")
    if not need(facts.tensorrt_build, "whether TensorFlow was built with TensorRT"):
        raise Skip("this TensorFlow was built without TensorRT")
    libraries = _libraries(view)
    running = target.mapped(facts).get("libnvinfer", [])
    built = parse_version(known(facts.built_tensorrt) or "")
    there = [one for one in libraries if target.loaded(one)]
    others = [one for one in running or there if built and _unlike(one, built)]
    if others and built:
        yield _other_version(view, facts, others[0], built)
        return
    if running:
        yield Passed(f"TensorRT {known(running[0].version) or soname(running[0])}")
        return
    version = target.framework_version(facts)
    wanted, line = _asked(facts, version)
    every = target.installed_if_known(view).items()
    wheels = [one for name, one in every if name.startswith(("tensorrt", "nvidia-tensorrt"))]
    if not wanted or not (there or wheels):
        commands = _install(view, version)
        way = f" ({commands[0]})" if commands else ""
        warns = any("TensorRT" in text for text in known(facts.log) or ())
        words = "TensorFlow warns that TensorRT is missing: it" if warns else "built with it; it"
        yield Passed(f"{words} is only needed for TF-TRT conversions{way}.", note=warns)
        return
    beside = ", ".join(map(soname, there)) or ", ".join(map(target.named, wheels))
    major = wanted.rpartition(".so.")[2]
    where = [word(target.directory(one)) for one in there if soname(one) == wanted]
    where += [
        f'"$(find {word(wheel.location)} -name {word(wanted + "*")} -printf %h -quit)"'
        for wheel in wheels
        if str(getattr(target.version_of(wheel), "major", "")) == major
    ]
    yield found(
        view,
        CAUSE["tensorrt-not-found"],
        facts,
        Evidence("target.tensorflow.log", line, "TensorFlow's log"),
        view.evidence("target.loader.libraries", beside),
        advice=_bring(view, wanted, version, where),
        wanted=wanted,
        installed=beside,
    )


def _libraries(view: SnapshotView) -> list[Library]:
    try:
        return [one for one in target.loader_libraries(view) if one.name == "libnvinfer"]
    except CannotJudge:
        return []


def _unlike(one: Library, built: Version) -> bool:
    """Whether it has the SONAME that TensorFlow asks for, in a version that does not serve it."""
    version = parse_version(known(one.version) or "")
    if version is None or version.major != built.major:
        return False
    has, wants = version.release[:2], built.release[:2]
    return has < wants or (has > wants and built.major < _FIRST_COMPATIBLE)


def _other_version(view: SnapshotView, facts: Framework, one: Library, built: Version) -> Finding:
    wants = f"{built.major}.{built.minor}"
    return found(
        view,
        CAUSE["tensorrt-of-another-version"],
        facts,
        "built_tensorrt",
        view.evidence("target.loader.libraries", f"{known(one.path)}: {known(one.version)}"),
        advice=Remedy(
            f"Install TensorRT {wants}.x in its place, or use NVIDIA's container of this TensorFlow, which"
            " includes its TensorRT.",
            on_system(view, "owner", names=[known(one.path) or ""]),
        ),
        built=str(built),
        file=known(one.path) or "",
        version_found=known(one.version) or "",
    )


def _asked(facts: Framework, version: Version | None) -> tuple[str, str]:
    """(the library that TensorFlow asked for and did not get, the line that says so), or ("", "")."""
    for line in facts.log:
        asked = _ASKS.search(line)
        if asked is not None:
            return asked[1], line
        if _major(version) and _NOT_FOUND.search(line):
            return f"libnvinfer.so.{_major(version)}", line
    return "", ""


def _major(version: Version | None) -> str:
    """The TensorRT that a release of TensorFlow links; "" where that is not known."""
    release = version.release[:2] if version is not None else ()
    for row in table("tensorrt_links"):
        if Version(row["first"]).release <= release <= Version(row["last"]).release:
            return row["major"]
    return ""


def _bring(view: SnapshotView, wanted: str, version: Version | None, where: list[str]) -> Remedy:
    """where: the directories that hold it, where TensorFlow does not look."""
    if where:
        text = "It is installed where TensorFlow does not look: add its directory."
        return Remedy(text, [f"export LD_LIBRARY_PATH={where[0]}:$LD_LIBRARY_PATH"])
    if wanted.endswith(".so.7"):
        has_wheels = (3, 8) <= (python_version(view) or (3, 8)) <= (3, 11)
        return Remedy(
            f"Use TensorFlow 2.12 to 2.15{'' if has_wheels else ' (with Python 3.8 to 3.11)'}, which look for"
            " TensorRT 8, or NVIDIA's container of this version, which includes its TensorRT.",
            [pip_install(view, "tensorflow>=2.12,<2.16")] * has_wheels,
        )
    return Remedy(f"Install the TensorRT of this build ({wanted}).", _install(view, version))


def _install(view: SnapshotView, version: Version | None) -> list[str]:
    """The commands for the TensorRT that [and-cuda] pinned for the same CUDA; none where none did."""
    builds = tensorflow_builds()
    mine = next((one for one in builds if one.version == version), None)
    cuda = "11" if mine is None else mine.cuda.partition(".")[0]
    pins = [one.tensorrt_pins for one in builds if one.tensorrt_pins and one.cuda.startswith(cuda)]
    if not _major(version) or not pins:
        return []
    command = pip_install(view, *map(str, pins[-1]))
    return [command if len(pins[-1]) == 1 else f"{command} --index-url {NVIDIA_INDEX} --no-deps"]
