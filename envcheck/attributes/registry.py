"""The attributes of machines: `attributes.csv`, and how each is read from a Snapshot.

Reading, judging and writing a profile, comparing two machines and the outliers of a fleet rest on this one
table (and on named.py, where the keys are names that a machine has), so a machine fits its own profile.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from ..data import table
from . import readers
from .readers import Fact

# number: 8, or bounds (">= 8"); version: "570" (any 570.x), or bounds; switch: true or false.
Kind = Literal["number", "version", "text", "switch"]


class Key(NamedTuple):
    """One attribute.

    words: what it is, in a sentence. fact: reads it from a SnapshotView or a device. path: of the fact that
    it rests on. checks: the codes that judge the same.
    """

    name: str
    kind: Kind
    words: str
    comment: str
    fact: Callable[[Any], Fact]
    path: str
    checks: tuple[str, ...] = ()


class Section(NamedTuple):
    """many: [[name]], a table for each kind of device, with a "count". document: whose facts these are."""

    comment: str
    keys: tuple[Key, ...]
    many: bool = False
    document: str = "machine"


def _keys(section: str, of_device: bool = False) -> tuple[Key, ...]:
    return tuple(
        Key(
            name=row["key"],
            kind=row["kind"],  # type: ignore[arg-type]  # a test holds the table to the literal
            words=row["words"],
            comment=row["comment"],
            fact=readers.reader(row["fact"], of_device),
            path=row["path"] or row["fact"],
            checks=tuple(row["checks"].split()),
        )
        for row in table("attributes")
        if row["section"] == section
    )


SECTIONS: dict[str, Section] = {
    "machine": Section("The machine itself.", _keys("machine")),
    "driver": Section("NVIDIA's driver.", _keys("driver")),
    "gpus": Section(
        "GPUs: a table for each name. Each key holds for each of them.",
        _keys("gpus", of_device=True),
        many=True,
    ),
    "nics": Section(
        "Adapters for RDMA (InfiniBand, RoCE): a table for each kind.",
        _keys("nics", of_device=True),
        many=True,
    ),
    "interfaces": Section(
        "Network interfaces that lead out of the machine and are in use: a table for each.",
        _keys("interfaces", of_device=True),
        many=True,
    ),
    "tools": Section("What brings GPUs into containers.", _keys("tools")),
    "target": Section(
        "The target (--target): what its Python is. Its packages have a section of their own.",
        _keys("target"),
        document="target",
    ),
}

# Those of a profile: adapters and interfaces are compared by diff and by fleets alone.
PROFILED = {
    name: section for name, section in SECTIONS.items() if name not in ("nics", "interfaces")
}

# Sections whose keys are not fixed: formats that Tensor Cores must be proven for, and packages of the target.
TENSOR_CORES, PROVEN = "tensor_cores", "proven"
FORMATS = ("tf32", "fp16", "bf16", "int8", "fp8")
PACKAGES = "packages"
# Of [[gpus]], beside its keys.
COUNT, NAME = "count", "name"

# The memory that the kernel counts is less than what is built in: profiles bound it, comparisons round it.
MEMORY = "memory_gib"
