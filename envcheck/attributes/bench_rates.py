"""Rates of `envcheck bench`'s rows and of `envcheck soak`."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping

from ..bench.results import rate
from ..facts.base import known
from ..facts.bench import BenchRow, RowRun
from ..facts.view import SnapshotView
from .model import Measurement

_STYLES = {"session": "TensorFlow", "keras": "TensorFlow", "torch": "PyTorch", "jax": "JAX"}
_LEAST = 10.0  # seconds of a soak's part that a rate is taken of


def bench_rates(view: SnapshotView, called: Mapping[str, str]) -> Iterator[Measurement]:
    """called: {a GPU's address: "GPU 3"}."""
    target = view.snapshot.target
    bench = None if target is None or not target.bench else target.bench.facts
    if bench is None or bench.busy_ok:
        return
    settings = [f"{name}={value}" for name, value in sorted(bench.settings.items())]
    for run in bench.rows:
        found, row = rate(run) if run.outcome == "ok" else None, run.row
        if found is None:
            continue
        under = ", ".join(filter(None, [*_circumstances(run), *settings, bench.inside]))
        yield Measurement(
            key=_key(row),
            words=_words(row),
            value=found.median,
            unit=found.unit,
            device=called.get(row.gpus[0], row.gpus[0]) if len(row.gpus) == 1 else "",
            spread=(found.most - found.least) / found.median if found.repetitions > 1 else None,
            under=under[:1000],
        )


def _key(row: BenchRow) -> str:
    parts = ["bench", row.what, row.style, row.precision, "compiled" if row.compiled else ""]
    parts += [row.together, str(row.batch)]
    return ".".join(part.replace(" ", "_")[:60] for part in parts if part)


def _words(row: BenchRow) -> str:
    compiled = " compiled" if row.compiled else ""
    together = f" on all by {row.together}" if row.together else ""
    how = f"{row.precision.upper()}{compiled}{together}, {row.batch} at once"
    return f"{row.what}, {how}, in {_STYLES[row.style]}"


def _circumstances(run: RowRun) -> list[str]:
    row = run.row
    version = known(run.framework_version)
    return [
        f"{_STYLES[row.style]} {version}" if version else "",
        f"{len(row.gpus)} GPUs" if len(row.gpus) > 1 else "",
        "" if row.gpus else "on the CPU",
        "small" if row.small else "",
        row.half,
        f"{row.image} pixels" if row.image else "",
        f"length {row.length}" if row.length else "",
    ]


def soak_rates(view: SnapshotView, called: Mapping[str, str]) -> Iterator[Measurement]:
    """The median of a soak's minutes, GPU by GPU."""
    probe = view.machine.soak
    soak = None if probe is None else probe.facts
    for gpu in [] if soak is None or soak.busy_ok else soak.gpus:
        found = [
            minute.tflops
            for minute in gpu.minutes
            if minute.tflops is not None and 0 < minute.tflops < 1e9 and minute.seconds >= _LEAST
        ]
        if gpu.outcome != "ok" or not found:
            continue
        median, index = statistics.median(found), known(gpu.index)
        library = f"{gpu.library} {gpu.library_version}".strip()
        yield Measurement(
            key=f"soak.{gpu.level or 'driver'}.{gpu.mode or 'products'}",
            words=f"{(gpu.mode or 'matrix').upper()} products over minutes",
            value=median,
            unit="TOP/s" if gpu.mode == "int8" else "TFLOP/s",
            device=called.get(known(gpu.gpu) or "") or ("" if index is None else f"GPU {index}"),
            spread=(max(found) - min(found)) / median if len(found) > 1 else None,
            under=", ".join(filter(None, (library, gpu.call[:200]))),
        )
