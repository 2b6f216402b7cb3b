"""The first suspect of a slow row, from samples as NVML gives them."""

from __future__ import annotations

from typing import Any

import bench_machines as made
import pytest
from bench_runs import run, samples

from envcheck.bench.suspects import suspect
from envcheck.facts.telemetry import GpuSamples

WELL: dict[str, Any] = {
    "sm_clock_mhz": 1410.0,
    "memory_clock_mhz": 1215.0,
    "temperature_c": 62.0,
    "power_w": 390.0,
    "throttle_reasons": 0.0,
    "other_processes": 0.0,
    "pcie_rx_mb_s": 900.0,
}
GPU = made.gpus(
    "a100",
    clock_sm_max_mhz=1410,
    clock_memory_max_mhz=1215,
    temperature_slowdown_c=92,
    power_limit_w=300.0,
    power_default_limit_w=400.0,
    pcie_gen_max=4,
    pcie_width=16,
)[0]


def _suspect(*taken: GpuSamples) -> Any:
    return suspect(run(100, samples=list(taken)), {"0000:01:00.0": GPU})


@pytest.mark.parametrize(
    ("seen", "kind", "words"),
    [
        ({"other_processes": [0.0] * 24 + [1.0] * 16}, "neighbour", "in 40% of the samples"),
        ({"throttle_reasons": [0x40] * 16 + [0] * 24}, "heat", "by the hardware in 40%"),
        ({"throttle_reasons": 0x20}, "heat", "by the driver in 100%"),
        ({"throttle_reasons": 0x80}, "power-brake", "power brake"),
        ({"throttle_reasons": 0x08}, "slowdown", "slowdown by the hardware"),
        ({"throttle_reasons": 0x02}, "clocks-set", "somebody has set"),
        ({"sm_clock_mhz": 1005.0}, "clocks-low", "the SM clock was 1,005 MHz, of 1,410 MHz"),
        ({"memory_clock_mhz": 405.0}, "clocks-low", "the memory's clock was 405 MHz"),
        ({"temperature_c": 90.0}, "heat", "it reached 90 °C, and slows down at 92 °C"),
        ({"pcie_rx_mb_s": 29000.0}, "pcie", "29.0 GB/s went to it"),
        ({"throttle_reasons": 0x04}, "power-cap", "lowered to 300 of 400 W in 100%"),
        ({"throttle_reasons": 0x04, "sm_clock_mhz": 1005.0}, "power-cap", "power limit"),
        ({"throttle_reasons": 0x44}, "heat", "thermal slowdown"),
    ],
)
def test_the_first_that_stands_out(seen: dict[str, Any], kind: str, words: str) -> None:
    found = _suspect(samples(**{**WELL, **seen}))
    assert found.kind == kind and words in found.words
