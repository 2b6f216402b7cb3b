"""Builds Snapshots in memory for tests of the core."""

from __future__ import annotations

from typing import Any

from envcheck.checks import registry
from envcheck.checks.registry import Check
from envcheck.facts.base import Probe
from envcheck.facts.gpu import Gpu, NvidiaSmi, Nvml
from envcheck.facts.snapshot import SCHEMA, Collector, Document, Snapshot


def ok(facts: Any, source: str = "test") -> Probe[Any]:
    """A probe that succeeded with these facts."""
    return Probe(outcome="ok", facts=facts, sources={"*": source})


def document(location: str = "machine", **probes: Any) -> Document:
    """A Document; keyword arguments are facts records, which are wrapped as successful probes."""
    wrapped = {name: p if isinstance(p, Probe) else ok(p) for name, p in probes.items()}
    return Document(
        origin="live",
        location=location,
        collected_at="2026-01-01T00:00:00Z",
        collector=Collector(version="0", python="3.11"),
        **wrapped,
    )


def snapshot(target: Document | None = None, **machine: Any) -> Snapshot:
    """A Snapshot of a machine with these probes, and perhaps a target."""
    return Snapshot(schema=SCHEMA, redacted=True, machine=document(**machine), target=target)


def gpu_snapshot(*gpus: Gpu, **machine: Any) -> Snapshot:
    """A machine whose NVML lists these GPUs."""
    return snapshot(nvml=Nvml(init_code=0, gpu_count=len(gpus), gpus=list(gpus)), **machine)


def area_checks(area: str) -> list[Check]:
    """The checks of one area, by code, without those of the others."""
    return [c for c in registry.all_checks() if c.area == area]


__all__ = ["Gpu", "NvidiaSmi", "Nvml", "area_checks", "document", "gpu_snapshot", "ok", "snapshot"]
