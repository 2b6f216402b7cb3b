"""Checks on what the driver says in the kernel log without an Xid."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from ...facts.base import known
from ...facts.evidence import Evidence
from ...facts.gpu import Gpu
from ...facts.kernel import KernelEvent
from ...facts.view import SnapshotView, need
from ...findings.model import Finding, Passed, Remedy, Verdict
from ..driver_state import NO_DRIVER, REPORT, branch, driver_version
from ..nvidia_devices import event_evidence, kernel_facts, listed_gpus
from ..registry import check
from ..system_commands import on_system
from .events import (
    address_of_event,
    gpu_at,
    reset_commands,
    since_driver_load,
    subjects_at,
)

_MISMATCH = re.compile(
    r"API mismatch: the client (?:\S{1,40} )?has the version (?P<client>\d[\d.]{2,20}\d)"
)
_PEERMEM_FIXED = 560  # the branch from which on the message should not come


@check(
    "KRN-014",
    title="The driver logs no errors besides Xids",
    problem="has errors of the driver in the kernel log",
    about="Some faults leave no Xid: the driver says that a GPU needs a reset or is lost, that the GPU's"
    " system processor does not start, that unified memory (nvidia-uvm) has stopped for good, that an NVLink"
    " could not be trained, or that a program came with driver libraries of another version. Judged by the"
    " kernel log since the driver was loaded; a GPU that the driver counts as well now is a warning at"
    " most.",
    sources=(
        "scitix/sichek#51",
        "NVIDIA/DCGM#134",
        "NVIDIA/open-gpu-kernel-modules#1230, kernel-open/nvidia-uvm/uvm_global.c",
        "Mellanox/nv_peer_memory#112, #120",
    ),
    follows=(*NO_DRIVER, "PCI-004", "KRN-008", "KRN-013", "DRV-002", "GPU-001", "GPU-006"),
)
def no_other_errors(view: SnapshotView) -> Iterator[Verdict]:
    events = since_driver_load(need(kernel_facts(view).log, "the kernel log"))
    lines: dict[tuple[str, str | None], list[KernelEvent]] = {}
    for event in events:
        kind: str = "mismatch" if _MISMATCH.search(event.text) else event.kind
        if kind in _FINDINGS:
            address = address_of_event(view, event, events) if kind in _OF_A_GPU else None
            lines.setdefault((kind, address), []).append(event)
    mentioned = []
    for (kind, address), told in lines.items():
        found = _FINDINGS[kind](view, address, told)
        if found is not None:
            yield found
        elif kind in _MENTIONED:
            mentioned.append(_MENTIONED[kind])
    yield Passed("; ".join(mentioned) or "none since the driver was loaded")


def _evidence(view: SnapshotView, events: Sequence[KernelEvent]) -> list[Evidence]:
    return [event_evidence(view, event) for event in events[-2:]]


def _level(gpu: Gpu | None) -> str:
    """A GPU that says itself that it needs nothing has been reset since."""
    return "warn" if gpu is not None and (known(gpu.recovery_action) or "") == "None" else "fail"


def _needs_reset(view: SnapshotView, address: str | None, events: list[KernelEvent]) -> Finding:
    level = _level(gpu_at(view, address))
    return Finding(
        "fail" if level == "fail" else "warn",
        "The driver says that this GPU has to be reset"
        + (
            ": until then programs on it fail ('busy or unavailable'), or their results are wrong."
            if level == "fail"
            else " (it does not ask for it any more): look whether programs on it work."
        ),
        subjects=subjects_at(view, address),
        evidence=_evidence(view, events),
        remedy=Remedy(
            "Stop everything that uses the GPU and reset it; where the reset is refused, or it comes back,"
            " power the machine off and on.",
            reset_commands("reset", address),
        ),
        headline="has to be reset, says the driver",
    )


def _lost(view: SnapshotView, address: str | None, events: list[KernelEvent]) -> Finding:
    return Finding(
        "fail",
        "The driver says that it has lost this GPU: jobs on it hang or die.",
        subjects=subjects_at(view, address),
        evidence=_evidence(view, events),
        remedy=Remedy(
            "Power the machine off and on; where it comes back, check power cables, seating and temperature,"
            " then replace the board.",
            [REPORT, "sudo poweroff"],
        ),
        headline="was lost by the driver",
    )


def _gsp(view: SnapshotView, address: str | None, events: list[KernelEvent]) -> Finding | None:
    listed = listed_gpus(view)
    if address in listed or (address is None and listed):
        return None
    return Finding(
        "fail",
        "The firmware that the driver loads into the GPU (GSP) does not come up: nothing can use it.",
        subjects=subjects_at(view, address),
        evidence=_evidence(view, events),
        remedy=Remedy(
            "Power the machine off and on; where it stays so, install another version of the driver, newer"
            " first.",
            [*on_system(view, "update-driver"), REPORT, "sudo poweroff"],
        ),
        headline="does not start its firmware (GSP)",
    )


def _uvm(view: SnapshotView, _address: str | None, events: list[KernelEvent]) -> Finding:
    return Finding(
        "fail",
        "Unified memory (the module nvidia-uvm) has stopped for good after an error: no CUDA program starts"
        " until the module is loaded anew.",
        evidence=_evidence(view, events),
        remedy=Remedy(
            "Stop every CUDA program and load the module anew, or reboot; look in the log for what came"
            " before it.",
            [
                "sudo fuser -v /dev/nvidia-uvm",
                "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
                "sudo dmesg | grep -iE 'nvrm|xid|uvm'",
            ],
        ),
        headline="unified memory (nvidia-uvm) has stopped",
    )


def _nvlink(view: SnapshotView, address: str | None, events: list[KernelEvent]) -> Finding:
    return Finding(
        "warn",
        "The driver could not train an NVLink of this GPU: exchange with its peers is slower, or goes over"
        " PCIe.",
        subjects=subjects_at(view, address),
        evidence=_evidence(view, events),
        remedy=Remedy(
            "Reset the GPUs of that link together, or reboot; where it comes back, have bridge, board or"
            " baseboard examined.",
            ["nvidia-smi nvlink --status", REPORT, "sudo nvidia-smi --gpu-reset"],
        ),
        headline="could not train an NVLink",
    )


def _peermem(view: SnapshotView, _address: str | None, events: list[KernelEvent]) -> Finding | None:
    driver = known(driver_version(view)[0])
    number = branch(driver)
    if not number or int(number) >= _PEERMEM_FIXED:
        return None
    times = sum(event.count for event in events)
    return Finding(
        "warn",
        f"nvidia-peermem (GPUDirect RDMA) reports an invalid context, {times} times: harmless by itself,"
        f" says NVIDIA, and mended in drivers from {_PEERMEM_FIXED} on; some saw jobs fail along with it.",
        evidence=_evidence(view, events),
        remedy=Remedy(
            f"Where jobs over InfiniBand fail, upgrade the driver to {_PEERMEM_FIXED} or later.",
            on_system(view, "update-driver"),
        ),
        headline="nvidia-peermem reports an invalid context",
    )


def _mismatch(
    view: SnapshotView, _address: str | None, events: list[KernelEvent]
) -> Finding | None:
    client = _MISMATCH.search(events[-1].text)
    module = known(kernel_facts(view).driver_version)
    if client is None or client["client"] == module:
        return None
    return Finding(
        "warn",
        f"A program came with driver libraries of version {client['client']}"
        + (f", and the kernel module is {module}" if module else "")
        + ": it could not use the GPU.",
        evidence=_evidence(view, events),
        remedy=Remedy(
            "It was most likely in a container whose image holds libraries of a driver, or was started before"
            " the driver was changed: take them out of the image (the engine brings the host's), or start it"
            " anew.",
            [
                "find / -xdev -name 'libcuda.so.*' -not -path '*/compat/*' 2>/dev/null"
                "  # in the image or environment of that program",
            ],
        ),
        headline="a program came with another driver's libraries",
    )


def _display(_view: SnapshotView, _address: str | None, _events: list[KernelEvent]) -> None:
    return None


_FINDINGS: dict[str, Callable[[SnapshotView, str | None, list[KernelEvent]], Finding | None]] = {
    "reset-required": _needs_reset,
    "gpu-lost": _lost,
    "gsp": _gsp,
    "uvm": _uvm,
    "nvlink": _nvlink,
    "peermem": _peermem,
    "mismatch": _mismatch,
    "modeset": _display,
}
_OF_A_GPU = ("reset-required", "gpu-lost", "gsp", "nvlink")
_MENTIONED = {
    "modeset": "an error of the display (nvidia-modeset)",
    "gsp": "a failed start of the GPU's firmware, which has come up since",
    "peermem": "nvidia-peermem: an invalid context",
}
