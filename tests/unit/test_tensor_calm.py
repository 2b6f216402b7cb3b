"""What is indicated and no fault: where no more can be seen, and what is no such case."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace
from targets import error
from tensor_runs import MACHINES, Machine, kernels, level_run, mode_run, rate, replaced, snapshot

from envcheck.facts.micro_kernels import Hardware, Level, LevelRun, Mode, ModeRun, Output, Setting
from envcheck.tensorcores.judge import Case, cases

H100 = MACHINES["H100"]
UNNAMED: Any = error("no libcupti.so.12", "absent")


def without_names(machine: Machine, level: Level, framework: str = "", **changes: Any) -> LevelRun:
    """A healthy level of which CUPTI told nothing."""
    run = level_run(machine, level, framework, **changes)
    unseen = Hardware(kernel_names=UNNAMED)
    return replace(run, modes=[replace(one, hardware=unseen) for one in run.modes])


def cases_of(machine: Machine, *runs: LevelRun) -> dict[tuple[Mode, Setting], Case]:
    found = cases(snapshot(machine, runs))
    return {(one.judged.mode, one.judged.setting): one for one in found}


def test_what_a_healthy_gpu_cannot_prove_is_calm_and_says_what_is_missing() -> None:
    geforce = MACHINES["RTX 4090"]
    found = cases_of(geforce, without_names(geforce, "L1"))
    for mode in ("tf32", "int8"):  # no faster than FP32; exact on every unit
        shown = found[mode, ""]
        assert shown.judged.verdict == "indicated" and shown.calm, shown.judged
        assert (
            "hardware's own word" in shown.judged.cause
            and "no libcupti.so.12" in shown.judged.cause
        )
        assert shown.judged.remedy is not None and "CUPTI" in shown.judged.remedy.text
    assert [key for key, one in found.items() if one.calm] == [("tf32", ""), ("int8", "")]
    (shown,) = [one for one in cases_of(H100, without_names(H100, "L1")).values() if one.calm]
    assert shown.judged.mode == "int8" and shown.judged.remedy is not None


def test_what_was_lost_disturbed_or_is_strange_is_not_calm() -> None:
    geforce = MACHINES["RTX 4090"]
    run = without_names(geforce, "L1")
    tf32 = next(one for one in run.modes if one.mode == "tf32")
    faults: dict[str, LevelRun] = {
        "busy": replace(run, busy=True),
        "no rate": replaced(run, "tf32", replace(tf32, rate=None)),
        "no control": replaced(run, "fp32", ModeRun(mode="fp32", outcome="not-run")),
        "too fast": replaced(
            run, "tf32", replace(tf32, rate=rate(geforce, "L1", "tf32", tflops=100.0))
        ),
    }
    for fault, bad in faults.items():
        result = cases_of(geforce, bad)["tf32", ""]
        assert result.judged.verdict == "indicated" and not result.calm, fault
    names = Hardware(kernel_names=kernels(geforce, "tf32"))
    strange = [replace(one, outputs=[Output(bits="3F812345", count=9)]) for one in tf32.signatures]
    bad = replaced(run, "tf32", replace(tf32, signatures=strange, hardware=names))
    assert not cases_of(geforce, bad)["tf32", ""].calm
    slow = without_names(H100, "L1")
    fp16 = mode_run(H100, "L1", "fp16", hardware=Hardware(), rate=None)
    assert not cases_of(H100, replaced(slow, "fp16", fp16))["fp16", ""].calm
