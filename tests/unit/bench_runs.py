"""Rows of a bench as a collector would have recorded them, and Snapshots that have them."""

from __future__ import annotations

from typing import Any

import bench_machines as machines
import bench_told
import msgspec
from build import ok

from envcheck.facts.bench import Bench, BenchRow, RowRun
from envcheck.facts.gpu import Gpu
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.telemetry import GpuSamples

FIRST = "0000:01:00.0"


def row(name: str = "", **changes: Any) -> BenchRow:
    values = {
        "what": "resnet50",
        "model": "resnet50",
        "style": "torch",
        "batch": 256,
        "image": 224,
        "gpus": [FIRST],
        "group": "resnet50 256",
        **changes,
    }
    if values.get("precision") == "amp" and "half" not in values:
        values["half"] = "float16"
    default = f"{values['model']} {values.get('precision', 'fp32')} {values['batch']}"
    return BenchRow(name=name or default, **values)


def run(
    rate: float = 400.0,
    name: str = "",
    evidence: dict[str, Any] | None = None,
    samples: list[GpuSamples] | None = None,
    spread: float = 0.01,
    **changes: Any,
) -> RowRun:
    """A row that ran at so many samples a second on all of its GPUs; 0: it did not come to that."""
    this, facts = row(name, **changes), {"framework_version": "2.9.0", "samples": samples or []}
    if not rate:
        return RowRun(row=this, outcome="error", reason="RuntimeError: it broke", **facts)
    made = bench_told.ran(this, rate, spread=spread, **facts)
    return made if evidence is None else msgspec.structs.replace(made, evidence=evidence)


def samples(gpu: str = FIRST, count: int = 40, **columns: Any) -> GpuSamples:
    """A column is one value for all samples, or a list."""
    values = {
        name: list(one) if isinstance(one, list) else [one] * count for name, one in columns.items()
    }
    return GpuSamples(gpu=gpu, seconds=[0.1 * n for n in range(count)], values=values)


def snapshot(*runs: RowRun, there: list[Gpu] | None = None, **bench: Any) -> Snapshot:
    """A machine (with one A100 where no GPUs are given) on which these rows ran."""
    machine = machines.machine(machines.gpus("a100") if there is None else there)
    assert machine.target is not None
    target = msgspec.structs.replace(machine.target, bench=ok(Bench(rows=list(runs), **bench)))
    return msgspec.structs.replace(machine, target=target)
