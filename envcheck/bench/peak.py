"""Model FLOPs utilisation: what a row computes, as a share of what its GPUs can in that mode."""

from __future__ import annotations

from typing import NamedTuple

from ..data import table
from ..data.gpu_names import model
from ..facts.bench import BenchRow
from ..facts.micro_kernels import Mode
from ..tensorcores.peaks import tflops
from .models import flops
from .places import BenchGpu

_WORDS: dict[Mode, str] = {"fp32": "FP32", "tf32": "TF32", "fp16": "FP16", "bf16": "BF16"}


class Peak(NamedTuple):
    tflops: float
    words: str  # "312 TFLOP/s in FP16, at the boost clock of 1,410 MHz"


def mode_of(row: BenchRow) -> Mode:
    if row.precision == "tf32":
        return "tf32"
    if row.precision == "amp":
        return "bf16" if row.half == "bfloat16" else "fp16"
    return "fp32"


def peak(gpu: BenchGpu, mode: Mode) -> Peak | None:
    """At the boost clock, as makers publish it; None where the tables do not have it."""
    rate = gpu.chip.rate(mode)
    sold = [
        row
        for row in table("gpus")
        if row["compute_capability"] == gpu.capability and model(row["gpu"]) == model(gpu.name)
    ]
    form = [row for row in sold if _form(row["gpu"]) == _form(gpu.name)] or sold
    clocks = {(row["sm"], row["boost_mhz"]) for row in form}
    if rate is None or len(clocks) != 1:
        return None
    multiprocessors, boost = clocks.pop()
    if not multiprocessors or not boost:
        return None
    clock = float(boost) * (gpu.chip.boost_scale if mode != "fp32" else 1.0)
    most = tflops(rate, int(multiprocessors), clock)
    words = f"{most:,.0f} TFLOP/s in {_WORDS[mode]}, at the boost clock of {clock:,.0f} MHz"
    return Peak(most, words)


def _form(name: str) -> str:
    return next((form for form in ("pcie", "nvl") if form in name.lower()), "")


class Utilisation(NamedTuple):
    share: float
    words: str


def utilisation(row: BenchRow, gpus: list[BenchGpu], rate: float) -> Utilisation | None:
    """rate: samples per second over all GPUs. None where the model's FLOPs or a peak are not known."""
    operations = flops(row)
    if operations is None or not gpus or len(gpus) != len(row.gpus):
        return None
    peaks = [peak(gpu, mode_of(row)) for gpu in gpus]
    known = [one for one in peaks if one is not None]
    if len(known) != len(peaks):
        return None
    most = sum(one.tflops for one in known)
    each = f"{len(known)} × " if len(known) > 1 else ""
    return Utilisation(rate * operations / (most * 1e12), f"of {each}{known[0].words}")
