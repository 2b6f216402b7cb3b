"""Which GPUs CUDA_VISIBLE_DEVICES leaves to the target, by CUDA's own rules."""

from __future__ import annotations

import re
from typing import NamedTuple

from ..facts.base import known
from ..facts.gpu import CudaDevice, Gpu
from ..facts.missing import CannotJudge
from ..facts.view import SnapshotView, fact, need
from .target import variables_if_known

VARIABLE = "CUDA_VISIBLE_DEVICES"
MIG_INSTANCE = "MIG instance"  # in the place of a device's name


class VisibleDevice(NamedTuple):
    """A GPU as CUDA enumerates it; "" is not known."""

    name: str
    address: str
    uuid: str
    capability: str


class VisibleDevices(NamedTuple):
    """The devices that the variable leaves.

    chosen: the devices before the first entry that names none. stopped_at: that entry, or None.
    certain: every entry could be judged, and it is known which device each one means.
    """

    chosen: list[VisibleDevice]
    stopped_at: str | None
    certain: bool


def devices(view: SnapshotView) -> tuple[list[VisibleDevice], bool]:
    """(the GPUs that the target has, whether they stand in CUDA's order), without CUDA_VISIBLE_DEVICES.

    From libcuda itself, else from the driver's list, whose order is CUDA's only where all GPUs are
    identical or CUDA_DEVICE_ORDER says so. Raises CannotJudge where neither is known.
    """
    listed: list[CudaDevice] = fact(view.seen.cuda, "devices") or []
    if listed:
        return [_device(one) for one in sorted(listed, key=lambda device: device.ordinal)], True
    gpus = sorted(map(_device, view.seen_gpus), key=lambda gpu: gpu.address)
    by_bus = variables_if_known(view).get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"
    return gpus, by_bus or len({gpu.name for gpu in gpus}) < 2


def _device(one: CudaDevice | Gpu) -> VisibleDevice:
    facts = (one.name, one.pci_address, one.uuid, one.compute_capability)
    return VisibleDevice(*(known(fact) or "" for fact in facts))


def visible(view: SnapshotView) -> VisibleDevices:
    """What the target's frameworks may use: all devices, or those that the variable leaves.

    Raises CannotJudge where the machine's GPUs are not known.
    """
    everything, ordered = devices(view)
    value = setting(view)
    if value is None:
        return VisibleDevices(everything, None, True)
    return choose(value, everything, ordered, _instances(view), view.snapshot.redacted)


def capabilities(view: SnapshotView) -> list[str]:
    try:
        return sorted({device.capability for device in visible(view).chosen if device.capability})
    except CannotJudge:
        return []


def setting(view: SnapshotView) -> str | None:
    """The variable's value in the target, else where envcheck runs; None where it is not set or not known."""
    if view.snapshot.target is None:
        here: str | None = fact(view.machine.cuda, "visible_devices")
        return here
    return variables_if_known(view).get(VARIABLE)


def choose(
    value: str,
    everything: list[VisibleDevice],
    ordered: bool = True,
    instances: list[str] | None = None,
    redacted: bool = False,
) -> VisibleDevices:
    """Read the variable as CUDA does: entry by entry, up to the first that names no device.

    instances: the UUIDs of MIG instances, None where they are not known. redacted: UUIDs are tokens,
    a shortened one has its long one's token, and so they are equal or they differ.
    """
    chosen: list[VisibleDevice] = []
    certain = True
    for entry in (part.strip() for part in value.split(",")):
        found: VisibleDevice | None = None
        if re.fullmatch(r"\+?\d+", entry):
            found = everything[int(entry)] if int(entry) < len(everything) else None
            certain = certain and ordered
        elif entry.startswith("MIG-"):
            if instances is None:
                certain = False
                found = VisibleDevice(MIG_INSTANCE, "", entry, "")
            elif any(_means(entry, uuid, redacted) for uuid in instances):
                found = VisibleDevice(MIG_INSTANCE, "", entry, "")
        elif entry.startswith("GPU-"):
            matches = [device for device in everything if _means(entry, device.uuid, redacted)]
            if not matches and not all(device.uuid for device in everything):
                certain = False
                matches = [VisibleDevice("", "", entry, "")]
            found = matches[0] if len(matches) == 1 else None
        if found is None:
            return VisibleDevices(chosen, entry, certain)
        if found in chosen:  # what CUDA makes of a device that is named twice is not written down
            certain = False
        chosen.append(found)
    return VisibleDevices(chosen, None, certain)


def _means(entry: str, uuid: str, redacted: bool) -> bool:
    return bool(uuid) and (entry == uuid or (not redacted and uuid.startswith(entry)))


def _instances(view: SnapshotView) -> list[str] | None:
    """UUIDs of the MIG instances on all GPUs; None where those of one are not known."""
    found: list[str] = []
    try:
        for gpu in view.seen_gpus:
            if known(gpu.mig_enabled) is not False:
                instances = need(gpu.mig_instances, "MIG instances")
                found += [need(one.uuid, "its UUID") for one in instances]
    except CannotJudge:
        return None
    return found
