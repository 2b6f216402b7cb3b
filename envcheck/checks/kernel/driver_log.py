"""The check on the driver's errors in the kernel log that have no Xid."""

from __future__ import annotations

import re

from ..driver_state import NO_DRIVER, REPORT, branch, driver_version
from ..nvidia_devices import event_evidence, kernel_facts, listed_gpus
from ..reading import KernelEvent, SnapshotView, known, need
from ..system_commands import on_system
from ..verdicts import Finding, Passed, Verdicts, check, fail, warn
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
_RESET = (
    "Stop everything that uses the GPU and reset it; where the reset is refused, or it comes back,"
    " power the machine off and on."
)

RESET = fail(
    "reset-required",
    "has to be reset, says the driver",
    "The driver says that this GPU has to be reset: until then programs on it fail ('busy or"
    " unavailable'), or their results are wrong.",
    _RESET,
)
RESET_BEFORE = warn(
    "reset-was-required",
    "had to be reset, said the driver",
    "The driver said that this GPU has to be reset (it does not ask for it any more): look whether"
    " programs on it work.",
    _RESET,
)
LOST = fail(
    "gpu-lost",
    "was lost by the driver",
    "The driver says that it has lost this GPU: jobs on it hang or die.",
    "Power the machine off and on; where it comes back, check power cables, seating and temperature,"
    " then replace the board.",
    REPORT,
    "sudo poweroff",
)
GSP = fail(
    "gsp-not-started",
    "does not start its firmware (GSP)",
    "The firmware that the driver loads into the GPU (GSP) does not come up: nothing can use it.",
    "Power the machine off and on; where it stays so, install another version of the driver, newer"
    " first.",
)
UVM = fail(
    "uvm-stopped",
    "unified memory (nvidia-uvm) has stopped",
    "Unified memory (the module nvidia-uvm) has stopped for good after an error: no CUDA program"
    " starts until the module is loaded again.",
    "Stop every CUDA program and load the module again, or reboot; look in the log for what came"
    " before it.",
    "sudo fuser -v /dev/nvidia-uvm",
    "sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm",
    "sudo dmesg | grep -iE 'nvrm|xid|uvm'",
)
NVLINK = warn(
    "nvlink-not-trained",
    "could not train an NVLink",
    "The driver could not train an NVLink of this GPU: exchange with its peers is slower, or goes"
    " over PCIe.",
    "Reset the GPUs of that link together, or reboot; where it comes back, have bridge, board or"
    " baseboard examined.",
    "nvidia-smi nvlink --status",
    REPORT,
    "sudo nvidia-smi --gpu-reset",
)
PEERMEM = warn(
    "peermem-invalid-context",
    "nvidia-peermem reports an invalid context",
    "nvidia-peermem (GPUDirect RDMA) reports an invalid context, {times} times: harmless by itself,"
    f" says NVIDIA, and fixed in drivers from {_PEERMEM_FIXED} on; some saw jobs fail along with it.",
    f"If jobs over InfiniBand fail, upgrade the driver to {_PEERMEM_FIXED} or later.",
)
MISMATCH = warn(
    "program-with-other-libraries",
    "a program came with another driver's libraries",
    "A program came with driver libraries of version {client}, and the kernel module is {module}: it"
    " could not use the GPU.",
    "It was most likely in a container whose image holds libraries of a driver, or was started before"
    " the driver was changed: take them out of the image (the engine brings the host's), or start it again.",
    "find / -xdev -name 'libcuda.so.*' -not -path '*/compat/*' 2>/dev/null"
    "  # in the image or environment of that program",
)
_BY_KIND = {
    "reset-required": RESET,
    "gpu-lost": LOST,
    "gsp": GSP,
    "uvm": UVM,
    "nvlink": NVLINK,
    "peermem": PEERMEM,
    "mismatch": MISMATCH,
}
_OF_A_GPU = ("reset-required", "gpu-lost", "gsp", "nvlink")
_MENTIONED = {
    "modeset": "an error of the display (nvidia-modeset)",
    "gsp": "a failed start of the GPU's firmware, which has come up since",
    "peermem": "nvidia-peermem: an invalid context",
}


@check(
    "KRN-014",
    title="The driver logs no errors besides Xids",
    causes=[*_BY_KIND.values(), RESET_BEFORE],
    about="Some faults leave no Xid: the driver says that a GPU needs a reset or is lost, that the GPU's"
    " system processor does not start, that unified memory (nvidia-uvm) has stopped for good, that an"
    " NVLink could not be trained, or that a program came with driver libraries of another version. Judged"
    " by the kernel log since the driver was loaded; a GPU that needs no recovery now is a warning at most.",
    sources=["scitix/sichek#51; NVIDIA/DCGM#134; Mellanox/nv_peer_memory#112, #120"],
    follows=(*NO_DRIVER, "PCI-004", "KRN-008", "KRN-013", "DRV-002", "GPU-001", "GPU-006"),
)
def no_other_errors(view: SnapshotView) -> Verdicts:
    events = since_driver_load(need(kernel_facts(view).log, "the kernel log"))
    lines: dict[tuple[str, str | None], list[KernelEvent]] = {}
    for event in events:
        kind: str = "mismatch" if _MISMATCH.search(event.text) else event.kind
        if kind in _BY_KIND or kind in _MENTIONED:
            address = address_of_event(view, event, events) if kind in _OF_A_GPU else None
            lines.setdefault((kind, address), []).append(event)
    mentioned = []
    for (kind, address), logged in lines.items():
        found = _judge(view, kind, address, logged)
        if found is not None:
            yield found
        elif kind in _MENTIONED:
            mentioned.append(_MENTIONED[kind])
    yield Passed("; ".join(mentioned) or "none since the driver was loaded")


def _judge(
    view: SnapshotView, kind: str, address: str | None, events: list[KernelEvent]
) -> Finding | None:
    """The finding on one kind of line about one GPU; None for what is only mentioned."""
    cause = _BY_KIND.get(kind)
    listed = listed_gpus(view)
    if cause is None or (cause is GSP and (address in listed or (address is None and listed))):
        return None
    subjects = subjects_at(view, address) if kind in _OF_A_GPU else []
    evidence = [event_evidence(view, event) for event in events[-2:]]
    if cause is RESET:
        gpu = gpu_at(view, address)
        # A GPU that needs no recovery has been reset since.
        over = gpu is not None and known(gpu.recovery_action) == "None"
        commands = reset_commands("reset", address)
        return (RESET_BEFORE if over else RESET).found(subjects, evidence, commands=commands)
    if cause is GSP:
        commands = [*on_system(view, "update-driver"), REPORT, "sudo poweroff"]
        return GSP.found(subjects, evidence, commands=commands)
    if cause is PEERMEM:
        number = branch(known(driver_version(view)[0]))
        if not number or int(number) >= _PEERMEM_FIXED:
            return None
        commands = on_system(view, "update-driver")
        times = sum(event.count for event in events)
        return PEERMEM.found(evidence=evidence, commands=commands, times=times)
    if cause is MISMATCH:
        client = _MISMATCH.search(events[-1].text)
        module = known(kernel_facts(view).driver_version)
        if client is None or client["client"] == module:
            return None
        return MISMATCH.found(
            evidence=evidence, client=client["client"], module=module or "another"
        )
    return cause.found(subjects, evidence)
