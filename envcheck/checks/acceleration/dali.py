"""The check on DALI: images decoded as they must be."""

from __future__ import annotations

from typing import Any

from ...facts.acceleration import SystemTrial
from ..packages.dali import dali_of, plugin_again
from ..reading import SnapshotView
from ..target import installed_if_known
from ..verdicts import Cause, Finding, Passed, Remedy, Unjudged, Verdict, Verdicts, about, check
from .common import NO_IMPORT, Seen, died, failed, not_run, number, ok, runs, text

# Of 255. A PNG is exact. The JPEG is off by 5 in itself, and decoders round in different ways (1 to 4 apart);
# wrong colours or rows are 100 and more apart.
_MOST = {"png_difference": 1, "jpeg_difference": 13}
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
_OF_DRIVER = Remedy(
    "Install the DALI that is built for a CUDA that the driver knows (its name ends in -cuda110, -cuda120"
    " or -cuda130), or a newer driver."
)


@check(
    "ACC-019",
    title="DALI",
    causes=[WRONG_IMAGES, ELSEWHERE, DOES_NOT_RUN, PLUGIN],
    about="DALI decodes a JPEG and a PNG of 32 x 24 pixels with its CPU pipeline, the control, and with the"
    " pipeline that decodes on a GPU; both are compared with the original pixels. With TensorFlow,"
    " DALI's plugin is loaded.",
    sources=("acceleration.md: DALI 2.4.0", "NVIDIA/DALI#52, #1065 and #1200"),
    follows=(*NO_IMPORT, "PKG-001", "PKG-009", "PKG-020", "LIB-006"),
    systems=("dali",),
)
def dali(view: SnapshotView) -> Verdicts:
    found = runs(view, "dali", absent="the target has no DALI")
    gone = [one for one in found if not one.run.framework and one.run.outcome == "not-applicable"]
    for seen in gone or found:
        if seen.run.outcome != "ok" and not seen.run.trials:
            yield not_run(seen)
        elif seen.run.framework:
            yield _plugin(view, seen)
        else:
            yield from _images(seen)


def _plugin(view: SnapshotView, seen: Seen) -> Verdict:
    trial = seen.trial("tensorflow plugin")
    if trial is None or trial.outcome == "not-supported":
        return seen.unjudged(failed(seen, trial))
    if ok(trial) and trial.evidence.get("libraries"):
        return Passed(f"its plugin loads into {seen.title}")
    why = "no library of it was loaded" if ok(trial) else failed(seen, trial)
    built = ": it is built for another TensorFlow" if "undefined symbol" in why else ""
    again = "Install nvidia-dali-tf-plugin again, after TensorFlow, in DALI's version."
    installed_dali = dali_of(installed_if_known(view))
    advice = plugin_again(view, installed_dali) if installed_dali else Remedy(again)
    return seen.found(PLUGIN, advice=advice, built=built, why=why)


def _images(seen: Seen) -> Verdicts:
    cpu, gpu = seen.trial("cpu"), seen.trial("gpu")
    for trial in (gpu, cpu):
        if trial is None:
            continue
        works = trial is gpu and ok(cpu)
        if ok(trial):
            yield from _pixels(seen, trial)
        elif trial.outcome in ("not-supported", "out-of-memory"):
            yield Unjudged("could-not-run", f"{_dali(trial)}: {failed(seen, trial)}")
        elif works or trial is cpu or died(seen) is not None:
            yield _does_not_run(seen, trial, works)
    if gpu is None and cpu is None:
        yield Unjudged("could-not-run", f"DALI: {failed(seen, None)}")


def _pixels(seen: Seen, trial: SystemTrial) -> Verdicts:
    wanted = f"TensorList{trial.name.upper()}"
    if not all(isinstance(trial.evidence.get(slot), (int, float)) for slot in _MOST):
        yield Unjudged("could-not-run", f"{_dali(trial)}: its images were not compared")
        return
    wrong = [
        f"{slot.partition('_')[0]} off by {number(trial, slot):.0f}"
        for slot, most in _MOST.items()
        if not number(trial, slot) <= most
    ]
    if wrong:
        yield _found(seen, WRONG_IMAGES, trial, wrong=", ".join(wrong))
    elif text(trial, "type") != wanted:
        yield _found(seen, ELSEWHERE, trial, type=text(trial, "type") or "nothing", wanted=wanted)
    elif not (trial.control and seen.trial("gpu") is not None):
        most = max(number(trial, slot) for slot in _MOST)
        where = seen.where or ", on the GPU"
        yield Passed(f"{_dali(trial)}: images within {most:.0f} of 255 of their pixels{where}")


def _found(seen: Seen, cause: Cause, trial: SystemTrial, **params: Any) -> Finding:
    params.update(dali=_dali(trial), pipeline=trial.name.upper())
    log = seen.logged("dali", "nvjpeg", "error") if cause is DOES_NOT_RUN else []
    return cause.found(about("package", "nvidia-dali"), [*seen.evidence(), *log], **params)


def _does_not_run(seen: Seen, trial: SystemTrial, works: bool) -> Finding:
    why = failed(seen, trial)
    advice = _OF_DRIVER if "driver version is insufficient" in why else None
    beside = ", its CPU pipeline does" if works else ""
    return _found(seen, DOES_NOT_RUN, trial, beside=beside, why=why, advice=advice)


def _dali(trial: SystemTrial) -> str:
    return f"DALI {text(trial, 'version')}".strip()
