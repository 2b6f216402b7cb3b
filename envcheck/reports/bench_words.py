"""A bench's rows in words: what a model is called, which mode a row has, what became of it."""

from __future__ import annotations

from collections.abc import Mapping

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
# The framework, how it is used, and what its compiler is called.
STYLES: dict[Style, tuple[str, str, str]] = {
    "session": ("TensorFlow", "by sessions", "XLA"),
    "keras": ("TensorFlow", "by Keras", "XLA"),
    "torch": ("PyTorch", "", "compile"),
    "jax": ("JAX", "", "XLA"),
}
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
TOGETHER = {"mirrored": "MirroredStrategy", "ddp": "torch.distributed"}
_KINDS = {
    "published": "published",
    "baseline": "the baseline",
    "other-gpu": "this run's other GPUs",
}
_HALVES = {"float16": "FP16", "bfloat16": "BF16"}


def model_of(row: BenchRow) -> str:
    return MODELS.get(row.model, row.model)


def title_of(results: list[RowResult]) -> str:
    """ "BERT-base, 128 tokens, PyTorch 2.9.1": what rows of one table have in common."""
    row = results[0].run.row
    framework, way, _compiler = STYLES[row.style]
    version = next(filter(None, (known(one.run.framework_version) for one in results)), "")
    parts = [
        model_of(row),
        f"{row.length} tokens" if row.length else "",
        f"{row.image} × {row.image} pixels" if row.image and row.model != "mnist" else "",
        " ".join(filter(None, (framework, version, way))),
        "small" if row.small else "",
    ]
    return ", ".join(filter(None, parts))


def precision_of(row: BenchRow) -> str:
    """ "FP32", "TF32", "FP16": of AMP's products."""
    return _HALVES.get(row.half, "16 bits") if row.precision == "amp" else row.precision.upper()


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


def number(value: float) -> str:
    """ "2,790", "31.4", "0.52" """
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def rate_of(result: RowResult) -> str:
    """ "2,790 ±0.3 %": the median, and half of the repetitions' spread; else why there is none."""
    rate = result.rate
    if rate is None:
        return OUTCOMES[result.run.outcome]
    if rate.repetitions < 2 or rate.median <= 0:
        return number(rate.median)
    return f"{number(rate.median)} ±{rate.spread * 50:.1f} %"


def share(value: float) -> str:
    """ "97 %": and "2.1 %" of small ones."""
    return f"{value * 100:.0f} %" if value >= 0.1 else f"{value * 100:.1f} %"


def reference_of(result: RowResult) -> ReferenceRate | None:
    """The figure that the row is judged by, else the first that it may be judged by."""
    usable = [one for one in result.references if one.rate > 0]
    return next((one for one in usable if one.kind == result.verdict_by), next(iter(usable), None))


def reference_in_words(one: ReferenceRate) -> str:
    """ "published: A100 40GB, AMP, batch 256 (github.com/…)" """
    text = ": ".join(filter(None, (_KINDS[one.kind], one.about)))
    return text + (f" ({one.source})" if one.source else "")


def job_in_words(job: ScalingResult) -> str:
    """ "20,400 of 21,600 images/s that its GPUs do alone (94 %)" """
    slowest = f"; {job.slowest_words}" if job.slowest_words else ""
    return (
        f"{number(job.rate)} of {number(job.alone)} {job.unit} that its GPUs do alone"
        f" ({share(job.efficiency)}){slowest}"
    )


def unproven(result: RowResult) -> bool:
    """Whether a rate has no speed-up because nothing shows that its mode was on."""
    row = result.run.row
    silent = result.proof in ("not-engaged", "not-known")
    return (row.precision != "fp32" or row.compiled) and silent and result.rate is not None
