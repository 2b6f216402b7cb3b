"""What mixed precision gains: each state of ACC-005 from made-up runs, and the timing in turns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import msgspec
import pytest
from amp_runs import (
    FP16_KERNEL,
    GRAPH,
    PLAIN_KERNEL,
    SPEED,
    bad,
    finding,
    judged,
    reason,
    run,
    seen,
    speeds,
    timed,
    trial,
)
from targets import gpu, judge, machine, replace

from envcheck.collector.systems import amp_speed_torch
from envcheck.collector.systems.running import records
from envcheck.collector.systems.shared.amp import turns
from envcheck.findings.model import CheckResult

GTX_1660 = {"gpu": "NVIDIA GeForce GTX 1660 Ti", "compute_capability": "7.5"}
K40 = {"gpu": "Tesla K40m", "compute_capability": "3.5"}


def test_gain_is_told_for_each_step_and_size() -> None:
    result = judged(SPEED, *speeds())
    assert result.outcome == "pass"
    assert result.detail == (
        "TensorFlow 2.15.1: product 6.0 times as fast as FP32 (1.8 as TF32), convolution 3.0 times as "
        "fast as FP32; at 4097 4.0 times, at 4095 4.0 times"
    )


def test_sizes_that_are_no_multiple_of_8_and_gain_nothing_are_told() -> None:
    trials = speeds()
    trials[1] = timed("product n+1", 6.5, 6.0, n=4097)
    result = judged(SPEED, *trials)
    assert result.outcome == "pass"
    assert result.detail.endswith("sizes that are no multiple of 8 gain nothing here")


@pytest.mark.parametrize(
    ("chip", "words"),
    [
        (GTX_1660, "NVIDIA GeForce GTX 1660 Ti has no Tensor Cores (its chip is one without"),
        (K40, "Tesla K40m has no Tensor Cores (Tensor Cores came with compute capability 7.0)"),
    ],
)
def test_gpu_without_tensor_cores_is_the_cause(chip: dict[str, str], words: str) -> None:
    found = finding(judged(SPEED, *speeds(0.9, 0.25, **chip)))
    assert found.level == "warn"
    assert words in found.message
    assert "product 0.9 times as fast and convolution 0.25 times as fast" in found.message
    assert len(found.evidence) == 2


def test_gpu_without_tensor_cores_on_which_half_is_faster_all_the_same_is_well() -> None:
    assert judged(SPEED, *speeds(1.7, 1.5, gpu="Tesla P100", compute_capability="6.0")).outcome == (
        "pass"
    )


def test_name_of_the_gpu_is_the_drivers_where_the_framework_says_none() -> None:
    nameless = [timed("product", 1.0, 1.0, gpu="", compute_capability="", host_ms=0.1)]
    found = finding(judged(SPEED, *nameless))
    assert "the cause is not seen" in found.message  # an H100, by its address
    unknown = finding(judged(SPEED, *nameless, gpus=[]))
    assert "Tensor Cores" not in unknown.message.partition(":")[2]


def test_step_that_the_host_holds_up_is_the_cause() -> None:
    found = finding(judged(SPEED, *speeds(1.0, 1.0, host_ms=0.95)))
    assert "the host needs 0.95 ms to start a step, and the GPU waits for it" in found.message
    assert found.remedy is not None and "uptime" in found.remedy.commands[0]


def test_kernels_on_cuda_cores_are_the_cause() -> None:
    found = finding(judged(SPEED, *speeds(1.0, kernels=[PLAIN_KERNEL, "cast_kernel"])))
    assert f"it runs on CUDA cores ({PLAIN_KERNEL})" in found.message
    good = finding(judged(SPEED, *speeds(1.0, kernels=[FP16_KERNEL, PLAIN_KERNEL])))
    assert "its kernels run on Tensor Cores, and the cause is not seen" in good.message


def test_size_is_the_cause_where_the_step_has_one_that_is_no_multiple_of_8() -> None:
    found = finding(judged(SPEED, timed("product", 1.0, 1.0, n=1001)))
    assert "1001 is no multiple of 8" in found.message


def test_version_that_is_known_for_slow_convolutions_is_the_cause() -> None:
    found = finding(judged(SPEED, *speeds(5.0, 0.1), framework_version="2.4.1"))
    assert "Conv2D of 16-bit numbers" in found.message
    assert found.remedy is not None and "tensorflow>=2.5" in found.remedy.commands[0]
    other = finding(judged(SPEED, *speeds(5.0, 0.1), framework_version="2.15.1"))
    assert "the cause is not seen" in other.message
    assert "product" not in other.message


def test_tf32_that_has_no_switch_is_no_fp32() -> None:
    """TensorFlow 1.15 of NVIDIA: what is not mixed may be TF32 on an H100, on a T4 it is FP32."""
    may_be = speeds(1.05, 1.05, float32_is="its default")
    assert judged(SPEED, *may_be, framework_version="1.15.5").outcome == "pass"
    assert "times as fast as 32 bits" in judged(SPEED, *may_be).detail
    t4 = speeds(1.05, 1.05, float32_is="its default", gpu="Tesla T4", compute_capability="7.5")
    assert judged(SPEED, *t4).outcome == "warn"


def unjudged(result: CheckResult) -> str:
    assert result.outcome == "could-not-run"
    return reason(result)


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (bad("product", "out-of-memory", "CUDA out of memory"), "CUDA out of memory"),
        (bad("product", "timeout", "not done within 30 s"), "not done within 30 s"),
        (bad("product", "error", "CUBLAS_STATUS_ALLOC_FAILED"), "CUBLAS_STATUS_ALLOC_FAILED"),
        (trial("product", n=4096), "the step has no times"),
        (timed("product", -1.0, 2.0), "the step has no times"),
        (trial("product", amp_ms="fast", float32_ms=["slow"]), "the step has no times"),
    ],
)
def test_step_without_times_could_not_run(main: Any, words: str) -> None:
    assert words in unjudged(judged(SPEED, main))


def test_run_without_trials_says_why() -> None:
    assert "no GPU" in unjudged(judged(SPEED, outcome="not-run", reason="no GPU: none there"))
    gone = judged(SPEED, outcome="not-applicable", reason="built without CUDA")
    assert gone.outcome == "skipped"


def test_convolution_that_failed_is_told_beside_the_product() -> None:
    trials = [*speeds()[:3], bad("convolution", "error", "no cuDNN")]
    result = judged(SPEED, *trials)
    assert result.outcome == "pass"
    assert "convolution: no cuDNN" in result.detail


def graph(fast: float, half: int = 5, **more: Any) -> Any:
    on = trial("session", half_convolutions=half, half_products=half, step_ms=fast)
    return run(GRAPH, on, trial("session off", True, step_ms=10.0), **more)


def both(*runs: Any) -> CheckResult:
    return judge(seen(run(SPEED, *speeds()), *runs), "ACC-005", "acceleration")


def test_steps_of_the_graph_rewrite_are_told_where_they_were_timed() -> None:
    assert "the graph rewrite (session) 4 times as fast" in both(graph(2.5)).detail
    assert "a step as small as this one gains nothing" in both(graph(10.0)).detail
    for silent in (graph(10.0, half=0), graph(0.0), graph(10.0, device="cpu")):
        assert "rewrite" not in both(silent).detail


def test_graph_rewrite_on_a_gpu_without_tensor_cores_is_a_warning() -> None:
    old = msgspec.structs.replace(gpu(0), name="Tesla K40m", compute_capability="3.5")
    snap = replace(seen(run(SPEED, *speeds()), graph(10.0)), "machine", **machine(old))
    found = finding(judge(snap, "ACC-005", "acceleration"))
    assert "the graph rewrite (session) 1 times as fast): Tesla K40m has no Tensor" in found.message


@pytest.mark.parametrize(
    "value",
    [-1, 0, 10**400, float("inf"), "3", [], ["x" * 5000], 2**63],
    ids=lambda value: str(value)[:8],
)
def test_hostile_values_are_judged_all_the_same(value: Any) -> None:
    trials = speeds(1.0, 1.0, kernels=[PLAIN_KERNEL])
    for place, one in enumerate(trials):
        for key in one.evidence:
            changed = trial(one.name, **{**one.evidence, key: value})
            result = judged(SPEED, *trials[:place], changed, *trials[place + 1 :])
            assert "crashed" not in " ".join(found.message for found in result.findings)


def test_variants_are_timed_in_turns() -> None:
    order: list[str] = []

    def variant(name: str, seconds: float) -> tuple[str, Any]:
        def took(count: int) -> float:
            order.append(f"{name}{count}")
            return seconds * count

        return name, took

    made = turns.milliseconds([variant("a", 0.02), variant("b", 0.01)], slice_seconds=0.05)
    assert made == {"a": 20.0, "b": 10.0}
    assert order == ["a2", "a2", "b2", "b2", *["a2", "b5"] * turns.ROUNDS]


def test_median_round_counts() -> None:
    times = iter([1.0, 1.0, 1.0, 9.0, 2.0])
    assert turns.milliseconds([("a", lambda count: next(times))]) == {"a": 2000.0}


class FakeTorch:
    """A PyTorch on a made-up GPU: a step takes 1 ms in 16 bits, 2 in TF32, 6 in FP32; its products alone."""

    def __init__(self, capability: tuple[int, int]) -> None:
        self.now = 0.0
        self.half = False
        self.torch = MagicMock()
        self.torch.version.cuda = "12.4"
        self.torch.matmul.side_effect = self.product
        self.torch.nn.Sequential.return_value.to.return_value.side_effect = self.product
        self.torch.autocast.side_effect = self.autocast
        self.torch.cuda.Event.side_effect = lambda enable_timing: FakeEvent(self)
        self.torch.cuda.get_device_properties.return_value = SimpleNamespace(
            name="NVIDIA A100", major=capability[0], minor=capability[1], multi_processor_count=108
        )

    def autocast(self, device: str, dtype: Any, enabled: bool) -> Any:
        assert (device, dtype) == ("cuda", self.torch.float16)
        self.half = enabled
        return nullcontext()

    def product(self, *_arguments: Any) -> Any:
        backends = self.torch.backends
        assert backends.cuda.matmul.allow_tf32 == backends.cudnn.allow_tf32
        self.now += 1.0 if self.half else 2.0 if backends.cudnn.allow_tf32 else 6.0
        return MagicMock()


class FakeEvent:
    def __init__(self, made: FakeTorch) -> None:
        self.made = made

    def record(self) -> None:
        self.at = self.made.now

    def synchronize(self) -> None:
        pass

    def elapsed_time(self, other: FakeEvent) -> float:
        return other.at - self.at


def on_a_gpu(monkeypatch: pytest.MonkeyPatch, capability: tuple[int, int], mib: int | None) -> Any:
    """The trials of amp_speed_torch, by name."""
    kept = records.KeptTrials()

    @contextmanager
    def names(path: str | None, major: int | None) -> Iterator[SimpleNamespace]:
        assert (path, major) == (None, 12)
        yield SimpleNamespace(found=["gemm_f16"])

    monkeypatch.setattr("envcheck.collector.kernels.cupti.kernel_names", names)
    params = {"device": "gpu", "memory_mib": mib, "gpus": []}
    with warnings.catch_warnings():
        amp_speed_torch.run(FakeTorch(capability).torch, params, kept)
    return {trial["name"]: trial for trial, _key in kept.trials}


def test_pytorch_on_a_made_up_gpu_is_timed_in_all_precisions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = on_a_gpu(monkeypatch, (8, 0), 8000)
    assert [one["outcome"] for one in made.values()] == ["ok"] * 4
    product = made["product"]["evidence"]
    assert (product["amp_ms"], product["float32_ms"], product["tf32_ms"]) == (1.0, 6.0, 2.0)
    assert (product["n"], product["gpu"], product["compute_capability"]) == (
        4096,
        "NVIDIA A100",
        "8.0",
    )
    assert product["kernels"] == ["gemm_f16"] and product["host_ms"] == 1.0
    odd = made["product n+1"]["evidence"]
    assert odd["n"] == 4097 and "tf32_ms" not in odd and "kernels" not in odd
    assert made["convolution"]["evidence"]["float32_ms"] == 6.0


def test_little_memory_makes_small_steps_and_turing_has_no_tf32(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = on_a_gpu(monkeypatch, (7, 5), None)
    assert made["product"]["evidence"]["n"] == 2048
    assert made["convolution"]["evidence"]["n"] == 8
    assert "tf32_ms" not in made["product"]["evidence"]
