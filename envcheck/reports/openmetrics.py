"""The report as metrics: every check's outcome, the facts that people alert on, the micro-kernels.

No host name, serial number or UUID is in it: a GPU is told by nvidia-smi's index and its model.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import get_args

from ..facts.base import known
from ..facts.gpu import Gpu
from ..facts.missing import CannotJudge
from ..facts.snapshot import Document, Snapshot
from ..facts.view import view_of
from ..findings.model import CheckResult
from ..tensorcores.mode_verdict import ModeVerdict
from . import metrics
from .machine import facts
from .metrics import Family, Sample
from .model import Report
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


def _checks(results: Iterable[CheckResult]) -> Iterator[Family]:
    results = list(results)
    yield Family(
        "check",
        "1 for each check, with its outcome as a label: pass, warn, fail, skipped, could-not-run.",
        [
            Sample(1, {"code": one.code, "area": one.area, "outcome": one.outcome})
            for one in results
        ],
    )
    found: dict[tuple[str, str, str], int] = {}
    for result in results:
        for finding in result.findings:
            for gpu in {_index(subject.index) for subject in finding.subjects} or {""}:
                key = (result.code, finding.level, gpu)
                found[key] = found.get(key, 0) + 1
    yield Family(
        "findings",
        "What the checks found, by check, level and GPU.",
        [
            Sample(count, {"code": code, "level": level, "gpu": gpu})
            for (code, level, gpu), count in found.items()
        ],
    )


def _index(index: int | None) -> str:
    return "" if index is None else str(index)


def _scaled(field: str, by: float = 1) -> Callable[[Gpu], float | None]:
    def value(gpu: Gpu) -> float | None:
        found = known(getattr(gpu, field))
        return None if found is None else float(found) * by

    return value


def _nvlinks(gpu: Gpu) -> float | None:
    links = known(gpu.nvlinks)
    return None if links is None else sum(known(link.active) is True for link in links)


# name, unit, help, the fact
_OF_A_GPU: tuple[tuple[str, str, str, Callable[[Gpu], float | None]], ...] = (
    ("temperature_celsius", "celsius", "The GPU's temperature.", _scaled("temperature_c")),
    (
        "memory_temperature_celsius",
        "celsius",
        "The temperature of the GPU's memory.",
        _scaled("memory_temperature_c"),
    ),
    ("power_watts", "watts", "What the GPU draws.", _scaled("power_draw_w")),
    ("power_limit_watts", "watts", "What the GPU may draw.", _scaled("power_limit_w")),
    ("sm_clock_hertz", "hertz", "The clock of its multiprocessors.", _scaled("clock_sm_mhz", _MHZ)),
    (
        "sm_clock_max_hertz",
        "hertz",
        "The highest clock of its multiprocessors.",
        _scaled("clock_sm_max_mhz", _MHZ),
    ),
    ("memory_bytes", "bytes", "The GPU's memory.", _scaled("memory_total_mib", _MIB)),
    (
        "memory_used_bytes",
        "bytes",
        "How much of the GPU's memory is in use.",
        _scaled("memory_used_mib", _MIB),
    ),
    ("ecc_enabled", "", "1 where ECC is on.", _scaled("ecc_enabled")),
    (
        "ecc_uncorrected_errors",
        "",
        "Uncorrectable ECC errors since the driver was loaded.",
        _scaled("ecc_uncorrected_volatile"),
    ),
    (
        "ecc_uncorrected_errors_lifetime",
        "",
        "Uncorrectable ECC errors over the board's life.",
        _scaled("ecc_uncorrected_aggregate"),
    ),
    (
        "remapped_rows_uncorrectable",
        "",
        "Memory rows remapped for uncorrectable errors.",
        _scaled("remap_uncorrectable"),
    ),
    (
        "row_remap_pending",
        "",
        "1 where a row is remapped by the next reset.",
        _scaled("remap_pending"),
    ),
    ("row_remap_failed", "", "1 where remapping a row has failed.", _scaled("remap_failed")),
    (
        "page_retirement_pending",
        "",
        "1 where pages are retired by the next reset.",
        _scaled("retired_pending"),
    ),
    ("reset_required", "", "1 where the GPU asks for a reset.", _scaled("reset_required")),
    ("pcie_width", "", "Lanes of the PCIe link that are in use.", _scaled("pcie_width")),
    ("pcie_width_max", "", "Lanes that the GPU has.", _scaled("pcie_width_max")),
    (
        "pcie_generation",
        "",
        "The PCIe link's generation now; idle GPUs lower it.",
        _scaled("pcie_gen"),
    ),
    (
        "pcie_generation_max",
        "",
        "The highest generation that GPU and slot can.",
        _scaled("pcie_gen_max"),
    ),
    ("pcie_replays", "", "Packets that the PCIe link had to send again.", _scaled("pcie_replays")),
    ("nvlinks_active", "", "NVLinks that are up.", _nvlinks),
)


def _of_gpus(snapshot: Snapshot) -> Iterator[Family]:
    try:
        gpus = view_of(snapshot).gpus
    except CannotJudge:
        return
    yield Family("gpus", "GPUs that the driver lists.", [Sample(len(gpus))])
    places = [{"gpu": _index(known(gpu.index)), "model": known(gpu.name) or ""} for gpu in gpus]
    for name, unit, words, fact in _OF_A_GPU:
        found = [(fact(gpu), place) for gpu, place in zip(gpus, places, strict=True)]
        samples = [Sample(value, place) for value, place in found if value is not None]
        yield Family(f"gpu_{name}", words, samples, unit)
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
