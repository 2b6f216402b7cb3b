"""Verdicts on whole machines: healthy ones of every generation, and each fault with its cause."""

from __future__ import annotations

from typing import Any

import pytest
import tensor_runs
from msgspec.structs import replace
from targets import error
from tensor_runs import MACHINES, Machine, kernels, level_run, mode_run, rate, replaced, snapshot

from envcheck.facts.micro_kernels import Hardware, Level, LevelRun, Mode, ModeRun, Setting
from envcheck.facts.target import Environment
from envcheck.tensorcores.judge import cases, judge
from envcheck.tensorcores.mode_verdict import ModeVerdict

A100, H100, V100, T4 = (MACHINES[name] for name in ("A100", "H100", "V100", "T4"))
UNSEEN: Any = error("not looked at", "not-supported")


def judged(
    *runs: LevelRun, mode: Mode, setting: Setting = "", machine: Machine = A100, **probes: Any
) -> ModeVerdict:
    """What is said of the last run's mode, beside the others."""
    found = judge(snapshot(machine, runs, **probes))
    return [one for one in found if (one.mode, one.setting) == (mode, setting)][-1]


def one_mode(
    level: Level, mode: Mode, framework: str = "", setting: Setting = "", **changes: Any
) -> LevelRun:
    """A healthy level with one mode's run replaced by one on CUDA cores, with these changes."""
    run = level_run(A100, level, framework)
    cores = {
        "signatures": tensor_runs.signatures(mode, A100, False, level),
        "rate": rate(A100, level, mode, False),
        "hardware": Hardware(kernel_names=kernels(A100, mode, False))
        if level != "L0"
        else Hardware(opcodes=tensor_runs.opcodes(A100, mode, False)),
    }
    return replaced(run, mode, mode_run(A100, level, mode, setting, **(cores | changes)), setting)


# -- healthy machines


@pytest.mark.parametrize("name", MACHINES)
def test_on_a_healthy_machine_every_mode_that_it_has_is_proven_at_every_level(name: str) -> None:
    machine = MACHINES[name]
    for one in judge(snapshot(machine)):
        what = (one.level, one.framework, one.mode, one.setting, one.reason)
        if one.control:
            assert one.verdict == "not engaged", what
        elif one.setting in ("default", "override", "switch-off"):
            assert one.verdict in ("proven", "not engaged"), what
        elif machine.chip.has(one.mode) is False:
            assert one.verdict == "not applicable" and one.mode.upper() in one.reason, what
        elif name == "B200" and (one.level, one.mode) == ("L0", "fp8"):
            assert (one.verdict, one.reason) == ("could not run", "needs tcgen05")
        elif name == "B200" and (one.level, one.mode) == ("L0", "int8"):
            # No source says what its CUDA cores do in INT8, nor mma.sync.
            assert (one.verdict, one.reason) == ("indicated", "only hardware says so"), what
        else:
            assert one.verdict == "proven", what
            assert one.tflops and one.peak_tflops and one.share and one.cause == "" == one.reason


def test_what_plain_products_do_is_told_of_each_framework() -> None:
    verdicts = {
        (one.framework, one.setting): one.verdict
        for one in judge(snapshot(A100))
        if one.mode == "fp32"
    }
    assert verdicts["tensorflow", "default"] == "proven"
    assert verdicts["tensorflow", "override"] == "not engaged"
    assert verdicts["torch", "default"] == "not engaged"
    assert verdicts["jax", "override"] == "proven"  # XLA's own kernels do not read it


# -- the control


def engaged_control(level: Level, framework: str = "", **changes: Any) -> LevelRun:
    """A level whose FP32 control went through Tensor Cores."""
    setting: Setting = "control" if level == "L2" else ""
    run = level_run(A100, level, framework, **changes)
    tensor = mode_run(A100, level, "tf32")
    wrong = mode_run(
        A100, level, "fp32", setting, signatures=tensor.signatures, hardware=tensor.hardware
    )
    return replaced(run, "fp32", wrong, setting)


@pytest.mark.parametrize(("level", "framework"), [("L0", ""), ("L1", ""), ("L2", "torch")])
def test_nothing_is_proven_where_the_control_engages(level: Level, framework: str) -> None:
    found = judge(snapshot(A100, [engaged_control(level, framework)]))
    (control,) = [one for one in found if one.control]
    assert control.verdict in ("indicated", "contradiction")
    assert control.cause
    others = [one for one in found if one.mode == "fp16"]
    assert [one.verdict for one in others] == ["indicated"]
    assert "without a control" in others[0].reason and "control" in others[0].cause


def test_nothing_is_proven_where_the_control_is_missing_or_cannot_tell() -> None:
    run = level_run(A100, "L1")
    without = replace(run, modes=[one for one in run.modes if one.mode != "fp32"])
    assert judged(without, mode="fp16").verdict == "indicated"
    assert "control did not run" in judged(without, mode="fp16").cause
    unclear = replaced(run, "fp32", ModeRun(mode="fp32", outcome="ok"))
    assert "control did not come out" in judged(unclear, mode="fp16").cause
    failed = replaced(run, "fp32", ModeRun(mode="fp32", outcome="error", reason="no"))
    assert judged(failed, mode="fp16").verdict == "indicated"
    verdict = judged(failed, mode="fp16")
    assert "control did not run" in verdict.cause and verdict.remedy is not None
    assert verdict.remedy.commands == [
        "envcheck doctor --kernels L1 --gpu 0 --target '<home-1>/venv'"
    ]


def test_a_control_is_its_own_level_s_gpu_s_and_library_s() -> None:
    bad = engaged_control("L1", library_version="11.0.3")
    other = level_run(A100, "L1", pci_address="0000:02:00.0", index=1)
    found = judge(snapshot(A100, [level_run(A100, "L0"), bad, level_run(A100, "L1"), other]))
    verdicts = {
        (one.level, one.library, one.gpu and one.gpu.index): one.verdict
        for one in found
        if one.mode == "fp16"
    }
    assert verdicts == {
        ("L0", "", 0): "proven",
        ("L1", "libcublas 11.0.3", 0): "indicated",
        ("L1", "libcublas 12.9.1", 0): "proven",
        ("L1", "libcublas 12.9.1", 1): "proven",
    }


def emulated(*, machine: Machine = H100, **changes: Any) -> ModeRun:
    """FP32 products in pieces on Tensor Cores: inputs come through whole, and sums are truncated."""
    exact = {one.vector: one for one in tensor_runs.signatures("fp32", machine)}
    found = tensor_runs.signatures("tf32", machine)
    whole = [exact[one.vector] if one.vector.startswith("T") else one for one in found]
    return replace(mode_run(machine, "L1", "tf32", signatures=whole), mode="fp32", **changes)


def test_a_control_that_was_emulated_or_did_not_keep_off_says_so() -> None:
    def control(run: ModeRun) -> ModeVerdict:
        return judged(replaced(level_run(H100, "L1"), "fp32", run), mode="fp32", machine=H100)

    assert control(emulated()).cause == (
        "cuBLAS 12.9.1 emulates FP32 on Tensor Cores, without being asked to."
    )
    tensor = control(replace(mode_run(H100, "L1", "tf32"), mode="fp32"))
    assert tensor.verdict == "indicated" and "CUBLAS_COMPUTE_32F_PEDANTIC" in tensor.cause
    below = judged(engaged_control("L0"), mode="fp32")
    assert below.verdict == "contradiction" and below.cause.endswith("contradict each other.")
    fma = replace(mode_run(A100, "L0", "tf32"), mode="fp32")
    verdict = judged(replaced(level_run(A100, "L0"), "fp32", fma), mode="fp32")
    assert verdict.verdict == "indicated" and "cannot be trusted" in verdict.cause


# -- slow, and Tensor Cores all the same


def test_a_t4_whose_cublas_is_slow_in_int8_is_healthy() -> None:
    """11.9 TOP/s, under its FP16 and under what DP4A can do (cupy#9915)."""
    slow = mode_run(T4, "L1", "int8", rate=rate(T4, "L1", "int8", tflops=11.9, fp32_tflops=6.9))
    run = replaced(level_run(T4, "L1"), "int8", slow)
    (case,) = [c for c in cases(snapshot(T4, [run])) if c.judged.mode == "int8"]
    assert (case.judged.verdict, case.judged.rate.says) == ("indicated", "cannot tell")
    assert case.calm and not case.seen.speed.low


@pytest.mark.parametrize("mode", ["fp16", "int8"])
def test_slow_instructions_of_our_own_are_no_cuda_cores(mode: Mode) -> None:
    """Another container's turns on the GPU, or a B200 that runs mma.sync's INT8 slowly."""
    slow = rate(H100, "L0", mode, fma_per_clock_per_sm=60.0, tflops=20.0)
    run = replaced(level_run(H100, "L0"), mode, mode_run(H100, "L0", mode, rate=slow))
    verdict = judged(run, mode=mode, machine=H100)
    assert verdict.verdict == ("indicated" if mode == "int8" else "proven")
    assert verdict.rate.says == "cannot tell" and "something slowed them" in verdict.rate.text


def test_a_clock_that_stands_still_without_a_reason_is_a_doubt_and_no_verdict() -> None:
    names = {"hardware": Hardware(kernel_names=UNSEEN)}
    slow = rate(A100, "L1", "fp16", tflops=15.0, fp32_tflops=14.0)
    still = replace(slow, clock_mhz=238.0, clock_event_reasons=[])
    for one, says in ((slow, "not tensor"), (still, "cannot tell")):
        run = replaced(
            level_run(A100, "L1"), "fp16", mode_run(A100, "L1", "fp16", rate=one, **names)
        )
        verdict = judged(run, mode="fp16")
        assert verdict.rate.says == says, verdict.rate
        assert verdict.verdict == ("contradiction" if says == "not tensor" else "indicated")


# -- verdicts other than proven


def test_a_snapshot_is_judged_once_and_never_taken_for_another() -> None:
    first, second = snapshot(A100), snapshot(A100, [level_run(A100, "L0")])
    assert cases(first) is cases(first)
    assert len(cases(second)) == 6 and len(cases(first)) > 6


def test_vectors_without_end_are_not_read() -> None:
    """Each that was never seen takes milliseconds."""
    (one,) = tensor_runs.signatures("int8", A100)
    runs = [
        ModeRun(mode="int8", outcome="ok", signatures=[replace(one, a=[f"{n:02X}"] * 3)] * 2)
        for n in range(256)
    ]
    more = [ModeRun(mode="int8", outcome="ok", signatures=[replace(one, b=["01"] * 3)])]
    found = judge(snapshot(A100, [level_run(A100, "L1", modes=[*runs, *more, runs[0]])]))
    assert "too many to read" in found[256].bits.text
    assert not [row for row in (*found[:256], found[257]) if "too many" in row.bits.text]


@pytest.mark.parametrize("missing", ["rate", "hardware"])
def test_int8_takes_rate_and_hardware_both(missing: str) -> None:
    changes: dict[str, Any] = {"rate": None} if missing == "rate" else {"hardware": Hardware()}
    run = mode_run(A100, "L0", "int8", **changes)
    assert judged(replaced(level_run(A100, "L0"), "int8", run), mode="int8").verdict == "indicated"


# -- causes of "not engaged"

TORCH = "torch"
HALF: Any = ("fp16", "half")
DEFAULT: Any = ("fp32", "default")


def changed(level: Level, mode: Any, framework: str = "", **changes: Any) -> tuple[LevelRun, Any]:
    """A level whose mode ran on CUDA cores, with changes to the level's run. mode: with its setting."""
    return replace(one_mode(level, mode[0], framework, mode[1]), **changes), mode


SWITCHED_OFF = {"TF_DISABLE_CUBLAS_TENSOR_OP_MATH": "1"}
HIGHEST = {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}
OVERRIDDEN = (level_run(A100, "L2", "tensorflow"), ("fp32", "override"))

# ((run, mode and setting), words of the cause, a command of the remedy)
CAUSES: list[tuple[tuple[LevelRun, Any], str, str]] = [
    (changed("L0", ("fp16", "")), "no Tensor Core instruction", "--kernels L0"),
    (changed("L1", ("fp16", "")), "cuBLAS 12.9.1 chose", ""),
    (changed("L1", ("tf32", ""), library_version="10.2.3"), "cuBLAS 10.2.3 is older than TF32", ""),
    (changed("L2", DEFAULT, TORCH), "PyTorch leaves TF32 off",
     "export TORCH_ALLOW_TF32_CUBLAS_OVERRIDE=1"),
    (changed("L2", DEFAULT, "tensorflow", framework_version="1.15.5"),
     "TensorFlow 1.15.5 is older than TF32", ""),
    (changed("L2", HALF, TORCH), "PyTorch chose a kernel on CUDA cores", ""),
    (OVERRIDDEN, "NVIDIA_TF32_OVERRIDE=0, which was set for this run", ""),
    (changed("L2", HALF, "tensorflow", variables=SWITCHED_OFF), "TF_DISABLE_CUBLAS_TENSOR_OP_MATH",
     "unset TF_DISABLE_CUBLAS_TENSOR_OP_MATH"),
    (changed("L2", DEFAULT, "jax", variables=HIGHEST), "JAX_DEFAULT_MATMUL_PRECISION=highest",
     "unset JAX_DEFAULT_MATMUL_PRECISION"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "words", "command"), CAUSES, ids=[row[1] for row in CAUSES])
def test_a_cause_of_not_engaged(run: tuple[LevelRun, Any], words: str, command: str) -> None:
    verdict = judged(run[0], mode=run[1][0], setting=run[1][1])
    assert verdict.verdict == "not engaged", verdict
    assert words in verdict.cause and verdict.cause.endswith("."), verdict.cause
    commands = [] if verdict.remedy is None else verdict.remedy.commands
    assert any(command in one for one in commands) if command else commands == []


def test_the_override_in_the_user_s_environment_is_the_cause() -> None:
    run = one_mode("L2", "fp32", "tensorflow", "default")
    target = {"environment": Environment(variables={"NVIDIA_TF32_OVERRIDE": "0"})}
    verdict = judged(run, mode="fp32", setting="default", target=target)
    assert verdict.cause.startswith("NVIDIA_TF32_OVERRIDE=0 is set in the environment")
    assert verdict.remedy is not None and verdict.remedy.commands == ["unset NVIDIA_TF32_OVERRIDE"]


def test_the_override_does_not_explain_half_precision() -> None:
    target = {"environment": Environment(variables={"NVIDIA_TF32_OVERRIDE": "0"})}
    run = one_mode("L2", "fp16", TORCH, "half")
    assert "OVERRIDE" not in judged(run, mode="fp16", setting="half", target=target).cause


def test_causes_of_others_are_not_taken_for_its_own() -> None:
    tf32 = one_mode("L1", "tf32")
    assert "older" not in judged(replace(tf32, library_version="11.0.3"), mode="tf32").cause
    fp16 = replace(one_mode("L1", "fp16"), library_version="10.2.3")
    assert "older" not in judged(fp16, mode="fp16").cause
    torch = replace(
        one_mode("L2", "fp32", TORCH, "default"),
        variables={"JAX_DEFAULT_MATMUL_PRECISION": "highest"},
        framework_version="1.10.0",
    )
    assert "JAX" not in judged(torch, mode="fp32", setting="default").cause


def test_a_library_is_blamed_where_the_level_below_is_proven() -> None:
    bad = one_mode("L1", "fp16")
    alone, above = judged(bad, mode="fp16"), judged(level_run(A100, "L0"), bad, mode="fp16")
    assert "hardware's Tensor Cores work" in above.cause and above.cause != alone.cause
    (below,) = [
        row
        for row in judge(snapshot(A100, [one_mode("L0", "fp16"), level_run(A100, "L1")]))
        if (row.level, row.mode) == ("L0", "fp16")
    ]
    assert below.verdict == "not engaged" and "lies with the driver's compiler" in below.cause
    framework = one_mode("L2", "fp16", TORCH, "half")
    verdict = judged(level_run(A100, "L1"), framework, mode="fp16", setting="half")
    assert "though cuBLAS uses them" in verdict.cause
    broken = judged(bad, framework, mode="fp16", setting="half")
    assert broken.cause.startswith(
        "FP16 products run on CUDA cores in cuBLAS, too: the chain breaks"
    )
    assert "through the driver alone, too" in judged(one_mode("L0", "fp16"), bad, mode="fp16").cause


def test_modes_of_which_the_chip_has_no_tensor_cores_are_not_applicable_whatever_came_of_them() -> (
    None
):
    ran = mode_run(A100, "L1", "bf16")
    verdict = judged(replaced(level_run(V100, "L1"), "bf16", ran), mode="bf16", machine=V100)
    assert verdict.verdict == "not applicable" and verdict.reason.endswith("run on CUDA cores")
    assert verdict.share is None
    gtx = Machine("NVIDIA GeForce GTX 1660 Ti", "7.5", 24, 1770.0, 1770.0)
    run = replace(level_run(T4, "L0"), name=gtx.name)
    assert judged(run, mode="fp16", machine=gtx).verdict == "not applicable"
    assert judged(run, mode="fp16", machine=gtx).reason.startswith("its chip is one without")


# -- what could not run


@pytest.mark.parametrize(
    ("outcome", "reason", "cause"),
    [
        ("out-of-memory", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", "no memory left"),
        ("timeout", 'no answer within 3 s in stage "rate"', "gave no answer"),
        ("crashed", "its process died by signal 11 (SIGSEGV)", "died"),
        ("error", "cuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS (700)", "broke the CUDA context"),
        ("error", "cublasCreate: CUBLAS_STATUS_NOT_INITIALIZED", ""),
        ("not-supported", "the driver does not compile this", ""),
        ("not-run", "no time left (10 s)", ""),
    ],
)
def test_a_mode_that_could_not_run(outcome: Any, reason: str, cause: str) -> None:
    run = ModeRun(mode="fp16", outcome=outcome, reason=reason)
    verdict = judged(replaced(level_run(A100, "L1"), "fp16", run), mode="fp16")
    assert (verdict.verdict, verdict.reason) == ("could not run", reason)
    assert cause in verdict.cause and bool(cause) == bool(verdict.cause) == (
        verdict.remedy is not None
    )


def test_a_busy_gpu_that_was_not_left_alone_is_never_contradictory_for_its_rate() -> None:
    run = replace(level_run(A100, "L1"), busy=True)
    slow = rate(A100, "L1", "tf32", engaged=False)
    run = replaced(run, "tf32", mode_run(A100, "L1", "tf32", rate=slow))
    verdict = judged(run, mode="tf32")
    assert verdict.rate.says == "cannot tell" and verdict.verdict == "proven"  # bits and names
    alone = replaced(run, "tf32", mode_run(A100, "L1", "tf32", rate=slow, hardware=Hardware()))
    assert "Another process" in judged(alone, mode="tf32").cause


def test_a_level_that_died_as_a_whole_is_judged_mode_by_mode() -> None:
    done = [mode_run(A100, "L2", "fp32", "default", engaged=False)]
    run = level_run(A100, "L2", TORCH, outcome="crashed", reason="signal 9", modes=done)
    found = judge(snapshot(A100, [run]))
    verdicts = {(one.mode, one.setting): one.verdict for one in found}
    assert verdicts.pop(("fp32", "default")) == "not engaged"
    assert set(verdicts) == {
        ("fp32", "control"),
        ("tf32", "switch-on"),
        ("fp16", "half"),
        ("bf16", "half"),
    }
    assert set(verdicts.values()) == {"could not run"}
