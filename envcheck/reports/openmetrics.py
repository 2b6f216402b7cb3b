"""The report as metrics: every check's outcome, the facts that people alert on, the micro-kernels.

No host name, serial number or UUID is in it: a GPU is told by nvidia-smi's index and its model.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, get_args

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.snapshot import Document, Snapshot
from ..facts.view import view_of
from ..tensorcores.mode_verdict import ModeVerdict
from . import metrics
from .machine import facts
from .metrics import Family, Sample
from .model import Report
from .results import ReportedResult
from .verdict import Status

_MIB = 1 << 20
_MHZ = 10**6


def render(report: Report, snapshot: Snapshot, labels: Mapping[str, str] | None = None) -> str:
    """labels: of every sample, as the user asked for them (``host``)."""
    return metrics.render(_families(report, snapshot), labels)


def _families(report: Report, snapshot: Snapshot) -> Iterator[Family]:
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
        [Sample(report.status == one, {"status": one}) for one in get_args(Status)],
    )
    yield from _checks(report.results)
    driver = {"version": machine.driver or "", "cuda": machine.cuda or ""}
    yield Family(
        "driver_info",
        "The NVIDIA driver, and the newest CUDA that it supports.",
        [Sample(1, driver)] if machine.driver else [],
    )
    frameworks = report.target.frameworks if report.target else {}
    yield Family(
        "framework_info",
        "The frameworks of the environment that was looked at.",
        [Sample(1, {"framework": name, "version": told}) for name, told in frameworks.items()],
    )
    yield from _of_gpus(snapshot)
    yield Family("xid_log_entries", "Xids in the kernel's log, by number.", _xids(snapshot.machine))
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


def _nvlinks(gpu: Gpu) -> float | None:
    links = known(gpu.nvlinks)
    return None if links is None else sum(known(link.active) is True for link in links)


class _GpuMetric(NamedTuple):
    """field: of facts.gpu.Gpu; factor: to the unit."""

    name: str
    help: str
    field: str
    unit: str = ""
    factor: float = 1


_GPU_METRICS = (
    _GpuMetric("temperature_celsius", "The GPU's temperature.", "temperature_c", "celsius"),
    _GpuMetric(
        "memory_temperature_celsius",
        "The temperature of the GPU's memory.",
        "memory_temperature_c",
        "celsius",
    ),
    _GpuMetric("power_watts", "What the GPU draws.", "power_draw_w", "watts"),
    _GpuMetric("power_limit_watts", "What the GPU may draw.", "power_limit_w", "watts"),
    _GpuMetric("sm_clock_hertz", "The multiprocessors' clock.", "clock_sm_mhz", "hertz", _MHZ),
    _GpuMetric(
        "sm_clock_max_hertz",
        "The multiprocessors' highest clock.",
        "clock_sm_max_mhz",
        "hertz",
        _MHZ,
    ),
    _GpuMetric("memory_bytes", "The GPU's memory.", "memory_total_mib", "bytes", _MIB),
    _GpuMetric("memory_used_bytes", "The GPU's memory in use.", "memory_used_mib", "bytes", _MIB),
    _GpuMetric("ecc_enabled", "1 where ECC is on.", "ecc_enabled"),
    _GpuMetric(
        "ecc_uncorrected_errors",
        "Uncorrectable ECC errors since the driver was loaded.",
        "ecc_uncorrected_volatile",
    ),
    _GpuMetric(
        "ecc_uncorrected_errors_lifetime",
        "Uncorrectable ECC errors over the board's life.",
        "ecc_uncorrected_aggregate",
    ),
    _GpuMetric(
        "remapped_rows_uncorrectable",
        "Memory rows remapped for uncorrectable errors.",
        "remap_uncorrectable",
    ),
    _GpuMetric("row_remap_pending", "1 where the next reset remaps a row.", "remap_pending"),
    _GpuMetric("row_remap_failed", "1 where remapping a row has failed.", "remap_failed"),
    _GpuMetric(
        "page_retirement_pending", "1 where the next reset retires pages.", "retired_pending"
    ),
    _GpuMetric("reset_required", "1 where the GPU asks for a reset.", "reset_required"),
    _GpuMetric("pcie_width", "Lanes of the PCIe link that are in use.", "pcie_width"),
    _GpuMetric("pcie_width_max", "Lanes that the GPU has.", "pcie_width_max"),
    _GpuMetric(
        "pcie_generation", "The PCIe link's generation now; idle GPUs lower it.", "pcie_gen"
    ),
    _GpuMetric("pcie_generation_max", "The highest generation of GPU and slot.", "pcie_gen_max"),
    _GpuMetric("pcie_replays", "Packets that the PCIe link had to send again.", "pcie_replays"),
)


def _of_gpus(snapshot: Snapshot) -> Iterator[Family]:
    try:
        gpus = view_of(snapshot).gpus
    except CannotJudge:
        return
    yield Family("gpus", "GPUs that the driver lists.", [Sample(len(gpus))])
    places = [{"gpu": _index(known(gpu.index)), "model": known(gpu.name) or ""} for gpu in gpus]
    for metric in _GPU_METRICS:
        values = [known(getattr(gpu, metric.field)) for gpu in gpus]
        samples = [
            Sample(float(value) * metric.factor, place)
            for value, place in zip(values, places, strict=True)
            if value is not None
        ]
        yield Family(f"gpu_{metric.name}", metric.help, samples, metric.unit)
    links = [(_nvlinks(gpu), place) for gpu, place in zip(gpus, places, strict=True)]
    active = [Sample(count, place) for count, place in links if count is not None]
    yield Family("gpu_nvlinks_active", "NVLinks that are up.", active)
    yield Family(
        "gpu_clock_event",
        "1 for each reason that holds the GPU's clocks now.",
        [
            Sample(1, {**place, "reason": reason})
            for gpu, place in zip(gpus, places, strict=True)
            for reason in known(gpu.clock_event_reasons) or []
        ],
    )


def _xids(machine: Document) -> list[Sample]:
    kernel = facts(machine.kernel)
    counted: dict[str, int] = {}
    for entry in (known(kernel.log) or []) if kernel is not None else []:
        number = known(entry.xid)
        if number is not None:
            name = f"SXid {number}" if entry.kind == "sxid" else str(number)
            counted[name] = counted.get(name, 0) + entry.count
    return [Sample(count, {"xid": name}) for name, count in counted.items()]


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
