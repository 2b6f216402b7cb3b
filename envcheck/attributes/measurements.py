"""The figures that were measured on a machine and its target, from a Snapshot alone.

Straight from the facts: what a figure means for Tensor Cores is judged elsewhere. Nothing is kept of what ran
beside another process, in a run that did not come to its end, or in a trial that did not give the right sums.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from math import isfinite

from ..facts.base import known
from ..facts.micro_kernels import Level, LevelRun, MicroKernels, Mode, Setting
from ..facts.snapshot import Document
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView
from .bench_rates import bench_rates, soak_rates
from .link_rates import link_rates
from .model import Measurement
from .values import gpu_called, gpus_of

_LEVELS = {"L0": "by the driver alone", "L1": "by cuBLAS", "L2": "in"}
_MOST, _LONGEST = 20_000, 1000  # a Snapshot may come from anybody


def measurements(view: SnapshotView) -> list[Measurement]:
    """The first of each key, device and circumstances, in the Snapshot's order."""
    found: dict[tuple[str, str, str], Measurement] = {}
    for one in _all(view):
        if len(found) >= _MOST:
            break
        if isfinite(one.value) and one.value > 0:
            found.setdefault((one.key, one.device, one.under), one)
    return list(found.values())


def _all(view: SnapshotView) -> Iterator[Measurement]:
    called = {
        address: gpu_called(gpu, position)
        for position, gpu in enumerate(gpus_of(view))
        if (address := known(gpu.pci_address))
    }
    for document in (view.snapshot.machine, view.snapshot.target):
        if document is not None:
            yield from _micro_kernels(document, called)
            yield from link_rates(view, document, called)
    yield from bench_rates(view, called)
    yield from soak_rates(view, called)


def _micro_kernels(document: Document, called: Mapping[str, str]) -> Iterator[Measurement]:
    probe = document.micro_kernels
    facts: MicroKernels | None = None if probe is None else probe.facts
    if facts is None:
        return
    for run in facts.runs:
        if run.outcome != "ok" or run.busy:
            continue
        device = _device(run, called)
        under = _circumstances(run, facts.inside)
        for mode in run.modes:
            rate = mode.rate
            value = None if rate is None or mode.outcome != "ok" else known(rate.tflops)
            if rate is None or value is None:
                continue
            key, words = _named(run.level, run.framework, mode.mode, mode.setting)
            apart = known(rate.spread)
            size = "x".join(map(str, rate.shape[:3])) if rate.shape else mode.call[:200]
            yield Measurement(
                key=key,
                words=words,
                value=value,
                unit="TOP/s" if mode.mode == "int8" else "TFLOP/s",
                device=device,
                spread=None if apart is None or not 1 <= apart < 1e6 else apart - 1,
                under=f"{under}, {size}" if under and size else under or size,
            )


@lru_cache(maxsize=256)
def _named(level: Level, framework: str, mode: Mode, setting: Setting) -> tuple[str, str]:
    """A figure's key, and its words."""
    where = _LEVELS[level] + (f" {FRAMEWORKS.get(framework, '')}" if level == "L2" else "")
    suffix = f" ({setting})" if setting and setting != "half" else ""
    key = ".".join(filter(None, ("kernels", level, framework, mode, setting)))
    return key, f"{mode.upper()} products {where}{suffix}"


def _device(run: LevelRun, called: Mapping[str, str]) -> str:
    index = known(run.index)
    by_address = called.get(known(run.pci_address) or "")
    return by_address or ("" if index is None else f"GPU {index}")


def _circumstances(run: LevelRun, inside: str) -> str:
    """What a rate depends on beside the machine: versions, a part of a GPU, variables, a container."""
    library, version = known(run.library_version), known(run.framework_version)
    under = [f"{FRAMEWORKS[run.framework]} {version}"] if run.framework and version else []
    under += [f"cuBLAS {library}"] if library else []
    if (known(run.uuid) or "").startswith("MIG-"):
        under.append(f"a MIG instance of {known(run.multiprocessors) or '?'} multiprocessors")
    under += [f"{name}={value}" for name, value in sorted(run.variables.items())]
    return ", ".join(under + ([inside] if inside else []))[:_LONGEST]
