"""Published rates that a row can be held against, from ``throughput_reference.csv``: context where they do
not fit, and even then the nearest alone."""

from __future__ import annotations

import math
import re
from functools import cache
from typing import NamedTuple

from ..data import table
from ..data.gpu_names import capability_of, model
from ..facts.bench import BenchRow, Style
from .places import BenchGpu
from .records import ReferenceRate

_FRAMEWORKS: dict[Style, str] = {
    "session": "TensorFlow 1",
    "keras": "TensorFlow 2",
    "torch": "PyTorch",
    "jax": "JAX",
}
_CONTEXT = 3  # so many that do not fit are shown
_FARTHEST = 12.0  # what is farther away says nothing
_SAME_MEMORY = 0.1  # a GPU's memory is told in GB, GiB, and less what ECC takes


class PublishedRate(NamedTuple):
    model: str
    train: bool
    gpu: str
    memory_gb: int
    form: str
    machine: str
    gpus: int
    framework: str
    month: str
    precision: str
    compiled: str
    batch: int | None
    image: int | None
    length: int | None
    rate: float
    least: float
    most: float
    machines: int
    differs: str
    source: str

    @property
    def product(self) -> str:
        """ "A100 40GB SXM4" """
        return " ".join(filter(None, [self.gpu, f"{self.memory_gb}GB", self.form]))

    @property
    def about(self) -> str:
        parts = [
            f"{self.gpus} × {self.product}" if self.gpus > 1 else self.product,
            self.precision.upper(),
            {"yes": "compiled", "no": ""}.get(self.compiled, "compiled or not: not stated"),
            f"batch {self.batch}" if self.batch else "batch not stated",
            self.framework,
            f"container {self.month}" if self.month else "",
            f"median of {self.machines}" if self.machines > 1 else "",
        ]
        return ", ".join(filter(None, parts))


@cache
def published() -> tuple[PublishedRate, ...]:
    return tuple(_published(row) for row in table("throughput_reference"))


def _published(row: dict[str, str]) -> PublishedRate:
    return PublishedRate(
        row["model"],
        row["train"] == "yes",
        row["gpu"],
        int(row["memory_gb"]),
        row["form"],
        row["machine"],
        int(row["gpus"]),
        row["framework"],
        row["month"],
        row["precision"],
        row["compiled"],
        _number(row["batch"]),
        _number(row["image"]),
        _number(row["length"]),
        float(row["rate"]),
        float(row["least"]),
        float(row["most"]),
        int(row["machines"]),
        row["differs"],
        row["source"],
    )


def _number(cell: str) -> int | None:
    return int(cell) if cell else None


def references(row: BenchRow, gpus: list[BenchGpu]) -> list[ReferenceRate]:
    """Those that fit, and then the nearest that do not. gpus: the row's, as far as they are known."""
    if row.small or not gpus or len(gpus) != max(1, len(row.gpus)) or row.data != "synthetic":
        return []
    if row.tensorrt or row.precision == "half" or row.steps or len({gpu.name for gpu in gpus}) > 1:
        return []
    near: list[tuple[float, str, PublishedRate]] = []
    for one in published():
        if (one.model, one.train, one.gpus) != (row.model, row.train, len(gpus)):
            continue
        found = _differences(row, gpus[0], one)
        if found is not None and sum(found.values()) <= _FARTHEST:
            near.append((sum(found.values()), ", ".join(found), one))
    near.sort(key=lambda entry: (entry[0], -_month(entry[2])))
    fitting = [_told(one, "") for _far, differs, one in near if not differs]
    context = [_told(one, differs) for _far, differs, one in near if differs]
    return fitting + context[:_CONTEXT]


def _told(one: PublishedRate, differs: str) -> ReferenceRate:
    return ReferenceRate(
        rate=one.rate,
        kind="published",
        about=one.about,
        source=one.source,
        fits=not differs,
        differs=differs,
        least=one.least,
        most=one.most,
    )


def _month(one: PublishedRate) -> float:
    return float(one.month) if one.month else 0.0


def _differences(row: BenchRow, gpu: BenchGpu, one: PublishedRate) -> dict[str, float] | None:
    """In what a published rate is of something else, and how far away that is; None where too far."""
    found: dict[str, float] = {}
    if one.precision != row.precision:
        if row.precision not in one.precision.split(" or "):
            return None
        found["FP32 or TF32: not stated"] = 2
    if model(one.gpu) != model(gpu.name):
        if not _neighbours(one.gpu, gpu):
            return None
        found[one.product] = 4
    else:
        if not _same_memory(one.memory_gb, gpu.memory_mib):
            found[f"{one.memory_gb} GB"] = 1
        if not _same_form(one.form, gpu.name):
            found[one.form or "a module"] = 1.5
    if one.framework != _FRAMEWORKS[row.style]:
        found[one.framework] = 2
    if one.compiled != ("yes" if row.compiled else "no"):
        words = {"yes": "compiled", "no": "not compiled"}
        found[words.get(one.compiled, "compiled or not: not stated")] = 2
    if one.batch is None:
        found["batch not stated"] = 1
    elif one.batch != row.batch:
        found[f"batch {one.batch}"] = abs(math.log2(one.batch / row.batch))
    if one.length != (row.length or None):
        found[f"{one.length} tokens" if one.length else "length not stated"] = 4
    if one.image != (row.image or None):
        found[f"{one.image} pixels" if one.image else "size not stated"] = 1
    if one.differs:
        found[one.differs] = 1
    if len(row.gpus) > 1 and one.framework == "TensorFlow 1" and row.together != "horovod":
        found["by Horovod"] = 1
    return found


def _neighbours(published_gpu: str, gpu: BenchGpu) -> bool:
    """Whether both are of one generation."""
    other, _source = capability_of(published_gpu)
    return bool(other) and other.partition(".")[0] == gpu.capability.partition(".")[0]


def _same_memory(gigabytes: int, mib: int) -> bool:
    if not mib:
        return False
    sizes = (mib / 1024, mib * 2**20 / 1e9)
    return any(abs(size - gigabytes) <= _SAME_MEMORY * gigabytes for size in sizes)


def _same_form(form: str, name: str) -> bool:
    """A module's name mostly does not say that it is one: "NVIDIA H100 80GB HBM3"."""
    found = re.search(r"\b(SXM\d?|PCIe|NVL)\b", name, re.IGNORECASE)
    told = found[1].upper() if found else ""
    wanted = form.upper()
    if told == wanted or not wanted:
        return True
    return not told and wanted.startswith("SXM")
