"""Made-up rows of a bench: as the collector would tell of them, and as they might be judged."""

from __future__ import annotations

import math
from typing import Any

from msgspec.structs import replace

from envcheck.bench.records import BenchResult, ReferenceRate, RowRate, RowResult
from envcheck.facts.base import Probe
from envcheck.facts.bench import Bench, BenchRow, Repetition, RowMemory, RowRun, WarmUp
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.telemetry import GpuSamples

_ROUND = 2.0  # seconds


def row(name: str = "resnet50 amp xla 256", **changes: Any) -> BenchRow:
    """A row of ResNet-50 on one H100 of the simulated machine; keyword arguments replace its fields."""
    fields: dict[str, Any] = {
        "name": name,
        "what": "resnet50",
        "model": "resnet50",
        "style": "keras",
        "precision": "amp",
        "half": "float16",
        "compiled": True,
        "batch": 256,
        "image": 224,
        "seed": 1,
        "gpus": ["0000:1b:00.0"],
        "group": "resnet50 256",
    }
    return BenchRow(**(fields | changes))


def ran(
    what: BenchRow,
    rate: float,
    *,
    began: float = 0.0,
    rounds: int = 5,
    spread: float = 0.008,
    **changes: Any,
) -> RowRun:
    """A row that did ``rate`` samples a second, with this share between its slowest and fastest round."""
    per_step = what.batch * max(1, len(what.gpus))
    steps = max(1, round(rate * _ROUND / per_step))
    repetitions = [
        Repetition(
            began=round(began + number * 2.5, 3),
            seconds=round(steps * per_step / rate * (1 + spread / 4 * (number % 5 - 2)), 6),
            steps=steps,
        )
        for number in range(rounds)
    ]
    fields: dict[str, Any] = {
        "row": what,
        "outcome": "ok",
        "framework_version": "2.19.1",
        "import_seconds": 4.1,
        "build_seconds": 6.5,
        "parameters": 25_557_032,
        "warm_up": WarmUp(steps=60, seconds=5.0, steady=True),
        "repetitions": repetitions,
        "losses": [2.5] * rounds,
        "evidence": evidence(what),
        "memory": memory(what),
    }
    return RowRun(**(fields | changes))


def evidence(what: BenchRow) -> dict[str, Any]:
    """What a row's own graph shows where its mode engaged."""
    half = what.precision == "amp"
    found: dict[str, Any] = {
        "products": 3,
        "half_products": 3 if half else 0,
        "convolutions": 158,
        "half_convolutions": 158 if half else 0,
        "compiled_modules": 1 if what.compiled else 0,
        "tf32_bits": "tf32" if what.precision == "tf32" else "fp32",
    }
    return found | ({"loss_scale": 32768.0} if what.half == "float16" else {})


def memory(what: BenchRow) -> RowMemory:
    each = 54 if what.precision == "amp" else 101
    tensors = 420 + each * what.batch
    return RowMemory(tensors_mib=tensors, pool_mib=round(tensors * 1.12))


def samples(
    gpu: str, began: float, seconds: float, heat: float = 62.0, clock: float = 1755.0
) -> GpuSamples:
    """Ten samples a second of one GPU at work, which warms up."""
    times = [round(began + number / 10, 1) for number in range(int(seconds * 10))]
    warm = [1 - math.exp(-(time - began) / 9) for time in times]
    return GpuSamples(
        gpu=gpu,
        seconds=times,
        values={
            "sm_clock_mhz": [clock - 15.0 * (number % 3) for number in range(len(times))],
            "temperature_c": [round(38 + (heat - 38) * share) for share in warm],
            "power_w": [round(180 + 470 * share, 1) for share in warm],
            "throttle_reasons": [0.0] * len(times),
            "other_processes": [0.0] * len(times),
        },
    )


# What a healthy H100 of the simulated machine does, images/s at batch 256; nobody measured this.
_RATES = {"fp32": 486.0, "tf32": 1148.0, "amp": 2071.0, "amp xla": 2664.0}
_OF_BATCH = {128: 0.96, 256: 1.0, 512: 1.015}
_THERMAL = 0x40  # NVML's bit of a thermal slowdown by the hardware


def trained(rows: list[BenchRow], slow: str) -> list[RowRun]:
    """Planned rows of resnet50 as they came out; on the GPU ``slow`` heat costs a fifth."""
    runs = []
    began = 20.0
    for number, what in enumerate(rows):
        mode = "amp xla" if what.precision == "amp" and what.compiled else what.precision
        rate = _RATES[mode] * _OF_BATCH.get(what.batch, 1.0) * (1 + 0.003 * (number % 5 - 2))
        hot = what.gpus == [slow]
        rate *= 0.79 if hot else 1.0
        if len(what.gpus) > 1:
            rate *= len(what.gpus) * 0.76
        seen = [_cool(gpu, began, hot=gpu == slow) for gpu in what.gpus]
        runs.append(ran(what, round(rate, 1), began=began, samples=seen))
        began += 14.0
    return runs


def _cool(gpu: str, began: float, hot: bool) -> GpuSamples:
    """Two samples a second; the hot GPU falls into its thermal slowdown."""
    seen = samples(gpu, began, 12.0, heat=87.0 if hot else 61.0, clock=1380.0 if hot else 1755.0)
    kept = range(0, len(seen.seconds), 5)
    values = {name: [column[n] for n in kept] for name, column in seen.values.items()}
    if hot:
        values["throttle_reasons"] = [float(_THERMAL) if n % 50 > 10 else 0.0 for n in kept]
    return GpuSamples(gpu=gpu, seconds=[seen.seconds[n] for n in kept], values=values)


def benched(snapshot: Snapshot, runs: list[RowRun], **changes: Any) -> Snapshot:
    """The Snapshot with these rows in its target."""
    assert snapshot.target is not None
    fields: dict[str, Any] = {
        "asked": list(dict.fromkeys(run.row.what for run in runs)),
        "began": "2026-11-20T18:24:52Z",
        "seconds": 312.0,
        "settings": {"TF_GPU_THREAD_MODE": "gpu_private"},
        "rows": runs,
    }
    probe = Probe(outcome="ok", seconds=312.0, facts=Bench(**(fields | changes)))
    return replace(snapshot, target=replace(snapshot.target, bench=probe))


PUBLISHED = ReferenceRate(
    rate=2790.0,
    kind="published",
    about="H100 SXM5 80GB, AMP, XLA, batch 256, tensorflow:24.05",
    source="github.com/example/figures@0123abc:README.md#L12",
)


def judged(run: RowRun, **changes: Any) -> RowResult:
    """A row's result as the judgement may come to it."""
    rates = [one.steps * run.row.batch / one.seconds for one in run.repetitions]
    rate = None
    if rates:
        rates.sort()
        rate = RowRate(
            median=rates[len(rates) // 2],
            least=rates[0],
            most=rates[-1],
            repetitions=len(rates),
            unit="images/s",
        )
    fields: dict[str, Any] = {"run": run, "rate": rate, "proof": "engaged"}
    return RowResult(**(fields | changes))


def found(*rows: RowResult, **changes: Any) -> BenchResult:
    fields: dict[str, Any] = {"began": "2026-11-20T18:24:52Z", "seconds": 312.0}
    bench = Bench(**(fields | {"rows": [one.run for one in rows]} | changes))
    on_cpu = bool(rows) and not any(one.run.row.gpus for one in rows)
    return BenchResult(bench=bench, rows=list(rows), on_cpu=on_cpu)
