"""Soaks for tests: made up, of GPUs that were well unless a test says otherwise."""

from __future__ import annotations

from typing import Any

import build
import h100
import msgspec

from envcheck.checks.engine import diagnose
from envcheck.facts.base import Probe
from envcheck.facts.gpu import Gpu
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.soak import Soak, SoakGpu, SoakMinute
from envcheck.findings.model import CheckResult

H100 = "NVIDIA H100 80GB HBM3"
BEFORE = {
    **dict.fromkeys(("ecc_corrected", "ecc_uncorrected", "retired_pages", "remapped_rows"), 0.0),
    **dict.fromkeys(("remap_uncorrectable", "remap_pending", "remap_failed", "nvlink_errors"), 0.0),
    "pcie_replays": 3.0,
    "pcie_width": 16.0,
    "pcie_gen": 5.0,
    "power_limit_w": 700.0,
    "xid_events": 1.0,
}


def minute(number: int, **changes: Any) -> SoakMinute:
    values: dict[str, Any] = {
        "began": 60.0 * number,
        "seconds": 60.0,
        "products": 60_000,
        "tflops": 600.0,
        "sm_clock_mhz": 1755.0,
        "temperature_c": 65.0,
        "memory_temperature_c": 80.0,
        "power_w": 698.0,
        "throttled": {"sw_power_cap": 0.9},
        "pcie_width": 16,
        "pcie_gen": 5,
        "other_processes": 0,
        "samples": 60,
        "reason_samples": 60,
    }
    return SoakMinute(**{**values, **changes})


def gpu(index: int = 0, rates: list[float] | None = None, **changes: Any) -> SoakGpu:
    found = [minute(place, tflops=rate) for place, rate in enumerate(rates or [600.0] * 30)]
    values: dict[str, Any] = {
        "gpu": f"0000:{0x10 + index:02x}:00.0",
        "index": index,
        "name": H100,
        "outcome": "ok",
        "level": "driver",
        "mode": "fp16",
        "tflop": 0.6,
        "words": 1 << 20,
        "memory_mib": 60_000,
        "passes": 40,
        "products": 60_000 * len(found),
        "digest": "ab" * 32,
        "errors_before": BEFORE,
        "errors_after": BEFORE,
        "minutes": found,
    }
    return SoakGpu(**{**values, **changes})


def soak(*gpus: SoakGpu, **changes: Any) -> Soak:
    values: dict[str, Any] = {"asked": 1800.0, "seconds": 1800.4, "began": "2026-11-20T18:24:52Z"}
    return Soak(gpus=list(gpus), **{**values, **changes})


def snapshot(*gpus: SoakGpu, nvml: list[Gpu] | None = None, **changes: Any) -> Snapshot:
    """nvml: the GPUs as the driver lists them; H100s where nothing else is given."""
    seen = [_listed(one) for one in gpus if one.name == H100] if nvml is None else nvml
    whole = build.gpu_snapshot(*seen)
    probe = Probe[Soak](outcome="ok", seconds=1800.4, facts=soak(*gpus, **changes))
    machine = msgspec.structs.replace(whole.machine, soak=probe)
    return msgspec.structs.replace(whole, machine=machine)


def _listed(one: SoakGpu) -> Gpu:
    return msgspec.structs.replace(h100.gpu(), pci_address=one.gpu, index=one.index)


def judged(*gpus: SoakGpu, **changes: Any) -> dict[str, CheckResult]:
    results = diagnose(snapshot(*gpus, **changes), only=["soak"]).results
    return {result.code: result for result in results if result.area == "soak"}
