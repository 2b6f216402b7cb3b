"""Every fact of the Snapshot is read by something, or has a reason here: collected is not judged."""

from __future__ import annotations

import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

import envcheck
from envcheck.facts.snapshot import Document

HOME = Path(envcheck.__file__).parent
# Collects and names facts, and reads none of them to judge.
OTHERS = ("collector", "facts", "data")
_SEEN = "for whoever reads the Snapshot: nothing to judge by itself"
_COMPOSED = "read, by a name that is put together"
_COLLECTOR = "the collector's own work reads it"
_PENDING = "no check judges it yet"
UNREAD = {
    "Containers.cli_path": _SEEN,  # the version is what is judged
    "Disk.total_mib": _SEEN,  # what is free is judged
    "Gpu.bar1_used_mib": _SEEN,
    "Gpu.channel_repair_pending": _PENDING,
    "Gpu.clock_memory_mhz": _PENDING,
    "Gpu.ecc_corrected_aggregate": _PENDING,
    "Gpu.ecc_corrected_volatile": _PENDING,
    "Gpu.fabric_clique": _SEEN,
    "Gpu.memory_free_mib": _SEEN,
    "Gpu.power_min_limit_w": _SEEN,
    "Gpu.sram_parity_aggregate": _COMPOSED,
    "Gpu.sram_parity_volatile": _COMPOSED,
    "Gpu.sram_secded_aggregate": _COMPOSED,
    "Gpu.sram_secded_volatile": _COMPOSED,
    "Gpu.temperature_shutdown_c": _SEEN,
    "Gpu.tpc_repair_pending": _PENDING,
    "Gpu.unrepairable_memory": _PENDING,
    "Host.cgroup_cpu_limit": _COLLECTOR,  # how many kernels it compiles side by side
    "LevelRun.restarts": _SEEN,
    "Library.version_from": _SEEN,
    "MigInstance.compute_instance": _SEEN,
    "MigInstance.gpu_instance": _SEEN,
    "PciDevice.iommu_group": _COLLECTOR,  # Pci.iommu_mode
    "RowMemory.pool_mib": _SEEN,
    "RowRun.build_seconds": _SEEN,
    "SoakGpu.tflop": _SEEN,
    "SoakGpu.wrong_words": _SEEN,
    "TargetInterpreter.sys_path": _COLLECTOR,
}


@cache
def source() -> str:
    files = [path for path in HOME.rglob("*.py") if path.relative_to(HOME).parts[0] not in OTHERS]
    files += (HOME / "install").resolve().rglob("*.py")
    return "\n".join(path.read_text() for path in [*files, *(HOME / "data").glob("*.csv")])


def records(kind: Any, seen: set[type]) -> Iterator[type]:
    """The records that a type is made of."""
    for part in typing.get_args(kind):
        yield from records(part, seen)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind not in seen:
        seen.add(kind)
        yield kind
        for hint in typing.get_type_hints(kind).values():
            yield from records(hint, seen)


def fields() -> dict[str, set[str]]:
    """{name of a field: the records that have it}."""
    found: dict[str, set[str]] = {}
    for kind in records(Document, set()):
        for name in kind.__struct_fields__:  # type: ignore[attr-defined]
            found.setdefault(name, set()).add(kind.__name__)
    return found


def unread(names: dict[str, set[str]]) -> set[str]:
    """Those that nothing outside of the collector names as an attribute or in a text."""
    words = set(re.findall(r"[A-Za-z_]\w*", source()))
    return {f"{sorted(kinds)[0]}.{name}" for name, kinds in names.items() if name not in words}


def test_every_fact_is_read_or_has_a_reason() -> None:
    assert unread(fields()) <= set(UNREAD)
    assert set(UNREAD) <= {f"{sorted(kinds)[0]}.{name}" for name, kinds in fields().items()}


def test_a_new_fact_that_nothing_reads_is_found() -> None:
    assert unread({"colour_of_the_fan": {"Fan"}}) == {"Fan.colour_of_the_fan"}
