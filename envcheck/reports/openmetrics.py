"""The report as metrics: every check's outcome, what was found, the micro-kernels' rates.

No host name, serial number or UUID is in it: a GPU is named by nvidia-smi's index and its model. What the
GPUs report themselves (temperatures, clocks, ECC) is dcgm-exporter's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ..tensorcores.mode_verdict import ModeVerdict
from . import metrics
from .metrics import Sample
from .model import Report
from .results import ReportedResult


def render(report: Report) -> str:
    return metrics.render(families(report))


def families(report: Report) -> Iterator[tuple[str, Sequence[Sample]]]:
    machine = report.machine
    version = {"version": report.envcheck, "simulated": "yes" if report.simulated else ""}
    yield "build_info", [Sample(1, version)]
    yield "snapshot_time_seconds", metrics.moment(machine.collected_at)
    yield "state", metrics.states(report.status)
    names = ("code", "area", "outcome")
    checks = [{name: getattr(one, name) for name in names} for one in report.results]
    yield "check", [Sample(1, labels) for labels in checks]
    yield "findings", _findings(report.results)
    if machine.driver:
        labels = {"version": machine.driver, "cuda": machine.cuda or ""}
        yield "driver_info", [Sample(1, labels)]
    frameworks = report.target.frameworks.items() if report.target else ()
    samples = [Sample(1, {"framework": name, "version": text}) for name, text in frameworks]
    yield "framework_info", samples
    if machine.gpus is not None:
        yield "gpus", [Sample(sum(group.count for group in machine.gpus))]
        models = [Sample(group.count, {"model": group.name}) for group in machine.gpus]
        yield "gpu_models", models
    yield from _tensor_cores(report.tensor_cores)


def _findings(results: Iterable[ReportedResult]) -> list[Sample]:
    found: Counter[tuple[str, ...]] = Counter()
    for result in results:
        for finding in result.findings:
            degrades = "yes" if finding.degrades else ""
            for gpu in {_index(subject.index) for subject in finding.subjects} or {""}:
                found[(result.code, finding.cause, finding.level, degrades, gpu)] += 1
    names = ("code", "cause", "level", "degrades", "gpu")
    return [Sample(count, dict(zip(names, key, strict=True))) for key, count in found.items()]


def _index(index: int | None) -> str:
    return "" if index is None else str(index)


def _tensor_cores(rows: Iterable[ModeVerdict]) -> Iterator[tuple[str, Sequence[Sample]]]:
    rows = list(rows)
    instances = _instances(rows)
    placed = [(row, _kernel(row, instances)) for row in rows]
    verdicts = [{**place, "verdict": row.verdict} for row, place in placed]
    yield "tensor_core_verdict", [Sample(1, labels) for labels in verdicts]
    for name, of in (("flops", "tflops"), ("peak_flops", "peak_tflops")):
        found = [(getattr(row, of), place) for row, place in placed]
        samples = [Sample(round(rate * 1e12), place) for rate, place in found if rate is not None]
        yield f"tensor_core_{name}", samples


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
