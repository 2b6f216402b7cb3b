"""The check on DALI: images decoded and made smaller as they must be, and its plugin for TensorFlow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...facts.acceleration import SystemTrial
from ...facts.missing import CannotJudge
from ...facts.view import SnapshotView
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.subjects import about
from ..packages.dali import dali_of, plugin_again
from ..registry import check
from ..target import installed
from .common import NO_IMPORT, Seen, died, failed, not_run, number, runs

# Of 255. A PNG is exact. JPEG decoders round twice, in the transform and in the colours, and nvJPEG another
# way than libjpeg (1 to 4 apart); 2.5 was seen of the resize. Wrong colours or rows are 100 and more apart.
_EXACT, _ROUNDED = 1, 8
_SLOTS = {"png_difference": _EXACT, "jpeg_difference": _ROUNDED, "resize_difference": _ROUNDED}
_CALLED = {"cpu": "CPU", "gpu": "GPU"}
_AGAIN = (
    "Install the DALI that is built for this driver's CUDA (its name ends in -cuda110, -cuda120 or"
    " -cuda130), of the newest version that this Python has; until then use the CPU pipeline."
)
WRONG_IMAGES = Cause(
    "wrong-images",
    "fail",
    headline="DALI's {pipeline} pipeline gives wrong images",
    sentence="{dali} gives wrong images by its {pipeline} pipeline ({wrong} of 255): what is trained sees"
    " other pictures.",
    remedy=_AGAIN,
)
ELSEWHERE = Cause(
    "wrong-device",
    "fail",
    headline="DALI's {pipeline} pipeline does not run on the {pipeline}",
    sentence="{dali}'s {pipeline} pipeline gives {type}, not {wanted}: it does not run where it should.",
    remedy=_AGAIN,
)
DOES_NOT_RUN = Cause(
    "pipeline-fails",
    "fail",
    headline="DALI's {pipeline} pipeline does not run{beside}",
    sentence="{dali}'s {pipeline} pipeline does not run{beside}: {why}.",
    remedy=_AGAIN,
)
PLUGIN = Cause(
    "plugin-does-not-load",
    "fail",
    headline="DALI's plugin does not load into {title}{built}",
    sentence="DALI's plugin does not load into {title}{built} ({why}).",
)


@check(
    "ACC-019",
    title="DALI",
    causes=[WRONG_IMAGES, ELSEWHERE, DOES_NOT_RUN, PLUGIN],
    about="DALI decodes and prepares images, on a GPU by nvJPEG. A JPEG and a PNG of 32 x 24 pixels, which"
    " come with envcheck, are decoded and halved by its CPU pipeline and, where there is a GPU, by the one"
    " that decodes on it, and compared with PIL, or with the pixels that they were made of: the PNG must be"
    " exact, the JPEG and the halved image may be 8 of 255 off, since decoders and filters round in"
    " different ways (1 to 4 apart), while wrong colours or rows are 100 apart here. The GPU's pipeline must"
    " give lists of tensors on the GPU, and the CPU's, the control, on the CPU. Beside TensorFlow its plugin,"
    " where it is installed, is loaded.",
    sources=(
        "acceleration.md: DALI 2.4.0 against PIL",
        "NVIDIA/DALI#52, #1065 and #1200: a plugin that was built for another TensorFlow",
    ),
    follows=(*NO_IMPORT, "PKG-001", "PKG-009", "PKG-020", "LIB-006"),
    systems=("dali",),
)
def dali(view: SnapshotView) -> Iterator[Verdict]:
    found = runs(view, "dali", absent="the target has no DALI")
    without = [
        one for one in found if not one.run.framework and one.run.outcome == "not-applicable"
    ]
    for seen in without or found:
        if seen.run.outcome != "ok" and not seen.run.trials:
            yield not_run(seen)
        elif seen.run.framework:
            yield _plugin(view, seen)
        else:
            yield from _images(seen)


def _images(seen: Seen) -> Iterator[Verdict]:
    cpu, gpu = seen.trial("cpu"), seen.trial("gpu")
    ended = died(seen)
    for trial in (gpu, cpu):
        if trial is not None and trial.outcome == "ok":
            yield from _pixels(seen, trial)
    broken = [one for one in (gpu, cpu) if one is not None and one.outcome != "ok"]
    for trial in broken:
        beside = cpu if trial is gpu else None
        works = beside is not None and beside.outcome == "ok"
        if trial.outcome in ("not-supported", "out-of-memory"):
            yield Unjudged("could-not-run", f"{_dali(trial)}: {failed(seen, trial)}")
        elif ended is not None or works or trial is cpu:
            yield _does_not_run(seen, trial, works)
    if gpu is None and cpu is None:
        yield Unjudged("could-not-run", f"DALI: {failed(seen, None)}")


def _pixels(seen: Seen, trial: SystemTrial) -> Iterator[Verdict]:
    name = _CALLED.get(trial.name, trial.name)
    wanted = f"TensorList{name}"
    missing = [slot for slot in _SLOTS if not isinstance(trial.evidence.get(slot), (int, float))]
    if missing:
        yield Unjudged("could-not-run", f"{_dali(trial)}: its images were not compared")
        return
    slack = number(trial, "reference_off_by")
    wrong = [
        f"{slot.partition('_')[0]} off by {number(trial, slot):.0f}"
        for slot, most in _SLOTS.items()
        if number(trial, slot) > most + (slack if slot == "jpeg_difference" else 0)
    ]
    if wrong:
        yield _found(seen, WRONG_IMAGES, trial, wrong=", ".join(wrong))
    elif trial.evidence.get("type") != wanted:
        given = str(trial.evidence.get("type") or "nothing")
        yield _found(seen, ELSEWHERE, trial, type=given, wanted=wanted)
    elif not (trial.control and seen.trial("gpu") is not None):
        most = max(number(trial, slot) for slot in _SLOTS)
        against = str(trial.evidence.get("reference", "")) or "its own pixels"
        alike = f"within {most:.0f} of 255 of {against}" if most >= 1 else f"as {against} has them"
        yield Passed(f"{_dali(trial)}: images {alike}{seen.where or ', on the GPU'}")


def _found(seen: Seen, cause: Cause, trial: SystemTrial, **params: Any) -> Finding:
    name = _CALLED.get(trial.name, trial.name)
    params.update(dali=_dali(trial), pipeline=name)
    package = about("package", "nvidia-dali")
    log = seen.logged("dali", "nvjpeg", "error") if cause is DOES_NOT_RUN else []
    return cause.found(package, [*seen.evidence(), *log], **params)


def _does_not_run(seen: Seen, trial: SystemTrial, works: bool) -> Finding:
    beside = ", its CPU pipeline does" if works else ""
    why = failed(seen, trial)
    advice = _OF_DRIVER if "driver version is insufficient" in why else None
    return _found(seen, DOES_NOT_RUN, trial, beside=beside, why=why, advice=advice)


def _plugin(view: SnapshotView, seen: Seen) -> Verdict:
    trial, before = seen.trial("tensorflow plugin"), seen.trial("not imported")
    if trial is None or trial.outcome == "not-supported":
        return seen.unjudged(failed(seen, trial))
    loaded = trial.evidence.get("libraries")
    if trial.outcome == "ok" and loaded and before is not None:
        if before.evidence.get("libraries"):
            return seen.unjudged("its plugin is in TensorFlow's process without being imported")
        return Passed(f"its plugin loads into {seen.title}")
    why = failed(seen, trial) if trial.outcome != "ok" else "no library of it was loaded"
    built = ": it is built for another TensorFlow" if "undefined symbol" in why else ""
    return seen.found(PLUGIN, advice=_plugin_again(view), built=built, why=why)


def _plugin_again(view: SnapshotView) -> Remedy:
    try:
        found = dali_of(installed(view))
    except CannotJudge:
        found = None
    if found is not None:
        return plugin_again(view, found)
    return Remedy("Install nvidia-dali-tf-plugin again, after TensorFlow, in DALI's version.")


def _dali(trial: SystemTrial) -> str:
    version = trial.evidence.get("version")
    return f"DALI {version}" if isinstance(version, str) else "DALI"


_OF_DRIVER = Remedy(
    "Install the DALI that is built for a CUDA that the driver knows (its name ends in -cuda110, -cuda120"
    " or -cuda130), or a newer driver."
)
