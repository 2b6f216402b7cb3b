"""The check on DALI: images decoded as they must be."""

from __future__ import annotations

from ...facts.acceleration import SystemTrial
from ..declared import declared_causes
from ..reading import SnapshotView
from ..verdicts import (
    Cause,
    Finding,
    Params,
    Passed,
    Remedy,
    Unjudged,
    Verdict,
    Verdicts,
    about,
    check,
)
from .common import Seen, died, each_run, failed, number, ok, text

CAUSE = declared_causes(__name__)

# Of 255. A PNG is exact. The JPEG is off by 5 in itself, and decoders round in different ways (1 to 4 apart);
# wrong colours or rows are 100 and more apart.
_MOST = {"png_difference": 1, "jpeg_difference": 13}
_OF_DRIVER = Remedy(
    "Install the DALI that is built for a CUDA that the driver knows (its name ends in -cuda110, -cuda120"
    " or -cuda130), or a newer driver."
)


@check("ACC-019")
def dali(view: SnapshotView) -> Verdicts:
    yield from each_run(view, "dali", _images, absent="the target has no DALI")


def _images(seen: Seen) -> Verdicts:
    if seen.run.framework:
        return  # of an older Snapshot: the plugin in TensorFlow, which LIB-010 judges
    cpu, gpu = seen.trial("cpu"), seen.trial("gpu")
    for trial in filter(None, (gpu, cpu)):
        works = trial is gpu and ok(cpu)
        why = failed(seen, trial)
        if ok(trial):
            verdict = _pixels(seen, trial)
            if trial is gpu or gpu is None or not isinstance(verdict, Passed):
                yield verdict
        elif trial.outcome in ("not-supported", "out-of-memory"):
            yield Unjudged("could-not-run", f"{_dali(trial)}: {why}")
        elif works or trial is cpu or died(seen) is not None:
            advice = _OF_DRIVER if "driver version is insufficient" in why else None
            beside = ", its CPU pipeline does" if works else ""
            yield _found(seen, CAUSE["pipeline-fails"], trial, why, advice, beside)
    if gpu is None and cpu is None:
        yield Unjudged("could-not-run", f"DALI: {failed(seen, None)}")


def _pixels(seen: Seen, trial: SystemTrial) -> Verdict:
    if not all(isinstance(trial.evidence.get(slot), (int, float)) for slot in _MOST):
        return Unjudged("could-not-run", f"{_dali(trial)}: its images were not compared")
    wrong = [
        f"{slot.partition('_')[0]} off by {number(trial, slot):.0f}"
        for slot, most in _MOST.items()
        if not number(trial, slot) <= most
    ]
    if wrong:
        return _found(seen, CAUSE["wrong-images"], trial, ", ".join(wrong))
    kind, wanted = text(trial, "type") or "nothing", f"TensorList{trial.name.upper()}"
    if kind != wanted:
        return _found(seen, CAUSE["pipeline-fails"], trial, f"it gives {kind}, not {wanted}")
    most = max(number(trial, slot) for slot in _MOST)
    where = seen.where or ", on the GPU"
    return Passed(f"{_dali(trial)}: images within {most:.0f} of 255 of their pixels{where}")


def _found(
    seen: Seen,
    cause: Cause,
    trial: SystemTrial,
    why: str,
    advice: Remedy | None = None,
    beside: str = "",
) -> Finding:
    evidence = [*seen.evidence(), *seen.logged("dali", "nvjpeg", "error")]
    params: Params = {
        "dali": _dali(trial),
        "pipeline": trial.name.upper(),
        "why": why,
        "beside": beside,
    }
    return cause.found(about("package", "nvidia-dali"), evidence, advice=advice, **params)


def _dali(trial: SystemTrial) -> str:
    return f"DALI {text(trial, 'version')}".strip()
