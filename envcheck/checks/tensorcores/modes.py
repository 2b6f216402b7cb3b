"""Checks on Tensor Cores, mode by mode: did they do the work, on every GPU and at each level."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...facts.micro_kernels import Level, Mode, Setting
from ...tensorcores.judge import Case
from ...tensorcores.rates import name
from ..declared import declared_causes
from ..gpus import together
from ..reading import Skip, SnapshotView
from ..verdicts import Finding, Passed, Unjudged, Verdict, Verdicts, check, fail, warn
from .common import (
    LEVELS,
    NOTHING_RUNS,
    SOURCES,
    inline,
    level_cases,
    lines_of,
    not_run,
    passed,
    run_again,
    where,
)

CAUSE = declared_causes(__name__)

_TROUBLE = ("TC-402", "TC-401")
_FRAMEWORK = ("FRM-001", "FRM-007", "FRM-005", "FRM-002", "ENV-001")
_L0 = (*NOTHING_RUNS, *_TROUBLE)


class _Row(NamedTuple):
    """One check: a mode at a level, and what explains its failure."""

    code: str
    level: Level
    mode: Mode
    setting: Setting
    follows: tuple[str, ...]


_CONTROLS = (
    _Row("TC-101", "L0", "fp32", "", _L0),
    _Row("TC-201", "L1", "fp32", "", (*_L0, "TC-101")),
    _Row("TC-301", "L2", "fp32", "control", (*_L0, *_FRAMEWORK, "TC-101", "TC-201")),
)
_MODES = (
    _Row("TC-102", "L0", "tf32", "", (*_L0, "TC-101")),
    _Row("TC-103", "L0", "fp16", "", (*_L0, "TC-101")),
    _Row("TC-104", "L0", "bf16", "", (*_L0, "TC-101")),
    _Row("TC-105", "L0", "int8", "", (*_L0, "TC-101")),
    _Row("TC-106", "L0", "fp8", "", (*_L0, "TC-101")),
    _Row("TC-202", "L1", "tf32", "", (*_L0, "ENV-004", "TC-102", "TC-201")),
    _Row("TC-203", "L1", "fp16", "", (*_L0, "TC-103", "TC-201")),
    _Row("TC-204", "L1", "bf16", "", (*_L0, "TC-104", "TC-201")),
    _Row("TC-205", "L1", "int8", "", (*_L0, "TC-105", "TC-201")),
    _Row("TC-206", "L1", "fp8", "", (*_L0, "TC-106", "TC-201")),
    _Row("TC-302", "L2", "tf32", "switch-on", (*_L0, *_FRAMEWORK, "ENV-004", "TC-202", "TC-301")),
    _Row("TC-303", "L2", "fp16", "half", (*_L0, *_FRAMEWORK, "ENV-010", "TC-203", "TC-301")),
    _Row("TC-304", "L2", "bf16", "half", (*_L0, *_FRAMEWORK, "ENV-010", "TC-204", "TC-301")),
)

_ABOUT: dict[Level, str] = {
    "L0": "Matrix products by envcheck's own PTX, which the driver compiles, without toolkit or library. ",
    "L1": "Matrix products by the libcublas of the target's framework, else the one that its loader finds. ",
    "L2": "Plain matrix products as a user writes them, in each framework of the target. ",
}
_PROOF = (
    "A mode is proven if three independent lines of evidence support it: the result's bits, which tell a"
    " Tensor Core's truncating accumulator from a chain of fused multiply-adds; the rate, compared with what"
    " CUDA cores can do; the hardware (opcodes, kernel names). Modes that a chip does not have are skipped,"
    " and so are modes with one line of evidence if nothing contradicts it."
)
_CONTROL = (
    "FP32 products without Tensor Cores are the control, judged by the same rules. If they engage Tensor"
    " Cores, the evidence cannot be trusted, and nothing is proven at this level (one reason is cuBLAS's"
    " emulation of FP32)."
)


_HEADLINE = "has no proven {mode} {where}"
_NOT_ENGAGED = "{mode} products {where} ran on CUDA cores, not on Tensor Cores: {why}"
_CONTRADICTION = "Whether {mode} products {where} ran on Tensor Cores is contradictory: {why}."
# By the verdict, and whether a variable that the user has set asks for it.
_UNPROVEN = {
    ("not engaged", False): fail("not-engaged", _HEADLINE, _NOT_ENGAGED),
    ("not engaged", True): warn("switched-off", _HEADLINE, _NOT_ENGAGED),
    ("contradiction", False): fail("contradictory", _HEADLINE, _CONTRADICTION),
    ("indicated", False): warn(
        "not-proven",
        _HEADLINE,
        "{mode} products {where} seem to run on Tensor Cores, and it is not proven: {why}.",
    ),
    ("cannot tell", False): warn(
        "cannot-tell",
        _HEADLINE,
        "Whether {mode} products {where} ran on Tensor Cores is not known: {why}.",
    ),
}


def _cases(view: SnapshotView, row: _Row) -> list[Case]:
    found = [
        case
        for case in level_cases(view, row.level)
        if (case.judged.mode, case.judged.setting) == (row.mode, row.setting)
    ]
    if not found:
        raise Skip(f"{name(row.mode)} was left out (--modes)")
    return found


def _control(row: _Row) -> Callable[[SnapshotView], Verdicts]:
    def judge(view: SnapshotView) -> Verdicts:
        cases = _cases(view, row)
        yield from passed(
            [case for case in cases if case.judged.verdict == "not engaged"],
            "not engaged, as it must be,",
        )
        yield from together(
            _failed_control(view, case) for case in cases if case.judged.verdict != "not engaged"
        )

    return judge


def _failed_control(view: SnapshotView, case: Case) -> Verdict:
    judged = case.judged
    if judged.verdict == "could not run":
        return not_run(case)
    unsure = judged.verdict == "cannot tell"
    return (CAUSE["control-unclear"] if unsure else CAUSE["control-engaged"]).found(
        judged.subjects,
        lines_of(view, case),
        advice=judged.remedy or run_again(view, case),
        where=where(case),
        why=inline(judged.cause) or f"{judged.reason}.",
    )


def _mode(row: _Row) -> Callable[[SnapshotView], Verdicts]:
    def judge(view: SnapshotView) -> Verdicts:
        cases = _cases(view, row)
        yield from passed([case for case in cases if case.judged.verdict == "proven"], "proven")
        yield from together(
            _unproven(view, case) for case in cases if case.judged.verdict != "proven"
        )

    return judge


def _unproven(view: SnapshotView, case: Case) -> Finding | Unjudged | Passed:
    judged = case.judged
    if judged.verdict == "could not run":
        return not_run(case)
    if judged.verdict == "not applicable":
        return Unjudged("skipped", f"not applicable: {judged.reason}", judged.subjects)
    if case.calm:
        why = judged.cause[:1].lower() + judged.cause[1:].rstrip(".")
        return Unjudged(
            "skipped", f"indicated, not proven: {judged.reason}; {why}", judged.subjects
        )
    cause = _UNPROVEN.get((judged.verdict, case.chosen), _UNPROVEN[judged.verdict, False])
    return cause.found(
        judged.subjects,
        lines_of(view, case),
        advice=judged.remedy or run_again(view, case),
        mode=name(judged.mode),
        where=where(case),
        why=inline(judged.cause) if judged.verdict == "not engaged" else judged.reason,
    )


for _row in _CONTROLS:
    check(
        _row.code,
        title=f"The control stays off the Tensor Cores {LEVELS[_row.level]}",
        causes=(CAUSE["control-engaged"], CAUSE["control-unclear"]),
        about=_ABOUT[_row.level] + _CONTROL,
        sources=SOURCES,
        follows=_row.follows,
    )(_control(_row))
for _row in _MODES:
    check(
        _row.code,
        title=f"{name(_row.mode)} engages Tensor Cores {LEVELS[_row.level]}",
        causes=_UNPROVEN.values(),
        about=_ABOUT[_row.level] + _PROOF,
        sources=SOURCES,
        follows=_row.follows,
    )(_mode(_row))
