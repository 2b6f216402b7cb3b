"""The rate's line: when it says tensor, when not, when it must not say anything, and why it is slow."""

from __future__ import annotations

from typing import Any

import pytest
from tensor_runs import MACHINES, MODES, Machine, level_run, mode_run, rate

from envcheck.facts.base import Unavailable
from envcheck.facts.micro_kernels import Level, Mode, ModeRun
from envcheck.tensorcores.rates import Speed, speed

A100, T4, H100, RTX = (MACHINES[name] for name in ("A100", "T4", "H100", "RTX 4090"))
UNKNOWN = Machine("NVIDIA GeForce RTX 4090 Laptop GPU", "8.9", 76, 2040.0, 2000.0)
TIMEOUT = Unavailable(unavailable="timeout", detail="no second sample")


def timed(
    machine: Machine,
    level: Level,
    mode: Mode,
    setting: Any = "",
    run: dict[str, Any] | None = None,
    call: str = "",
    engaged: bool = True,
    **changes: Any,
) -> Speed:
    """What is said of one timing with these changes."""
    this = ModeRun(
        mode=mode,
        setting=setting,
        outcome="ok",
        call=call,
        rate=rate(machine, level, mode, engaged, **changes),
    )
    return speed(level_run(machine, level, modes=[], **(run or {})), this, machine.chip)


def is_known(machine: Any, level: Any, mode: Any) -> bool:
    """Whether tables have what CUDA cores do, which level 0 needs: of B200's INT8 they have not."""
    return level != "L0" or machine.chip.ceiling(mode) is not None


def test_healthy_machines_are_tensor_where_the_expected_ratio_can_show_it() -> None:
    for machine in MACHINES.values():
        for level in ("L0", "L1"):
            for mode in MODES[1:]:
                expected = machine.chip.ratio(mode)
                if expected is not None:
                    result = timed(machine, level, mode).line
                    shows = expected >= 1.5 and is_known(machine, level, mode)
                    assert result.says == ("tensor" if shows else "cannot tell"), result


def test_products_on_cuda_cores_are_never_tensor() -> None:
    for machine in MACHINES.values():
        for level in ("L0", "L1"):
            for mode in MODES[1:]:
                result = timed(machine, level, mode, engaged=False).line
                expected = machine.chip.ratio(mode)
                shows = expected is not None and expected >= 1.5 and is_known(machine, level, mode)
                assert result.says == ("not tensor" if shows else "cannot tell"), (mode, result)


# -- L0: FMA per clock and SM


@pytest.mark.parametrize(
    ("machine", "mode", "count", "says", "words"),
    [
        (A100, "fp16", 64 * 1.5, "tensor", "96 FMA per clock and SM, CUDA cores 64"),
        (A100, "fp16", 64 * 1.49, "cannot tell", "little more"),
        (A100, "fp16", 64 * 1.09, "not tensor", "CUDA cores 64"),
        (A100, "fp16", 1024 * 1.2, "cannot tell", "not measured right"),
        (T4, "int8", 1.5 * 256, "tensor", "CUDA cores 256"),
        (T4, "int8", 256, "not tensor", "CUDA cores 256"),
        (RTX, "tf32", 125, "cannot tell", "only 128"),
        (UNKNOWN, "fp16", 125, "cannot tell", "not known"),
        (UNKNOWN, "fp16", 250, "tensor", "CUDA cores 128"),
        (A100, "fp32", 64, "not tensor", "CUDA cores 64"),
        (A100, "fp32", 96, "tensor", "CUDA cores 64"),
        (MACHINES["H100"], "fp16", 0.55 * 2048, "tensor", "1126 FMA"),
    ],
)
def test_the_rate_for_each_clock(
    machine: Machine, mode: Mode, count: float, says: str, words: str
) -> None:
    line = timed(machine, "L0", mode, fma_per_clock_per_sm=count).line
    assert line.says == says and words in line.text, line


# -- L1, L2: times FP32


@pytest.mark.parametrize(
    ("mode", "ratio", "says"),
    [
        ("fp16", 8.1, "tensor"),  # 16 are expected
        ("fp16", 7.9, "tensor"),  # more than CUDA cores could do at the maximum clock, all the same
        ("tf32", 1.6, "cannot tell"),
        ("tf32", 1.4, "not tensor"),
        ("fp32", 1.0, "not tensor"),  # TF32 would be four times as fast, at the least
        ("fp32", 3.0, "tensor"),
    ],
)
def test_the_ratio_to_fp32(mode: Mode, ratio: float, says: str) -> None:
    fp32 = 15.0
    line = timed(A100, "L1", mode, tflops=fp32 * ratio, fp32_tflops=fp32).line
    assert line.says == says, line


def test_half_precision_accumulation_on_cuda_cores_is_no_proof() -> None:
    """On A100 plain FP16 is four times FP32: under that, times a margin, nothing is said at L2."""
    fp32 = 18.0
    plain = timed(A100, "L2", "fp16", "half", tflops=3.9 * fp32, fp32_tflops=fp32).line
    assert plain.says == "cannot tell", plain
    with_fp32_accumulators = timed(A100, "L1", "fp16", tflops=3.9 * fp32, fp32_tflops=fp32).line
    assert with_fp32_accumulators.says == "tensor"


def test_where_the_ratio_is_not_known_the_absolute_rate_may_say_tensor_and_never_not() -> None:
    most = 2e-6 * 128 * 76 * 2040
    for factor, says in ((1.6, "tensor"), (1.4, "cannot tell"), (0.5, "cannot tell")):
        line = timed(UNKNOWN, "L1", "fp16", tflops=most * factor, fp32_tflops=most).line
        assert line.says == says, line
    assert timed(A100, "L1", "fp16", fp32_tflops=TIMEOUT).line.says == "tensor"


def test_a_framework_s_fp32_products_are_asked_whether_they_are_tf32() -> None:
    on = mode_run(A100, "L2", "fp32", "default", engaged=True)
    off = mode_run(A100, "L2", "fp32", "default", engaged=False)
    run = level_run(A100, "L2", "torch", modes=[])
    assert speed(run, on, A100.chip).line.says == "tensor"
    assert speed(run, off, A100.chip).line.says == "not tensor"
    assert speed(run, on, A100.chip).ratio == pytest.approx(8)
    assert speed(run, off, A100.chip).share == pytest.approx(0.85)  # of FP32's own peak


# -- what disturbs

DOUBTS: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"busy": True}, {}, "another process"),
    ({}, {"spread": 1.6}, "unsteady"),
    ({}, {"timer": "host-clock", "seconds": 5e-5}, "host's clock"),
]


@pytest.mark.parametrize(("run", "changes", "words"), DOUBTS, ids=[d[2] for d in DOUBTS])
def test_a_disturbed_measurement_says_tensor_by_a_wide_margin_or_nothing(
    run: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    slow = timed(A100, "L1", "tf32", run=run, tflops=15.0, fp32_tflops=15.0, **changes).line
    assert slow.says == "cannot tell" and words in slow.text
    narrow = timed(A100, "L1", "tf32", run=run, tflops=35.0, fp32_tflops=7.0, **changes).line
    assert narrow.says == "cannot tell" and words in narrow.text
    assert timed(
        A100, "L1", "tf32", run=run, tflops=130.0, fp32_tflops=15.0, **changes
    ).line.says == ("tensor")
    control = timed(A100, "L0", "fp32", run=run, fma_per_clock_per_sm=60.0, **changes).line
    assert control.says == "cannot tell"


def test_what_beats_the_chip_s_own_peak_was_not_measured_right() -> None:
    line = timed(A100, "L1", "fp16", tflops=400.0, fp32_tflops=15.0).line
    assert line.says == "cannot tell" and "not measured right" in line.text
    a_little = 1.1 * 312.0  # clocks are sampled
    assert timed(A100, "L1", "fp16", tflops=a_little, fp32_tflops=15.0).line.says == "tensor"


def test_a_clock_that_was_read_while_the_gpu_idled_is_not_used() -> None:
    result = timed(H100, "L1", "fp16", clock_mhz=345.0, tflops=700.0, fp32_tflops=50.0)
    assert result.line.says == "tensor" and result.slow == "" and not result.low
    assert result.peak_tflops == pytest.approx(989.2, rel=1e-3)


# -- shares, and why it is slow


def test_at_the_maximum_clock_tensor_cores_are_scaled_and_cuda_cores_are_not() -> None:
    for mode, published in (("fp16", 989.2), ("fp32", 66.9)):
        result = timed(H100, "L1", mode, tflops=50.0, clock_mhz=TIMEOUT)
        assert result.peak_tflops == pytest.approx(published, rel=1e-3)


SLOW: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({}, {"clock_mhz": 900.0, "clock_event_reasons": ["sw_power_cap"]}, "the power cap held it"),
    ({}, {"clock_mhz": 900.0, "clock_event_reasons": ["hw_slowdown", "hw_thermal_slowdown"]}, "heat"),
    ({}, {"clock_mhz": 900.0, "clock_event_reasons": ["sw_thermal_slowdown"]}, "for heat"),
    ({}, {"clock_mhz": 900.0, "clock_event_reasons": ["hw_power_brake_slowdown"]}, "power brake"),
    ({}, {"clock_mhz": 900.0, "clock_event_reasons": []}, "gives no reason"),
    ({"uuid": "MIG-1", "multiprocessors": 14}, {}, "a MIG instance of 14 multiprocessors"),
    ({"busy": True}, {"tflops": 50.0}, "nother process was using the GPU"),
]  # fmt: skip


@pytest.mark.parametrize(("run", "changes", "words"), SLOW, ids=[case[2] for case in SLOW])
def test_why_it_is_slow(run: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    result = timed(A100, "L1", "fp16", run=run, **changes).slow
    assert words in result
    assert result.endswith(".") and result[0].isupper()


@pytest.mark.parametrize(
    ("changes", "low"),
    [
        ({}, False),
        ({"tflops": 0.39 * 311.9}, True),
        ({"tflops": 0.41 * 311.9}, False),
        ({"clock_mhz": 800.0, "clock_event_reasons": ["sw_power_cap"]}, False),
        ({"clock_mhz": 800.0, "clock_event_reasons": ["hw_thermal_slowdown"]}, True),
        ({"clock_mhz": 900.0, "clock_event_reasons": ["hw_thermal_slowdown"]}, False),
    ],
)
def test_what_is_worth_a_warning(changes: dict[str, Any], low: bool) -> None:
    changes = {"tflops": 2e-6 * 1024 * 108 * changes.get("clock_mhz", 1410.0) * 0.85} | changes
    assert timed(A100, "L1", "fp16", **changes).low is low
    assert not timed(A100, "L1", "fp16", run={"busy": True}, **changes).low


def test_int8_at_the_rate_of_dot_products_on_cuda_cores_is_none_of_a_tensor_core() -> None:
    """DP4A makes four products per lane: on A100 four times FP32, where 32 times are expected."""
    assert timed(A100, "L1", "int8", tflops=4.2 * 18.0, fp32_tflops=18.0).line.says == "not tensor"
    assert timed(A100, "L1", "int8", tflops=5.0 * 18.0, fp32_tflops=18.0).line.says == "cannot tell"
    close = timed(MACHINES["T4"], "L1", "int8", tflops=4.2 * 6.0, fp32_tflops=6.0)
    assert close.line.says == "cannot tell"  # T4's are only four times as fast as that


@pytest.mark.parametrize(
    ("name", "level", "mode", "abstains"),
    [
        ("RTX 4090", "L1", "tf32", True),
        ("RTX 4090", "L0", "tf32", True),
        ("RTX 4090", "L1", "fp16", False),
        ("H100", "L1", "tf32", False),
        ("H100", "L1", "fp32", False),
        ("RTX 4090", "L1", "fp32", True),  # whose TF32 is no faster
        ("T4", "L1", "fp32", False),  # which has no TF32
    ],
)
def test_a_rate_abstains_by_nature(name: str, level: Level, mode: Mode, abstains: bool) -> None:
    assert timed(MACHINES[name], level, mode).abstains is abstains


@pytest.mark.parametrize(
    ("source", "reasons", "low"),
    [
        ("NVML", [], True),
        ("clock64 over CUDA events", [], False),  # others had their turns in between
        ("NVML", TIMEOUT, False),
        ("NVML", ["sw_power_cap"], False),
    ],
)
def test_a_low_clock_under_load_that_nothing_explains(source: str, reasons: Any, low: bool) -> None:
    rates = {"tflops": 80.0, "fp32_tflops": 5.0, "clock_mhz": 400.0}
    result = timed(A100, "L1", "fp16", clock_source=source, clock_event_reasons=reasons, **rates)
    assert result.low is low
    if low:
        assert "400 of 1410 MHz, and the driver gives no reason" in result.slow
