"""Published rates of the same row on the same GPU, from ``throughput_reference.csv``."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..data import table
from ..data.gpu_names import model
from ..facts.bench import BenchRow, Style
from .places import BenchGpu
from .records import ReferenceRate

_FRAMEWORKS: dict[Style, str] = {
    "session": "TensorFlow 1",
    "keras": "TensorFlow 2",
    "torch": "PyTorch",
    "jax": "JAX",
}
_SAME_MEMORY = 0.1  # a GPU's memory is stated in GB, GiB, and less what ECC takes


class PublishedRate(NamedTuple):
    model: str
    gpu: str
    memory_gb: int
    form: str
    gpus: int
    framework: str
    month: str
    precision: str
    compiled: bool
    batch: int
    image: int
    length: int
    rate: float
    least: float
    most: float
    machines: int
    source: str

    @property
    def about(self) -> str:
        """ "A100 40GB SXM4, AMP, batch 256, TensorFlow 2, container 20.06" """
        product = " ".join(filter(None, [self.gpu, f"{self.memory_gb}GB", self.form]))
        parts = [
            f"{self.gpus} × {product}" if self.gpus > 1 else product,
            self.precision.upper(),
            "compiled" if self.compiled else "",
            f"batch {self.batch}",
            self.framework,
            f"container {self.month}" if self.month else "",
            f"median of {self.machines}" if self.machines > 1 else "",
        ]
        return ", ".join(filter(None, parts))


@cache
def published() -> tuple[PublishedRate, ...]:
    """Rates of training, each with everything stated that a row has."""
    return tuple(_published(row) for row in table("throughput_reference"))


def _published(row: dict[str, str]) -> PublishedRate:
    return PublishedRate(
        row["model"],
        row["gpu"],
        int(row["memory_gb"]),
        row["form"],
        int(row["gpus"]),
        row["framework"],
        row["month"],
        row["precision"],
        row["compiled"] == "yes",
        int(row["batch"]),
        int(row["image"] or 0),
        int(row["length"] or 0),
        float(row["rate"]),
        float(row["least"]),
        float(row["most"]),
        int(row["machines"]),
        row["source"],
    )


def references(row: BenchRow, gpus: list[BenchGpu]) -> list[ReferenceRate]:
    """Those of the row, the newest first. gpus: the row's, as far as they are known."""
    if row.small or len(gpus) != len(row.gpus) or len({gpu.name for gpu in gpus}) != 1:
        return []
    found = [one for one in published() if _is_of(one, row, gpus[0])]
    found.sort(key=lambda one: float(one.month or 0), reverse=True)
    return [
        ReferenceRate(
            rate=one.rate,
            kind="published",
            about=one.about,
            source=one.source,
            least=one.least,
            most=one.most,
        )
        for one in found
    ]


def _is_of(one: PublishedRate, row: BenchRow, gpu: BenchGpu) -> bool:
    size = (one.model, one.gpus, one.batch, one.image, one.length)
    mode = (one.framework, one.precision, one.compiled)
    return (
        size == (row.model, len(row.gpus), row.batch, row.image, row.length)
        and mode == (_FRAMEWORKS[row.style], row.precision, row.compiled)
        and model(one.gpu) == model(gpu.name)
        and _same_memory(one.memory_gb, gpu.memory_mib)
        and _same_form(one.form, gpu.name)
    )


def _same_memory(gigabytes: int, mib: int) -> bool:
    if not mib:
        return False
    sizes = (mib / 1024, mib * 2**20 / 1e9)
    return any(abs(size - gigabytes) <= _SAME_MEMORY * gigabytes for size in sizes)


def _same_form(form: str, name: str) -> bool:
    """A module's name mostly does not say that it is one: "NVIDIA H100 80GB HBM3"."""
    found = re.search(r"\b(SXM\d?|PCIe|NVL)\b", name, re.IGNORECASE)
    stated = found[1].upper() if found else ""
    wanted = form.upper()
    return stated == wanted or not wanted or (not stated and wanted.startswith("SXM"))
