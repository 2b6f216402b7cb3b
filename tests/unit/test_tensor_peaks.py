"""Peaks: which GPU a name means, what is not known of it, and what agrees with published figures."""

from __future__ import annotations

import pytest
from tensor_runs import MACHINES

from envcheck.collector.kernels.products import FIRST
from envcheck.collector.kernels.ptx import products
from envcheck.data import table
from envcheck.tensorcores.peaks import chip, tflops

MODES = ("tf32", "fp16", "bf16", "int8", "fp8")

# (libcuda's name, compute capability): FMA per clock and SM of (TF32, FP16, BF16, INT8, FP8)
KNOWN = {
    ("NVIDIA H100 80GB HBM3", "9.0"): (1024, 2048, 2048, 4096, 4096),
    ("NVIDIA H100 80GB HBM3 MIG 1g.10gb", "9.0"): (1024, 2048, 2048, 4096, 4096),
    ("NVIDIA GH200 480GB", "9.0"): (1024, 2048, 2048, 4096, 4096),
    ("Tesla T4", "7.5"): (None, 512, None, 1024, None),
    ("GeForce RTX 2080 Ti", "7.5"): (None, 256, None, 1024, None),
    ("Tesla V100-SXM2-16GB", "7.0"): (None, 512, None, None, None),
    ("NVIDIA A100 80GB PCIe", "8.0"): (512, 1024, 1024, 2048, None),
    ("NVIDIA A800-SXM4-80GB", "8.0"): (512, 1024, 1024, 2048, None),
    ("NVIDIA A10G", "8.6"): (256, 512, 512, 1024, None),
    ("NVIDIA GeForce RTX 3060", "8.6"): (128, 256, 256, 1024, None),
    ("NVIDIA GeForce RTX 4090", "8.9"): (128, 256, 256, 1024, 512),
    ("NVIDIA RTX 6000 Ada Generation", "8.9"): (256, 512, 512, 1024, 1024),
    ("NVIDIA L40S", "8.9"): (256, 512, 512, 1024, 1024),
    ("NVIDIA L40", "8.9"): (128, 256, 256, 512, 512),
    ("NVIDIA B200", "10.0"): (2048, 4096, 4096, 8192, 8192),
    ("NVIDIA B300 SXM6 AC", "10.3"): (2048, 4096, 4096, None, 8192),
    ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "12.0"): (256, 512, 512, 1024, 1024),
}


@pytest.mark.parametrize(("name", "capability"), KNOWN, ids=lambda word: word)
def test_the_rates_of_a_gpu_by_its_name(name: str, capability: str) -> None:
    there = chip(name, capability)
    assert tuple(there.rate(mode) for mode in MODES) == KNOWN[name, capability]


@pytest.mark.parametrize(
    "name", ["NVIDIA GeForce GTX 1650", "NVIDIA GeForce MX450", "NVIDIA T600", "NVIDIA CMP 30HX"]
)
def test_a_chip_of_7_5_without_tensor_cores_is_known_by_its_name(name: str) -> None:
    there = chip(name, "7.5")
    assert there.has("fp16") is False and there.has("int8") is False and there.why_none


def test_a_mode_that_is_not_there_is_told_from_a_rate_that_is_not_known() -> None:
    b300 = chip("NVIDIA B300 SXM6 AC", "10.3")
    assert b300.has("int8") is True and b300.rate("int8") is None and b300.ratio("int8") is None
    a100 = MACHINES["A100"].chip
    assert a100.has("fp8") is False
    assert chip("NVIDIA X100", "14.0").has("fp8") is None
    assert chip("", "").has("fp16") is None


@pytest.mark.parametrize(
    ("name", "capability", "modes"),
    [
        ("Tesla V100-SXM2-16GB", "7.0", {"fp16"}),
        ("Tesla T4", "7.5", {"fp16", "int8"}),
        ("NVIDIA A100-SXM4-40GB", "8.0", {"tf32", "fp16", "bf16", "int8"}),
        ("NVIDIA L4", "8.9", set(MODES)),
        ("NVIDIA GeForce GTX 1660 Ti", "7.5", set()),
        ("NVIDIA T1000 8GB", "7.5", set()),
        ("Tesla P100-PCIE-16GB", "6.0", set()),
    ],
)
def test_the_modes_of_a_chip(name: str, capability: str, modes: set[str]) -> None:
    there = chip(name, capability)
    assert {mode for mode in MODES if there.has(mode)} == modes
    assert bool(there.why_none) == (not modes)
    assert there.has("fp32") is True


COLUMNS = ("fp32", *MODES)
ROWS = [row for row in table("gpus") if row["throughput_key"] and row["boost_mhz"]]


def test_peaks_at_the_boost_clock_are_those_that_were_computed_from_the_published() -> None:
    assert len(ROWS) > 60
    for row in ROWS:
        there = chip(row["gpu"], row["compute_capability"])
        for mode in COLUMNS:
            rate, published = there.rate(mode), row[f"calc_{mode}"]
            assert (rate is None) == (not published), (row["gpu"], mode)
            if rate is not None:
                clock = float(row["boost_mhz"]) * (1.0 if mode == "fp32" else there.boost_scale)
                peak = tflops(rate, int(row["sm"]), clock)
                assert peak == pytest.approx(float(published), rel=1e-3, abs=0.051), row["gpu"]


def test_ceilings_are_bounds_that_the_tensor_cores_pass() -> None:
    for machine in MACHINES.values():
        there = machine.chip
        for mode in ("fp16", "int8", "fp8"):
            rate, ceiling = there.rate(mode), there.ceiling(mode)
            assert rate is None or ceiling is None or rate >= 1.5 * ceiling, (machine.name, mode)
    assert MACHINES["H100"].chip.ceiling("fp16", half_accumulator=True) == 256
    assert MACHINES["H100"].chip.ceiling("fp16") == 128
    assert MACHINES["H100"].chip.ceiling("tf32", half_accumulator=True) == 128
    assert MACHINES["T4"].chip.ceiling("int8") == 256


def test_the_collector_s_tables_name_the_same_modes() -> None:
    """It cannot read core_rates.csv; what its kernels lack, they give a reason for."""
    missing = set()
    for row in table("core_rates"):
        modes = set(row["modes"].split())
        capability = tuple(map(int, row["compute_capability"].split(".")))
        assert {m for m, first in FIRST.items() if capability >= first} == modes, row
        kernels = {mode for mode in MODES if products(mode, capability)}
        assert kernels <= modes
        missing |= {(row["compute_capability"], mode) for mode in modes - kernels}
    assert missing == {("7.2", "int8"), ("10.0", "fp8"), ("10.3", "fp8")}
