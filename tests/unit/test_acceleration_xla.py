"""XLA and its clustering: engaged, not engaged for each cause, and what tells nothing."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import system_runs
from judged import only, text_of
from system_runs import result, trial
from targets import compiler_tool, tensorflow

from envcheck.facts.acceleration import SystemRun, SystemTrial
from envcheck.facts.target import Environment, FrameworkGpu

OFF = trial("off", control=True, clusters=0, modules=0, fusions=0, runs=0, result=3871.7)
JIT = trial("jit_compile", modules=1, fusions=1, result=3871.7, difference=1.2e-7)
CLUSTERED = trial(
    "auto-clustering", clusters=1, runs=1, modules=1, fusions=1, result=3871.7, difference=0.0
)
EMPTY = trial("auto-clustering", clusters=0, runs=0, modules=0, fusions=0, difference=0.0)


def run(*trials: SystemTrial, **more: Any) -> SystemRun:
    return system_runs.run("xla", *trials, **more)


def jax(*trials: SystemTrial, **more: Any) -> SystemRun:
    return run(*trials, framework="jax", framework_version="0.4.35", **more)


WELL = run(OFF, JIT, CLUSTERED)
NO_JIT = trial(
    "disable_jit", control=True, calls=2, python_runs=2, modules=0, fusions=0, result=3871.7
)
TRACED = trial("jit", calls=2, python_runs=1, modules=1, fusions=2, difference=1.8e-7)


def variables(**values: str) -> dict[str, Any]:
    return {"environment": Environment(variables=values)}


def crashed(
    name: str, *log: str, reason: str = "its process died by signal 6 (SIGABRT)"
) -> SystemRun:
    dead = trial(name, "crashed", reason)
    return run(OFF, dead, outcome="crashed", reason=reason, log=list(log))


def test_engaged() -> None:
    assert result("ACC-007", WELL).outcome == "pass"
    answer = result("ACC-007", WELL, jax(NO_JIT, TRACED))
    assert answer.outcome == "pass"
    assert "TensorFlow 2.15.1: 1 module, 1 fusion" in answer.detail
    assert "JAX 0.4.35: 1 module, 2 fusions" in answer.detail
    answer = result("ACC-008", WELL, jax(NO_JIT, TRACED))
    assert answer.outcome == "pass"
    assert "1 cluster, 1 module" in answer.detail and "JAX" not in answer.detail


@pytest.mark.parametrize(
    ("flags", "rest"),
    [
        ("--tf_xla_auto_jit=-1", "unset TF_XLA_FLAGS"),
        (
            "--tf_xla_max_cluster_size=9 --tf_xla_min_cluster_size=1000",
            "export TF_XLA_FLAGS=--tf_xla_max_cluster_size=9",
        ),
        ("--tf_xla_clustering_fuel=0", "unset TF_XLA_FLAGS"),
    ],
)
def test_a_variable_switches_clustering_off(flags: str, rest: str) -> None:
    one = run(OFF, JIT, EMPTY)
    finding = only(result("ACC-008", one, **variables(TF_XLA_FLAGS=flags)))
    assert finding.level == "fail"
    assert f"TF_XLA_FLAGS={flags.split()[-1]} switches it off" in finding.headline
    assert rest in text_of(finding)
    assert result("ACC-007", one, **variables(TF_XLA_FLAGS=flags)).outcome == "pass"


NO_SM_90 = "ptxas fatal   : Value 'sm_90' is not defined for option 'gpu-name'"


def old_ptxas() -> dict[str, Any]:
    tools = [
        compiler_tool("ptxas", "PATH", "/usr/local/cuda-11.2/bin", "11.2.152"),
        compiler_tool("libdevice", "/usr/local/cuda", "/usr/local/cuda"),
    ]
    gpus = [FrameworkGpu(name="NVIDIA H100 80GB HBM3", compute_capability="9.0")]
    facts = tensorflow(version="2.9.1", built_cuda="11.2", compiler_tools=tools, gpus=gpus)
    return {"tensorflow": facts}


def test_a_ptxas_that_does_not_know_the_gpu() -> None:
    finding = only(result("ACC-007", crashed("jit_compile", NO_SM_90), **old_ptxas()))
    assert finding.headline == ("XLA is on and ends the process: ptxas 11.2 does not know sm_90")
    stopped = trial("jit_compile", "error", f"InternalError: {NO_SM_90}")
    finding = only(result("ACC-007", run(OFF, stopped, EMPTY), **old_ptxas()))
    assert finding.headline == "XLA is on and compiles nothing: ptxas 11.2 does not know sm_90"
    assert "nvidia-cuda-nvcc" in text_of(finding)
    unknown = [FrameworkGpu(name="NVIDIA H100 80GB HBM3")]
    facts = msgspec.structs.replace(old_ptxas()["tensorflow"], gpus=unknown)
    finding = only(result("ACC-007", run(OFF, stopped, EMPTY), tensorflow=facts))
    assert finding.headline.endswith("ptxas 11.2 does not know sm_90")


@pytest.mark.parametrize(
    ("line", "words", "commands"),
    [
        (
            "ptxas input, line 9; fatal   : Unsupported .version 8.4; current version is '8.2'",
            "knows PTX up to 8.2, and XLA writes 8.4",
            "ptxas",
        ),
        (
            "libdevice not found at ./libdevice.10.bc [Op:__inference_step_7]",
            "libdevice.10.bc is not found",
            "xla_gpu_cuda_data_dir|nvidia-cuda-nvcc",
        ),
        (
            "Couldn't invoke ptxas --version",
            "ptxas is not found",
            "xla_gpu_cuda_data_dir|nvidia-cuda-nvcc",
        ),
        (
            "failed to load PTX text as a module: CUDA_ERROR_UNSUPPORTED_PTX_VERSION: the provided PTX was "
            "compiled with an unsupported toolchain",
            "the driver 550.54.15 is too old for the PTX of CUDA 12.5.1",
            "driver",
        ),
        (
            "CUDA_ERROR_NO_BINARY_FOR_GPU: no kernel image",
            "no code that runs on this GPU",
            "FRM-004",
        ),
        ("failed call: CUDA_ERROR_ILLEGAL_ADDRESS", "CUDA answers CUDA_ERROR_ILLEGAL_ADDRESS", ""),
    ],
)
def test_the_log_names_the_cause(line: str, words: str, commands: str) -> None:
    import re

    for one in (
        run(OFF, trial("jit_compile", "error", f"InternalError: {line}"), EMPTY),
        crashed("jit_compile", f"2026-11-22 17:00:00: E xla/x.cc:9] {line}"),
    ):
        finding = only(result("ACC-007", one))
        assert words in finding.headline and finding.headline.startswith("XLA is on and ")
        assert re.search(commands, text_of(finding))
        assert line[:40] in text_of(finding)


@pytest.mark.parametrize("where", ["off", "jit_compile"])
def test_a_flag_that_this_build_does_not_know(where: str) -> None:
    name = "TF_XLA_FLAGS" if where == "off" else "XLA_FLAGS"
    why = (
        "its process died by signal 6 (SIGABRT): F0000 parse_flags_from_env.cc:234] Unknown flag in "
        f"{name}: --xla_nonsense=1"
    )
    dead = trial(where, "crashed", why, control=where == "off")
    one = run(*([dead] if where == "off" else [OFF, dead]), outcome="crashed", reason=why)
    given = variables(**{name: "--xla_other=2 --xla_nonsense=1"})
    finding = only(result("ACC-007", one, **given))
    assert f"ends the process: {name} holds --xla_nonsense, which" in finding.headline
    assert f"export {name}=--xla_other=2" in text_of(finding)


def test_another_result_is_a_failure() -> None:
    wrong = trial("jit_compile", modules=1, fusions=1, result=1.0, difference=0.02)
    finding = only(result("ACC-007", run(OFF, wrong, CLUSTERED)))
    assert finding.level == "fail" and "computes something else" in finding.headline
    assert "off by 0.02" in finding.message


def test_what_could_not_run() -> None:
    gone = run(
        outcome="not-run",
        reason="tensorflow sees no GPU",
    )
    assert result("ACC-007", gone).outcome == "could-not-run"
    for outcome in ("timeout", "out-of-memory"):
        late = run(OFF, trial("jit_compile", outcome, "no answer within 20 s"))
        answer = result("ACC-007", late)
        assert (answer.outcome, answer.findings) == ("could-not-run", [])
    taken = trial("jit_compile", "error", "InternalError: CUDA_ERROR_OUT_OF_MEMORY: out of memory")
    assert result("ACC-007", run(OFF, taken)).outcome == "could-not-run"
    dead = run(trial("off", "crashed", "died", control=True), outcome="crashed", reason="died")
    assert result("ACC-007", dead).outcome == "could-not-run"
    assert result("ACC-008", crashed("jit_compile")).outcome == "could-not-run"


def test_what_is_not_applicable() -> None:
    old = trial("jit_compile", "not-supported", "tf.function of this TensorFlow has no jit_compile")
    answer = result("ACC-007", run(OFF, old, CLUSTERED))
    assert answer.outcome == "skipped" and answer.reason.startswith("not applicable: TensorFlow")
    bare = trial("jit_compile", "error", "NotFoundError: not built with XLA")
    assert result("ACC-007", run(OFF, bare)).outcome == "skipped"
    assert (
        result("ACC-008", jax(NO_JIT, TRACED)).reason
        == "not applicable: the target has no TensorFlow"
    )
    assert result("ACC-007", asked="xla").reason.startswith("not applicable: ")
    assert result("ACC-007", asked="nccl").reason == "only --level deep runs it"


def test_missing_and_hostile_evidence_is_no_pass() -> None:
    assert only(result("ACC-007", run(OFF, trial("jit_compile")))).headline.endswith("no reason")
    odd = trial("jit_compile", modules="many", difference=[])
    assert only(result("ACC-007", run(OFF, odd)))
    nothing = run(OFF, trial("jit_compile", modules=1, fusions=1))
    assert result("ACC-007", nothing).outcome == "could-not-run"
