"""What a GPU can do at most, per clock and multiprocessor: on its Tensor Cores, and without them.

All rates are fused multiply-adds (FMA) per clock and SM, dense, from ``gpus.csv``, ``sm_throughput.csv``,
``throughput_keys.csv``, ``core_rates.csv`` and ``tensor_core_exceptions.csv``. What no source gave is None.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from ..data import table
from ..data.gpu_names import model
from ..facts.micro_kernels import Mode

# A mode's column in sm_throughput.csv; FP16, BF16 and FP8 with FP32 accumulation.
_COLUMNS: dict[Mode, str] = {
    "tf32": "tf32_tc",
    "fp16": "fp16_tc_fp32acc",
    "bf16": "bf16_tc",
    "int8": "int8_tc",
    "fp8": "fp8_tc_fp32acc",
}
# Capabilities all of whose GPUs have the same Tensor Cores, but for those in tensor_core_exceptions.csv.
_ONE_KIND = ("7.0", "8.0", "9.0", "10.0")
_HALVES = ("fp16", "bf16")


class Chip(NamedTuple):
    """What the tables know of one GPU.

    modes: those that its Tensor Cores have; None where that is not known. tensor: FMA per clock and SM of
    each mode whose rate is known. lanes: the same of its FP32 CUDA cores. half, int8: of plain FP16 with
    FP16 accumulation and of DP4A. boost_scale: of the Tensor Cores' clock to the boost clock in their
    published peaks; with a clock that was observed it does not apply.
    """

    modes: frozenset[Mode] | None
    tensor: Mapping[Mode, float] = {}
    lanes: float | None = None
    half: float | None = None
    int8: float | None = None
    boost_scale: float = 1.0
    why_none: str = ""  # why it has no Tensor Cores at all

    def has(self, mode: Mode) -> bool | None:
        """Whether its Tensor Cores have this mode; FP32 is no mode of theirs, and always there."""
        return True if mode == "fp32" else None if self.modes is None else mode in self.modes

    def rate(self, mode: Mode) -> float | None:
        """FMA per clock and SM: of the Tensor Cores, for FP32 of the CUDA cores."""
        return self.lanes if mode == "fp32" else self.tensor.get(mode)

    def ceiling(self, mode: Mode, half_accumulator: bool = False) -> float | None:
        """FMA per clock and SM that CUDA cores can reach at most in this mode."""
        if mode == "int8":
            return self.int8
        return self.half if half_accumulator and mode in _HALVES else self.lanes

    def ratio(self, mode: Mode) -> float | None:
        """How many times as fast as FP32 on CUDA cores the mode is at its peak."""
        rate = self.rate(mode)
        return rate / self.lanes if rate is not None and self.lanes else None


def tflops(fma_per_clock_per_sm: float, multiprocessors: int, clock_mhz: float) -> float:
    """10^12 operations per second (two for each FMA) at this clock."""
    return 2e-6 * fma_per_clock_per_sm * multiprocessors * clock_mhz


@cache
def chip(name: str, compute_capability: str) -> Chip:
    """The GPU that libcuda calls ``name`` ("NVIDIA H100 80GB HBM3"); "" where one of both is not known."""
    core = next(
        (r for r in table("core_rates") if r["compute_capability"] == compute_capability), None
    )
    if core is None:
        volta = _before_volta(compute_capability)
        return Chip(frozenset() if volta else None, why_none=volta)
    exception = next(
        (r for r in table("tensor_core_exceptions") if re.search(r["pattern"], name)), None
    )
    lanes, half, int8 = (_number(core[column]) for column in ("fp32", "half", "int8"))
    if exception is not None and exception["tensor_cores"] == "no":
        return Chip(frozenset(), {}, lanes, half, int8, 1.0, "its chip is one without Tensor Cores")
    modes = frozenset(mode for mode in _COLUMNS if mode in core["modes"].split())
    key = "" if exception is not None else _key(name, compute_capability)
    tensor, scale = _rates(key)
    return Chip(modes, {m: r for m, r in tensor.items() if m in modes}, lanes, half, int8, scale)


def _before_volta(compute_capability: str) -> str:
    major = compute_capability.partition(".")[0]
    if major.isdecimal() and int(major) < 7:
        return "Tensor Cores came with compute capability 7.0"
    return ""


def _key(name: str, compute_capability: str) -> str:
    """The row of sm_throughput.csv (or throughput_keys.csv) for a GPU; "" where that is not known."""
    for row in table("gpus"):
        if row["compute_capability"] == compute_capability and model(row["gpu"]) == model(name):
            return row["throughput_key"]
    return compute_capability if compute_capability in _ONE_KIND else ""


def _rates(key: str) -> tuple[dict[Mode, float], float]:
    """({mode: FMA per clock and SM}, the boost clock's scale) of a row; empty for an unknown key."""
    changes = [row for row in table("throughput_keys") if row["key"] == key]
    base = changes[0]["base"] if changes else key
    row = next((row for row in table("sm_throughput") if row["key"] == base), None)
    if row is None:
        return {}, 1.0
    cells = {mode: row[column] for mode, column in _COLUMNS.items()}
    cells |= {
        mode: change["value"] for change in changes for mode in _COLUMNS if mode == change["mode"]
    }
    return (
        {mode: float(cell) for mode, cell in cells.items() if cell},
        float(row["tensor_clock_scale"]),
    )


def _number(cell: str) -> float | None:
    return float(cell) if cell else None
