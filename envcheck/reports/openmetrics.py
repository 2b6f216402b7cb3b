"""The report as metrics: every check's outcome, what was found, the micro-kernels' rates.

No host name, serial number or UUID is in it: a GPU is named by nvidia-smi's index and its model. What the
GPUs report themselves (temperatures, clocks, ECC) is dcgm-exporter's.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import get_args

from ..findings.states import State
from ..tensorcores.mode_verdict import ModeVerdict
from . import metrics
from .metrics import Family, Sample
from .model import Report
from .results import ReportedResult


def render(report: Report) -> str:
    return metrics.render(_families(report))


def _families(report: Report) -> Iterator[Family]:
    machine = report.machine
    version = {"version": report.envcheck, "simulated": "yes" if report.simulated else ""}
    yield Family("build_info", "The envcheck that judged this machine.", [Sample(1, version)])
    collected = _seconds(machine.collected_at)
    yield Family(
        "snapshot_time_seconds",
        "When the facts were collected, in seconds since 1970.",
        [] if collected is None else [Sample(collected)],
        "seconds",
    )
    yield Family(
        "status",
        "1 for what envcheck doctor says of this machine, 0 for what it could have said.",
        [Sample(report.status == one, {"status": one}) for one in get_args(State)],
    )
    yield from _checks(report.results)
    driver = {"version": machine.driver or "", "cuda": machine.cuda or ""}
    samples = [Sample(1, driver)] if machine.driver else []
    yield Family("driver_info", "The NVIDIA driver, and the newest CUDA that it supports.", samples)
    frameworks = report.target.frameworks.items() if report.target else ()
    samples = [Sample(1, {"framework": name, "version": text}) for name, text in frameworks]
    yield Family("framework_info", "The frameworks of the target.", samples)
    if machine.gpus is not None:
        groups = [Sample(group.count, {"model": group.name}) for group in machine.gpus]
        yield Family("gpus", "GPUs of the machine, by model.", groups or [Sample(0)])
    yield from _tensor_cores(report.tensor_cores)


def _seconds(time: str) -> float | None:
    try:
        return datetime.datetime.fromisoformat(time.replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def _checks(results: Iterable[ReportedResult]) -> Iterator[Family]:
    results = list(results)
    yield Family(
        "check",
        "1 for each check, with its outcome as a label: pass, warn, fail, skipped, could-not-run.",
        [
            Sample(1, {"code": one.code, "area": one.area, "outcome": one.outcome})
            for one in results
        ],
    )
    found: Counter[tuple[str, str, str, str]] = Counter()
    for result in results:
        for finding in result.findings:
            for gpu in {_index(subject.index) for subject in finding.subjects} or {""}:
                found[(result.code, finding.cause, finding.level, gpu)] += 1
    names = ("code", "cause", "level", "gpu")
    yield Family(
        "findings",
        "What the checks found, by check, cause, level and GPU.",
        [Sample(count, dict(zip(names, key, strict=True))) for key, count in found.items()],
    )


def _index(index: int | None) -> str:
    return "" if index is None else str(index)


def _tensor_cores(rows: Iterable[ModeVerdict]) -> Iterator[Family]:
    rows = list(rows)
    instances = _instances(rows)
    places = [_kernel(row, instances) for row in rows]
    yield Family(
        "tensor_core_verdict",
        "1 for each matrix product that ran, with the verdict on its Tensor Cores as a label.",
        [
            Sample(1, {**place, "verdict": row.verdict})
            for row, place in zip(rows, places, strict=True)
        ],
    )
    for name, words, of in (
        ("flops", "What a matrix product reached, operations a second.", "tflops"),
        ("peak_flops", "What the GPU could reach at the clock that was seen.", "peak_tflops"),
    ):
        found = [(getattr(row, of), place) for row, place in zip(rows, places, strict=True)]
        samples = [
            Sample(round(value * 1e12), place) for value, place in found if value is not None
        ]
        yield Family(f"tensor_core_{name}", words, samples)


def _instances(rows: Iterable[ModeVerdict]) -> dict[str, str]:
    """The MIG instances of each GPU counted, since their UUIDs are nobody else's business."""
    numbers: dict[str, str] = {}
    of_gpu: dict[str, int] = {}
    for row in rows:
        if row.gpu is not None and row.gpu.kind == "mig-instance" and row.gpu.uuid not in numbers:
            number = of_gpu.get(row.gpu.address, 0)
            numbers[row.gpu.uuid], of_gpu[row.gpu.address] = str(number), number + 1
    return numbers


def _kernel(row: ModeVerdict, instances: Mapping[str, str]) -> dict[str, str]:
    gpu = row.gpu
    return {
        "gpu": "" if gpu is None else _index(gpu.index),
        "mig_instance": "" if gpu is None else instances.get(gpu.uuid, ""),
        "model": "" if gpu is None else gpu.name,
        "level": row.level,
        "framework": row.framework,
        "library": row.library,
        "mode": row.mode,
        "setting": row.setting,
    }
