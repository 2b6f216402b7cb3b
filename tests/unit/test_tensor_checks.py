"""The checks on Tensor Cores: what each says of healthy machines, of faults, and where nothing ran."""

from __future__ import annotations

import shlex
from typing import Any

import h100
import pytest
import tensor_runs
import whole
from build import area_checks, ok
from judged import full_text
from msgspec.structs import replace
from tensor_runs import MACHINES, level_run, micro_kernels, mode_run, rate, replaced, snapshot

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import Check, areas
from envcheck.facts.base import Probe
from envcheck.facts.kernel import Kernel
from envcheck.facts.micro_kernels import Hardware, Level, LevelRun, Mode, ModeRun, Output, Setting
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment
from envcheck.findings.model import CheckResult

A100, H100 = (MACHINES[name] for name in ("A100", "H100"))
CODES = [
    *(f"TC-10{n}" for n in range(1, 7)),
    *(f"TC-20{n}" for n in range(1, 7)),
    *(f"TC-30{n}" for n in range(1, 5)),
    *("TC-401", "TC-402", "TC-403"),
]
MODE_OF: dict[str, tuple[Level, Mode, Setting]] = {
    "TC-102": ("L0", "tf32", ""),
    "TC-103": ("L0", "fp16", ""),
    "TC-104": ("L0", "bf16", ""),
    "TC-105": ("L0", "int8", ""),
    "TC-106": ("L0", "fp8", ""),
    "TC-202": ("L1", "tf32", ""),
    "TC-203": ("L1", "fp16", ""),
    "TC-204": ("L1", "bf16", ""),
    "TC-205": ("L1", "int8", ""),
    "TC-206": ("L1", "fp8", ""),
    "TC-302": ("L2", "tf32", "switch-on"),
    "TC-303": ("L2", "fp16", "half"),
    "TC-304": ("L2", "bf16", "half"),
}


def results(snap: Snapshot, *extra: Check) -> dict[str, CheckResult]:
    checks = [*extra, *area_checks("tensorcores")]
    found = {result.code: result for result in diagnose(snap, checks=checks).results}
    assert not [r.reason for r in found.values() if "crashed" in r.reason]
    return found


def alone(snap: Snapshot, code: str) -> CheckResult:
    """One check's result, without those that would explain it."""
    checks = [check for check in area_checks("tensorcores") if check.code == code]
    return diagnose(snap, checks=checks).results[0]


def of(level: Level) -> LevelRun:
    return level_run(H100, level, "torch" if level == "L2" else "")


def with_mode(code: str, **changes: Any) -> Snapshot:
    """An H100 whose mode of this check, at its level alone, has these changes."""
    level, mode, setting = MODE_OF[code]
    new = mode_run(H100, level, mode, setting, **changes)
    return snapshot(H100, [replaced(of(level), mode, new, setting)])


def cuda_cores(code: str) -> dict[str, Any]:
    level, mode, _ = MODE_OF[code]
    opcodes = tensor_runs.opcodes(H100, mode, False) if level == "L0" else {}
    names = tensor_runs.kernels(H100, mode, False)
    return {
        "signatures": tensor_runs.signatures(mode, H100, False, level),
        "rate": rate(H100, level, mode, False),
        "hardware": Hardware(opcodes=opcodes, kernel_names=names),
    }


# -- healthy, and nothing there


def test_the_area_is_one_of_the_last_and_the_machine_s() -> None:
    later = [name for name in areas() if name not in ("bench", "soak")]
    assert later[-4:] == ["tensorcores", "memory", "acceleration", "plugins"]
    assert not areas()["tensorcores"].of_target
    assert [check.code for check in area_checks("tensorcores")] == CODES
    for check in area_checks("tensorcores"):
        assert check.about.endswith(".") and check.sources and check.follows


@pytest.mark.parametrize("name", MACHINES)
def test_a_healthy_machine_gives_no_finding(name: str) -> None:
    machine = MACHINES[name]
    for code, result in results(snapshot(machine)).items():
        has = code not in MODE_OF or machine.chip.has(MODE_OF[code][1])
        lacks = not has or (name == "B200" and code in ("TC-105", "TC-106"))
        assert result.outcome == ("skipped" if lacks else "pass"), (code, full_text(result))


def test_a_snapshot_without_micro_kernels_is_skipped_with_one_reason() -> None:
    for snap in (whole.whole(), h100.machine(), h100.empty_machine()):
        found = results(snap)
        assert {result.outcome for result in found.values()} == {"skipped"}
        assert {result.reason for result in found.values()} == {
            "the micro-kernels were not run (no GPU, or --level quick)"
        }


def test_a_level_that_was_left_out_is_skipped() -> None:
    found = results(snapshot(A100, [level_run(A100, "L0"), level_run(A100, "L1")]))
    assert found["TC-203"].outcome == "pass"
    assert (found["TC-303"].outcome, found["TC-303"].reason) == (
        "skipped",
        "L2 was left out (--kernels)",
    )
    run = level_run(A100, "L0")
    fewer = replace(run, modes=run.modes[:2])
    assert results(snapshot(A100, [fewer]))["TC-103"].reason == "FP16 was left out (--modes)"


def test_no_gpu_or_a_failed_probe_says_so() -> None:
    nothing = Probe(
        outcome="ok", reason="libcuda lists no device", facts=micro_kernels(levels=["L0"])
    )
    found = results(whole.whole(micro_kernels=nothing))
    assert (found["TC-103"].outcome, found["TC-103"].reason) == (
        "skipped",
        "no GPU to run on: libcuda lists no device",
    )
    assert found["TC-402"].reason == "no GPU to run on: libcuda lists no device"
    broken = Probe(outcome="crashed", reason="signal 11")
    assert results(whole.whole(micro_kernels=broken))["TC-103"].outcome == "could-not-run"
    bare = replace(whole.whole(micro_kernels=nothing), target=None)
    assert results(bare)["TC-203"].reason == "no GPU to run on: libcuda lists no device"
    unasked = results(whole.whole(micro_kernels=nothing, cuda=broken))
    assert {unasked[code].outcome for code in ("TC-103", "TC-402")} == {"could-not-run"}


# -- the modes


@pytest.mark.parametrize("code", MODE_OF)
def test_products_on_cuda_cores_fail(code: str) -> None:
    found = alone(with_mode(code, **cuda_cores(code)), code)
    assert found.outcome == "fail", full_text(found)
    (finding,) = found.findings
    assert "ran on CUDA cores, not on Tensor Cores: " in finding.message
    assert finding.message.endswith(".") and finding.subject.startswith("GPU 0 NVIDIA H100")
    facts = [evidence.fact.rpartition(".")[2] for evidence in finding.evidence]
    assert facts == ["signatures", "rate", "hardware"]
    assert all(evidence.value.startswith("not tensor: ") for evidence in finding.evidence[2:])
    assert finding.remedy is not None and finding.remedy.text


@pytest.mark.parametrize("code", MODE_OF)
def test_a_contradiction_fails_and_one_line_alone_warns(code: str) -> None:
    cores = cuda_cores(code)
    against = alone(with_mode(code, hardware=cores["hardware"]), code)
    assert against.outcome == "fail" and "is contradictory: bits" in full_text(against)
    unseen = alone(with_mode(code, hardware=Hardware(), rate=None), code)
    blind = MODE_OF[code][1] == "int8"
    assert unseen.outcome == "warn"
    assert ("is not known" if blind else "only bits say so") in full_text(unseen)


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [
        ("error", "could-not-run"),
        ("out-of-memory", "could-not-run"),
        ("timeout", "could-not-run"),
        ("crashed", "could-not-run"),
        ("not-supported", "skipped"),
        ("not-run", "skipped"),
    ],
)
def test_what_could_not_run(outcome: str, expected: str) -> None:
    for code in ("TC-103", "TC-203", "TC-303"):
        found = alone(with_mode(code, outcome=outcome, reason="why not"), code)
        assert found.outcome == expected and "why not" in found.reason, full_text(found)


def test_the_same_of_several_gpus_is_one_finding() -> None:
    run = replaced(
        level_run(H100, "L1"), "fp16", mode_run(H100, "L1", "fp16", **cuda_cores("TC-203"))
    )
    runs = [replace(run, pci_address=f"0000:0{n}:00.0", index=n) for n in range(1, 4)]
    # the second GPU's remedy names another index, and nothing else is told apart
    (finding,) = alone(snapshot(H100, runs), "TC-203").findings
    assert finding.subject.count("GPU ") == 3


@pytest.mark.parametrize("code", ["TC-202", "TC-302"])
def test_what_a_variable_of_the_user_s_asks_for_warns_and_follows_from_its_own_check(
    code: str,
) -> None:
    level, mode, setting = MODE_OF[code]
    run = replaced(
        of(level), mode, mode_run(H100, level, mode, setting, **cuda_cores(code)), setting
    )
    target = {"environment": Environment(variables={"NVIDIA_TF32_OVERRIDE": "0"})}
    snap = snapshot(H100, [run], target)
    assert alone(snap, code).outcome == "warn"
    assert "unset NVIDIA_TF32_OVERRIDE" in full_text(alone(snap, code))
    assert results(snap, *area_checks("environment"))[code].consequence_of == "ENV-004"


# -- the control


def test_a_control_that_engages_fails_and_is_why_nothing_else_is_proven() -> None:
    for level, code, other in (("L0", "TC-101", "TC-103"), ("L1", "TC-201", "TC-203")):
        tensor = mode_run(H100, level, "tf32")  # type: ignore[arg-type]
        wrong = replace(tensor, mode="fp32")
        run = replaced(of(level), "fp32", wrong)  # type: ignore[arg-type]
        found = results(snapshot(H100, [run]))
        assert found[code].outcome == "fail", full_text(found[code])
        assert "look like the work of Tensor Cores" in full_text(found[code])
        assert found[other].consequence_of == code, full_text(found[other])


def test_a_control_that_cannot_be_told_warns() -> None:
    nothing = replaced(of("L1"), "fp32", ModeRun(mode="fp32", outcome="ok"))
    found = results(snapshot(H100, [nothing]))
    assert found["TC-201"].outcome == "warn" and found["TC-203"].consequence_of == "TC-201"
    failed = ModeRun(mode="fp32", outcome="error", reason="broken")
    assert results(snapshot(H100, [replaced(of("L1"), "fp32", failed)]))["TC-201"].outcome == (
        "could-not-run"
    )


def test_the_framework_s_control() -> None:
    run = of("L2")
    on = mode_run(H100, "L2", "fp32", "control", engaged=True)
    found = results(snapshot(H100, [replaced(run, "fp32", on, "control")]))
    assert found["TC-301"].outcome == "fail" and "PyTorch's own switch" in full_text(
        found["TC-301"]
    )
    assert found["TC-303"].consequence_of == "TC-301"


# -- what follows from what


def test_a_level_s_failure_explains_the_next_one_s() -> None:
    bad = {
        level: replaced(of(level), "fp16", mode_run(H100, level, "fp16", **cuda_cores(code)))
        for level, code in (("L0", "TC-103"), ("L1", "TC-203"))
    }  # type: ignore[arg-type]
    half = mode_run(H100, "L2", "fp16", "half", **cuda_cores("TC-303"))
    runs = [*bad.values(), replaced(of("L2"), "fp16", half, "half")]
    found = results(snapshot(H100, runs))
    assert found["TC-103"].outcome == "fail"
    assert found["TC-203"].consequence_of == found["TC-303"].consequence_of == "TC-103"
    above = results(snapshot(H100, runs[1:]))
    assert above["TC-203"].outcome == "fail" and above["TC-303"].consequence_of == "TC-203"


def test_a_dead_mode_explains_its_own_gap() -> None:
    found = results(with_mode("TC-103", outcome="timeout", reason="no answer within 3 s"))
    assert found["TC-402"].outcome == "fail" and found["TC-103"].consequence_of == "TC-402"


# -- TC-401 to TC-403


def test_a_wrong_integer_product_is_a_failure() -> None:
    (right,) = tensor_runs.signatures("int8", H100)
    wrong = replace(right, outputs=[Output(bits="00000001", count=9)])
    found = results(with_mode("TC-105", signatures=[wrong]))
    assert found["TC-401"].outcome == "fail" and "00000001" in full_text(found["TC-401"])
    assert found["TC-105"].consequence_of == "TC-401"


def test_one_product_with_two_results_is_a_failure_and_strange_arithmetic_is_not() -> None:
    def outputs(*bits: str) -> list[Any]:
        made = [Output(bits=one, count=9) for one in bits]
        some = tensor_runs.signatures("tf32", H100)
        return [replace(one, outputs=made, distinct=len(made)) for one in some[:1]]

    torn = alone(with_mode("TC-102", signatures=outputs("3F812345", "3F800001")), "TC-401")
    assert torn.outcome == "fail" and "3F812345" in full_text(torn)
    strange = with_mode("TC-102", signatures=outputs("3F812345"))
    assert alone(strange, "TC-401").outcome == "pass"
    assert alone(strange, "TC-102").outcome == "warn"
    assert "3F812345" in full_text(alone(strange, "TC-102"))


@pytest.mark.parametrize(
    ("outcome", "reason", "words"),
    [
        ("timeout", "no answer within 3 s", "FP16 products through the driver alone hung: no answer"),
        ("crashed", "signal 11 (SIGSEGV)", "died: signal 11"),
        ("error", "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "broke its CUDA context"),
    ],
)  # fmt: skip
def test_a_mode_that_did_not_come_back(outcome: str, reason: str, words: str) -> None:
    snap = with_mode("TC-103", outcome=outcome, reason=reason)
    line = whole.xid(79, "GPU has fallen off the bus", "0000:01:00.0")
    other = whole.xid(31, "MMU Fault", "0000:09:00.0")
    kernel = ok(Kernel(log=[line, other]))
    snap = replace(snap, machine=replace(snap.machine, kernel=kernel))
    found = alone(snap, "TC-402")
    assert found.outcome == "fail" and words in full_text(found), full_text(found)
    assert "Xid" in full_text(found) and "fallen off the bus" in full_text(found)
    assert "MMU Fault" not in full_text(found)


def test_an_ordinary_error_is_no_broken_gpu() -> None:
    snap = with_mode("TC-103", outcome="error", reason="CUDA_ERROR_INVALID_VALUE")
    assert alone(snap, "TC-402").outcome == "pass"


def test_a_level_that_died_is_told_once() -> None:
    run = level_run(H100, "L2", "torch", outcome="crashed", reason="signal 9", modes=[])
    (finding,) = alone(snapshot(H100, [run]), "TC-402").findings
    assert finding.message == "The process that multiplies in PyTorch died: signal 9."


def test_a_gpu_far_below_its_peak_warns_and_says_why() -> None:
    hot = rate(
        H100,
        "L1",
        "fp16",
        clock_mhz=900.0,
        clock_event_reasons=["hw_thermal_slowdown"],
        tflops=300.0,
        fp32_tflops=20.0,
    )
    found = alone(with_mode("TC-203", rate=hot), "TC-403")
    assert found.outcome == "warn" and "slowed it down for heat" in full_text(found)
    low = rate(H100, "L1", "fp16", tflops=280.0, fp32_tflops=15.0)
    found = alone(with_mode("TC-203", rate=low), "TC-403")
    assert "ran at 30% of the peak that its clock allows" in full_text(found)
    assert "the driver gives no reason" in full_text(found)
    indicated = with_mode("TC-203", rate=low, hardware=Hardware(), signatures=[])
    assert alone(indicated, "TC-203").outcome == "warn"
    assert alone(indicated, "TC-403").outcome == "warn"
    unknown = tensor_runs.Machine("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", 76, 2040.0, 2000.0)
    run = level_run(unknown, "L0", modes=[mode_run(unknown, "L0", "fp16")])
    assert alone(snapshot(unknown, [run]), "TC-403").outcome == "skipped"


def test_a_busy_gpu_is_skipped_with_who_uses_it_and_how_to_run_it() -> None:
    busy = level_run(A100, "L0", outcome="busy", reason="python3 (process 7) is using it", modes=[])
    found = results(snapshot(A100, [busy]))
    assert found["TC-103"].outcome == "skipped"
    assert (found["TC-402"].outcome, found["TC-402"].reason) == ("skipped", "nothing was run")


# -- remedies


def test_what_a_stranger_s_snapshot_says_stays_inside_one_word() -> None:
    bad = "$(HOSTILE) `HOSTILE` '; HOSTILE \n #"
    variables = {"CUBLAS_EMULATE" + bad: "1"}
    tensor = replace(mode_run(H100, "L1", "tf32"), mode="fp32")
    run = replace(replaced(of("L1"), "fp32", tensor), variables=variables)
    weak = mode_run(H100, "L1", "fp16", hardware=Hardware(), rate=None)
    snap = snapshot(H100, [replaced(run, "fp16", weak)])
    target = replace(snap.target, location=f"path:{bad}")
    commands = [
        command
        for code in ("TC-201", "TC-203")
        for finding in alone(replace(snap, target=target), code).findings
        for command in (finding.remedy.commands if finding.remedy else ())
    ]
    assert any("unset" in command for command in commands)
    for command in commands:
        parsed = shlex.split(command)
        assert command.isprintable() and not any(word == "HOSTILE" for word in parsed), command
        assert sum("HOSTILE" in word for word in parsed) <= 1
