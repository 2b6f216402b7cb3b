"""What the checks on logs share: whose event it is, what came after it, and how to reset that GPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..driver_state import REBOOT, REPORT
from ..reading import CannotJudge, Gpu, KernelEvent, SnapshotView, known
from ..verdicts import Subject, about_device_at, about_gpu, word

NEAR = 5.0  # seconds: lines that belong together
_DRIVERS = ("xid", "nvrm", "gsp", "reset-required", "gpu-lost", "fallen-off-bus", "nvlink")


def gpu_at(view: SnapshotView, address: str | None) -> Gpu | None:
    """The GPU that the driver lists at this address."""
    try:
        return next((gpu for gpu in view.gpus if known(gpu.pci_address) == address), None)
    except CannotJudge:
        return None


def subjects_at(view: SnapshotView, address: str | None) -> list[Subject]:
    gpu = gpu_at(view, address) if address else None
    return about_gpu(gpu) if gpu is not None else about_device_at("gpu", address)


def address_of_event(
    view: SnapshotView, event: KernelEvent, events: Sequence[KernelEvent]
) -> str | None:
    """The GPU's address: as told, else that of the driver's lines beside it, else of the only GPU."""
    told = known(event.pci_address)
    if told is not None:
        return told
    near = {known(other.pci_address) for other in _beside(event, events)} - {None}
    if len(near) == 1:
        return near.pop()
    try:
        addresses = [known(gpu.pci_address) for gpu in view.gpus]
    except CannotJudge:
        return None
    return addresses[0] if len(addresses) == 1 and not near else None


def _beside(event: KernelEvent, events: Sequence[KernelEvent]) -> Iterator[KernelEvent]:
    seconds = known(event.seconds)
    if seconds is None:
        return
    for other in events:
        then = known(other.seconds)
        if other.kind in _DRIVERS and then is not None and abs(then - seconds) <= NEAR:
            yield other


def since_driver_load(events: Sequence[KernelEvent]) -> list[KernelEvent]:
    """The events since the module was last loaded, which starts every GPU anew."""
    loads = [place for place, event in enumerate(events) if event.kind == "driver-load"]
    return list(events[loads[-1] + 1 :]) if loads else list(events)


def reset_commands(action: str, address: str | None) -> list[str]:
    return {
        "reset": [
            REPORT,
            f"sudo nvidia-smi --gpu-reset -i {word(address)}" if address else REBOOT,
        ],
        "reboot": [REPORT, REBOOT],
        "off": [REPORT, "sudo poweroff"],
        "report": [REPORT],
    }.get(action, [])
