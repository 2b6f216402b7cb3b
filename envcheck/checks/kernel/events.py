"""What the checks on logs share: whose event it is, what came after it, and how to reset that GPU."""

from __future__ import annotations

from collections.abc import Sequence

from ..driver_state import HOLDERS, REBOOT, REPORT
from ..reading import CannotJudge, Gpu, KernelEvent, SnapshotView, known
from ..verdicts import Subject, about_device_at, about_gpu, word

_NEAR = 5.0  # seconds: lines that belong together
_DRIVERS = ("xid", "nvrm", "gsp", "reset-required", "gpu-lost", "fallen-off-bus", "nvlink")


def gpu_at(view: SnapshotView, address: str | None) -> Gpu | None:
    try:
        gpus = view.gpus
    except CannotJudge:
        return None
    return next((gpu for gpu in gpus if address and known(gpu.pci_address) == address), None)


def subjects_at(view: SnapshotView, address: str | None) -> list[Subject]:
    gpu = gpu_at(view, address)
    return about_gpu(gpu) if gpu is not None else about_device_at("gpu", address)


def address_of_event(
    view: SnapshotView, event: KernelEvent, events: Sequence[KernelEvent]
) -> str | None:
    """The GPU's address: the line's own, else that of the driver's lines beside it, else of the only GPU."""
    own, seconds = known(event.pci_address), known(event.seconds)
    if own is not None:
        return own
    near = {
        known(other.pci_address)
        for other in events
        if other.kind in _DRIVERS
        and seconds is not None
        and abs((known(other.seconds) or -99.0) - seconds) <= _NEAR
    } - {None}
    if near:
        return near.pop() if len(near) == 1 else None
    try:
        addresses = [known(gpu.pci_address) for gpu in view.gpus]
    except CannotJudge:
        return None
    return addresses[0] if len(addresses) == 1 else None


def since_driver_load(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """The events since the module was last loaded, which starts every GPU anew."""
    loads = [place for place, event in enumerate(events) if event.kind == "driver-load"]
    return list(events[loads[-1] + 1 :]) if loads else list(events)


def reset_commands(action: str, address: str | None) -> list[str]:
    reset = f"sudo nvidia-smi --gpu-reset -i {word(address)}" if address else REBOOT
    last = {"reset": [reset], "reboot": [REBOOT], "off": ["sudo poweroff"], "report": []}
    stop = [HOLDERS] if action in ("reset", "reboot") else []
    return [REPORT, *stop, *last[action]] if action in last else []
