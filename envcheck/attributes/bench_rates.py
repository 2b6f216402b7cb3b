"""Rates of `envcheck bench`'s rows and of `envcheck soak`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from ..bench.results import rate
from ..facts.base import known
from ..facts.bench import Bench, BenchRow, RowRun
from ..facts.soak import Soak, SoakGpu
from ..facts.view import SnapshotView
from .model import Measurement

_STYLES = {"session": "TensorFlow", "keras": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}
_LEAST = 10.0  # seconds of a soak's part that a rate is taken of


def bench_rates(view: SnapshotView, called: Mapping[str, str]) -> Iterator[Measurement]:
    """called: {a GPU's address: "GPU 3"}."""
    target = view.snapshot.target
    bench: Bench | None = None if target is None or not target.bench else target.bench.facts
    if bench is None or bench.busy_ok:
        return
    settings = [f"{name}={value}" for name, value in sorted(bench.settings.items())]
    for run in bench.rows:
        found = rate(run) if run.outcome == "ok" else None
        if found is None:
            continue
        row = run.row
        yield Measurement(
            key=_key(row),
            words=f"{row.what}, {_mode(row)}",
            value=found.median,
            unit=found.unit,
            device=_device(row, called),
            spread=(found.most - found.least) / found.median if found.repetitions > 1 else None,
            under=", ".join([*_circumstances(run), *settings, *filter(None, [bench.inside])])[
                :1000
            ],
        )


def _key(row: BenchRow) -> str:
    parts = ["bench", row.what, row.style, row.precision]
    parts += ["compiled"] if row.compiled else []
    parts += [row.together] if row.together else []
    return ".".join(part.replace(" ", "_")[:60] for part in [*parts, str(row.batch)])


def _mode(row: BenchRow) -> str:
    words = [row.precision.upper()]
    words += ["compiled"] if row.compiled else []
    words += [f"on all by {row.together}"] if row.together else []
    return f"{' '.join(words)}, {row.batch} at once, in {_STYLES[row.style]}"


def _device(row: BenchRow, called: Mapping[str, str]) -> str:
    return called.get(row.gpus[0], row.gpus[0]) if len(row.gpus) == 1 else ""


def _circumstances(run: RowRun) -> list[str]:
    row = run.row
    version = known(run.framework_version)
    under = [f"{_STYLES[row.style]} {version}" if version else ""]
    under += [f"{len(row.gpus)} GPUs" if len(row.gpus) > 1 else ""]
    under += ["" if row.gpus else "on the CPU", "small" if row.small else ""]
    under += [row.half]
    under += [
        f"{row.image} pixels" if row.image else "",
        f"length {row.length}" if row.length else "",
    ]
    return [one for one in under if one]


def soak_rates(view: SnapshotView, called: Mapping[str, str]) -> Iterator[Measurement]:
    """The median of a soak's minutes, GPU by GPU."""
    probe = view.machine.soak
    soak: Soak | None = None if probe is None else probe.facts
    for gpu in [] if soak is None or soak.busy_ok else soak.gpus:
        found = _soaked(gpu) if gpu.outcome == "ok" else []
        if not found:
            continue
        median = statistics.median(found)
        library = f"{gpu.library} {gpu.library_version}".strip()
        address = known(gpu.gpu) or ""
        index = known(gpu.index)
        yield Measurement(
            key=f"soak.{gpu.level or 'driver'}.{gpu.mode or 'products'}",
            words=f"{(gpu.mode or 'matrix').upper()} products over minutes",
            value=median,
            unit="TOP/s" if gpu.mode == "int8" else "TFLOP/s",
            device=called.get(address) or ("" if index is None else f"GPU {index}"),
            spread=(max(found) - min(found)) / median if len(found) > 1 else None,
            under=", ".join(filter(None, (library, gpu.call[:200]))),
        )


def _soaked(gpu: SoakGpu) -> list[float]:
    return [
        minute.tflops
        for minute in gpu.minutes
        if minute.tflops is not None and 0 < minute.tflops < 1e9 and minute.seconds >= _LEAST
    ]
