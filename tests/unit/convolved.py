"""Made-up runs of the systems that convolve: what each would have left behind, on a GPU and on a CPU."""

from __future__ import annotations

import re
from typing import Any

from build import document, snapshot

from envcheck.checks.registry import all_checks
from envcheck.facts.acceleration import Acceleration, SystemRun, SystemTrial
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Framework
from envcheck.facts.view import SnapshotView
from envcheck.findings.model import Verdict
from envcheck.tensorcores.formats import Rounding, convert, round_input

VERSIONS = {"torch": "2.5.1+cu124", "tensorflow": "2.15.1", "jax": "0.4.35"}
_SINGLES = {"T1": 0x3F801800, "T2": 0x3F801000, "T3": 0x3F802000, "R": 0x30802000}
_SUMS = {
    "S1": "3F800000 x 3F800000 + 39800000 x 3A400000",
    "S1n": "BF800000 x 3F800000 + B9800000 x 3A400000",
}
_TENSOR, _CHAIN = {"S1": "3F800001", "S1n": "BF800001"}, {"S1": "3F800002", "S1n": "BF800002"}


def bits(form: str, rounding: Rounding = "RNA", tensor: bool | None = None) -> list[str]:
    """The lines of a size whose factors were rounded to ``form``: "FP32", "TF32", "BF16", "FP16"."""
    sums = _TENSOR if (form != "FP32" if tensor is None else tensor) else _CHAIN
    lines = [
        f"{name} {word:08X} x 3F800000 = {_rounded(form, rounding, word):08X}"
        for name, word in _SINGLES.items()
    ]
    return lines + [f"{name} {_SUMS[name]} = {sums[name]}" for name in _SUMS]


def _rounded(form: str, rounding: Rounding, word: int) -> int:
    if form == "FP32":
        return word
    if form == "FP16":
        return convert(convert(word, "fp32", "fp16"), "fp16", "fp32")
    return round_input(word, form.lower(), rounding)


def setting(name: str, form: str = "TF32", **evidence: Any) -> SystemTrial:
    """A trial of the system "tf32" whose bits are those of ``form``."""
    told = {"128 channels": bits(form), "512 channels": bits(form)} | evidence
    return SystemTrial(
        name=name, control=name in ("switch off", OVERRIDE), outcome="ok", evidence=told
    )


OVERRIDE = "NVIDIA_TF32_OVERRIDE=0"
AMPERE = (
    setting(OVERRIDE, "FP32"),
    setting("default", environment=[], switch="", cudnn="9.1.0"),
    setting("switch off", "FP32"),
    setting("switch on"),
)


def settings(**changed: SystemTrial | None) -> list[SystemTrial]:
    """AMPERE's trials with some replaced, or left out: by "default", "off", "on", "override"."""
    names = {"override": 0, "default": 1, "off": 2, "on": 3}
    trials: list[SystemTrial | None] = list(AMPERE)
    for name, trial in changed.items():
        trials[names[name]] = trial
    return [trial for trial in trials if trial is not None]


def convolution(name: str, outcome: Any = "ok", reason: str = "", **evidence: Any) -> SystemTrial:
    """A trial of the system "cudnn"; right, unless evidence says otherwise."""
    given = {"outputs": 2960, "differ": 0, **evidence} if outcome == "ok" else {}
    return SystemTrial(name=name, outcome=outcome, reason=reason, evidence=given)


NAMES = tuple(f"{d}D {one}" for d in (2, 3) for one in ("FP32", "TF32", "FP16", "BF16"))


def trials(*changed: SystemTrial, cudnn: int | None = 1) -> list[SystemTrial]:
    """All trials of a healthy run with some replaced. cudnn: of its operations that were seen."""
    by_name = {one.name: one for one in changed}
    counted = {} if cudnn is None else {"cudnn": cudnn}
    found = [by_name.get(name, convolution(name, **counted)) for name in NAMES]
    before = SystemTrial(name="nothing convolved yet", control=True, outcome="ok")
    version = SystemTrial(name="cuDNN", outcome="ok", evidence={"version": "9.1.0"})
    return [before, *found, version]


def run(system: str, made: list[SystemTrial], **changes: Any) -> SystemRun:
    told = {"framework": "torch", "outcome": "ok"} | changes
    told.setdefault("framework_version", VERSIONS[told["framework"]])
    return SystemRun(system=system, trials=made, **told)


def looked_at(*runs: SystemRun, systems: tuple[str, ...] = ("cudnn", "tf32")) -> Snapshot:
    """The Snapshot of a deep look with these runs, in the target."""
    frameworks: dict[str, Any] = {
        one.framework: Framework(
            name=one.framework,  # type: ignore[arg-type]
            imported=True,
            version=VERSIONS[one.framework],
        )
        for one in runs
        if one.framework
    }
    target = document(
        "path:/venv",
        acceleration=Acceleration(systems=list(systems), runs=list(runs)),
        **frameworks,
    )
    return snapshot(target, acceleration=Acceleration(systems=[]))


def judged(code: str, *runs: SystemRun) -> list[Verdict]:
    """What a check says of these runs. Skip is raised as it is."""
    (found,) = (one for one in all_checks() if one.code == code)
    return list(found.judge(SnapshotView(looked_at(*runs))))


def one(code: str, *runs: SystemRun) -> Any:
    """Its only verdict."""
    (verdict,) = judged(code, *runs)
    return verdict


def matches(pattern: str, verdict: Any) -> bool:
    """Whether its words hold the pattern: a detail, a reason, or a message with its headline."""
    words = [getattr(verdict, name, "") for name in ("detail", "reason", "message", "headline")]
    return re.search(pattern, " | ".join(words)) is not None
