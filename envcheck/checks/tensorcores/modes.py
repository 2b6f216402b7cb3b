"""Checks on Tensor Cores, mode by mode: did they do the work, on every GPU and at each level."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ...facts.micro_kernels import Level, Mode, Setting
from ...facts.missing import Skip
from ...facts.view import SnapshotView
from ...findings.model import Finding, Passed, Unjudged, Verdict
from ...tensorcores.judge import Case
from ...tensorcores.rates import name
from ..gpus import together
from ..registry import check
from .common import (
    LEVELS,
    NOTHING_RUNS,
    SOURCES,
    level_cases,
    lines_of,
    not_run,
    passed,
    products,
    run_again,
    said,
    where,
)

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
    "L0": (
        "A kernel that envcheck brings as PTX and the driver compiles, on every GPU: neither a toolkit "
        "nor a library nor a framework has a part in it. "
    ),
    "L1": (
        "Large matrix products by the libcublas that the target's framework maps, else the one that its "
        "loader finds. "
    ),
    "L2": "A plain matrix product as a user of the framework writes it, in every framework there is. ",
}
_PROOF = (
    "Proven is what three independent lines of evidence bear out: the result's bits, which tell a Tensor "
    "Core's truncating accumulator from a chain of fused multiply-adds; the rate, against what CUDA "
    "cores can do; the hardware (opcodes, kernel names, NVML's counters). A failure where the products "
    "ran on CUDA cores or the lines contradict each other; a warning where a variable that the user has "
    "set keeps them there, where one line alone speaks for Tensor Cores, or none can tell. Modes that a "
    "chip does not have are skipped, and so is what is indicated alone while nothing is amiss: where a "
    "chip's TF32 is no faster than its FP32 (GeForce) and no kernel's name was seen, there is no more "
    "to be had."
)
_CONTROL = (
    "FP32 products that are kept off the Tensor Cores, judged by the same rules. Where these come out "
    "as anything but not engaged, the evidence cannot be trusted, and nothing is proven at this level: a "
    "failure where something says that Tensor Cores did them (cuBLAS's emulation of FP32, for one), a "
    "warning where it cannot be told."
)


def _cases(view: SnapshotView, row: _Row) -> list[Case]:
    found = [
        case
        for case in level_cases(view, row.level)
        if (case.judged.mode, case.judged.setting) == (row.mode, row.setting)
    ]
    if not found:
        raise Skip(f"{name(row.mode)} was left out (--modes)")
    return found


def _control(row: _Row) -> Callable[[SnapshotView], Iterator[Verdict]]:
    def judge(view: SnapshotView) -> Iterator[Verdict]:
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
    what = (
        "cannot be told from Tensor Cores' work" if unsure else "look like the work of Tensor Cores"
    )
    return Finding(
        "warn" if unsure else "fail",
        f"FP32 products {where(case)} that had to stay off the Tensor Cores {what}, so that nothing is "
        f"proven there: {said(judged.cause) or f'{judged.reason}.'}",
        judged.subjects,
        lines_of(view, case),
        judged.remedy or run_again(view, case),
    )


def _mode(row: _Row) -> Callable[[SnapshotView], Iterator[Verdict]]:
    def judge(view: SnapshotView) -> Iterator[Verdict]:
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
    broken = judged.verdict in ("not engaged", "contradiction") and not case.chosen
    return Finding(
        "fail" if broken else "warn",
        _message(case),
        judged.subjects,
        lines_of(view, case),
        judged.remedy or run_again(view, case),
    )


def _message(case: Case) -> str:
    judged = case.judged
    what = f"{products(judged.mode)} {where(case)}"
    match judged.verdict:
        case "not engaged":
            return f"{what} ran on CUDA cores, not on Tensor Cores: {said(judged.cause)}"
        case "contradiction":
            return f"Whether {what} ran on Tensor Cores is contradictory: {judged.reason}."
        case "indicated":
            return f"{what} seem to run on Tensor Cores, and it is not proven: {judged.reason}."
        case _:
            return f"Whether {what} ran on Tensor Cores cannot be told: {judged.reason}."


for _row in _CONTROLS:
    check(
        _row.code,
        title=f"The control stays off the Tensor Cores {LEVELS[_row.level]}",
        problem=f"has no clean control run {LEVELS[_row.level]}",
        about=_ABOUT[_row.level] + _CONTROL,
        sources=SOURCES,
        follows=_row.follows,
    )(_control(_row))
for _row in _MODES:
    check(
        _row.code,
        title=f"{name(_row.mode)} engages Tensor Cores {LEVELS[_row.level]}",
        problem=f"has no proven {name(_row.mode)} {LEVELS[_row.level]}",
        about=_ABOUT[_row.level] + _PROOF,
        sources=SOURCES,
        follows=_row.follows,
    )(_mode(_row))
