"""A bench's rows in words: what a model is called, which mode a row has, what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..bench.parity import AGREE, ParityResult
from ..bench.records import ReferenceRate, RowResult, ScalingResult
from ..facts.base import known
from ..facts.bench import BenchRow, Style

MODELS = {
    "resnet50": "ResNet-50 v1.5",
    "mnist": "MNIST network",
    "bert-base": "BERT-base",
    "unet-2d": "UNet 2D",
    "mlp": "Feed-forward network",
}
STYLES: dict[Style, str] = {
    "session": "TensorFlow, by sessions",
    "keras": "TensorFlow, by Keras",
    "torch": "PyTorch",
    "jax": "JAX",
}
COMPILERS: dict[Style, str] = {"session": "XLA", "keras": "XLA", "torch": "compile", "jax": "XLA"}
OUTCOMES = {
    "ok": "no figure",
    "out-of-memory": "out of memory",
    "not-supported": "not supported",
    "not-applicable": "not there",
    "not-run": "not run",
    "busy": "GPU in use",
    "error": "error",
    "timeout": "timed out",
    "crashed": "crashed",
    "interrupted": "interrupted",
}
TOGETHER = {"mirrored": "MirroredStrategy", "ddp": "torch.distributed", "horovod": "Horovod"}
_HALVES = {"float16": "FP16", "bfloat16": "BF16"}


def model_of(row: BenchRow) -> str:
    return MODELS.get(row.model, row.model)


def title_of(result: RowResult) -> str:
    """ "BERT-large, 128 tokens, PyTorch 2.9.1, training": what rows of one table have in common."""
    row = result.run.row
    version = known(result.run.framework_version)
    style, _, way = STYLES[row.style].partition(", ")
    parts = [
        model_of(row),
        f"{row.length} tokens" if row.length else "",
        f"{row.image} × {row.image} pixels" if row.image and row.model != "mnist" else "",
        f"{style} {version or ''}".rstrip() + (f" {way}" if way else ""),
        "training" if row.train else "forward alone",
        "small" if row.small else "",
    ]
    return ", ".join(filter(None, parts))


def precision_of(row: BenchRow) -> str:
    """ "FP32", "TF32", "FP16": of AMP's products, and of pure half precision."""
    if row.precision in ("amp", "half"):
        return _HALVES.get(row.half, "16 bits")
    return row.precision.upper()


def amp_of(row: BenchRow) -> str:
    """ "no", "yes", "pure" (all in 16 bits), "stuck": a control, whose loss scale does not move."""
    if row.precision == "half":
        return "pure"
    if row.precision != "amp":
        return "no"
    return "stuck" if row.scaler == "stuck" else "yes"


def where(row: BenchRow, gpus: Mapping[str, str]) -> str:
    """ "0", "0 to 7", "CPU": the GPUs of a row by what they are called."""
    if not row.gpus:
        return "CPU"
    names = [gpus.get(address, address) for address in row.gpus]
    if len(names) > 2 and all(name.isdecimal() for name in names):
        numbers = [int(name) for name in names]
        if numbers == list(range(numbers[0], numbers[0] + len(numbers))):
            return f"{names[0]} to {names[-1]}"
    return ", ".join(names)


def outcome_of(result: RowResult) -> str:
    """Why a row has no figure: in two words."""
    return OUTCOMES[result.run.outcome]


def number(value: float) -> str:
    """ "2,790", "31.4", "0.52" """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def rate_of(result: RowResult) -> str:
    """ "2,790 ±0.3 %": the median, and half of what the repetitions lie apart."""
    rate = result.rate
    if rate is None:
        return outcome_of(result)
    if rate.repetitions < 2 or rate.median <= 0:
        return number(rate.median)
    return f"{number(rate.median)} ±{spread(result):.1f} %"


def spread(result: RowResult) -> float:
    """Half of what the repetitions lie apart, in percent of their median."""
    rate = result.rate
    if rate is None or rate.median <= 0:
        return 0.0
    return rate.spread / 2 * 100


def gib(mib: int | None) -> str:
    return "" if mib is None else f"{mib / 1024:.1f}" if mib < 102400 else f"{mib / 1024:.0f}"


def share(value: float) -> str:
    """ "97 %": and "2.1 %" of small ones."""
    return f"{value * 100:.0f} %" if value >= 0.1 else f"{value * 100:.1f} %"


def fitting(result: RowResult) -> ReferenceRate | None:
    """The figure that the row is judged by, else the first that it may be judged by."""
    fit = [one for one in result.references if one.fits and one.rate > 0]
    return next((one for one in fit if one.kind == result.verdict_by), next(iter(fit), None))


def share_of(result: RowResult) -> str:
    """ "97 %" of that figure; "" where there is none."""
    reference, rate = fitting(result), result.rate
    if reference is None or rate is None:
        return ""
    return share(rate.median / reference.rate)


def job_of(job: ScalingResult) -> str:
    """ "8 GPUs, MirroredStrategy" """
    return f"{job.gpus} GPUs, {TOGETHER.get(job.together, job.together)}"


def job_in_words(job: ScalingResult) -> str:
    """ "resnet50 amp 256 mirrored: 20,400 of 21,600 images/s that its GPUs do alone (94 %)" """
    slowest = f"; {job.slowest_words}" if job.slowest_words else ""
    return (
        f"{job.name}: {number(job.rate)} of {number(job.alone)} {job.unit} that its GPUs do alone"
        f" ({share(job.efficiency)}){slowest}"
    )


def off_reference(found: Iterable[ParityResult]) -> dict[str, str]:
    """By a row's name, how far its losses are from FP32's: "0.75 %"."""
    curves = (curve for one in found for curve in one.curves)
    return {c.name: f"{100 * c.distance:.2f} %" for c in curves if c.distance is not None}


def parity_in_words(found: Iterable[ParityResult]) -> list[str]:
    """Which rows agree with FP32; without rows that were not judged."""
    lines = []
    for curve in (curve for one in found for curve in one.curves):
        if curve.agreement == "not-judged":
            continue
        does = "agrees with FP32" if curve.agreement == "agrees" else "parts from FP32"
        lines.append(f"{curve.label[:1].upper()}{curve.label[1:]} {does}: {curve.words}.")
    if lines:
        lines.append(f"To agree, smoothed losses may be {100 * AGREE:.0f} % off at the most.")
    return lines


def unproven(result: RowResult) -> bool:
    """Whether a rate has no speed-up because nothing shows that its mode was on."""
    row = result.run.row
    has_mode = row.precision != "fp32" or row.compiled or row.tensorrt
    silent = result.proof in ("not-engaged", "not-known")
    return has_mode and silent and result.rate is not None
