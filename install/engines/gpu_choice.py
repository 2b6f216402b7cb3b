"""Which GPUs and MIG instances a container gets: the user's choice, checked against the machine. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ...checks.driver_state import on_wsl
from ...exit_codes import Cannot, CouldNotLook, UsageError
from ...facts.base import known
from ...facts.gpu import Gpu
from ...facts.missing import CannotJudge
from ...facts.snapshot import Snapshot
from ...facts.view import SnapshotView
from ..engine import EngineName, Wiring

ALL = "all"


class ChosenDevice(NamedTuple):
    """A GPU or a MIG instance."""

    uuid: str
    number: int | None  # nvidia-smi's, of a GPU
    gpu: str  # the UUID of the GPU that it is, or is a part of

    @property
    def label(self) -> str:
        return self.uuid if self.number is None else f"GPU {self.number}"


class ChosenGpus(NamedTuple):
    wiring: Wiring
    nodes: int  # device nodes that have to be in the container


def choose(text: str, engine: EngineName, wiring: Wiring, snapshot: Snapshot) -> ChosenGpus:
    """text: "0,1", "GPU-…", "MIG-…". wiring: of all GPUs.

    Raises UsageError for GPUs that are not here, CouldNotLook if this machine's are not known, Cannot if the
    CDI specification does not have one.
    """
    devices = find(text, snapshot)
    if wiring.kind == "none":
        raise UsageError(f"--gpus {text}: {engine} was set up without GPUs", "leave it out")
    uuids = ",".join(device.uuid for device in devices)
    arguments, environment = wiring.arguments, dict(wiring.environment)
    if wiring.kind == "cdi":
        arguments = _of_cdi(wiring, devices, snapshot)
    elif wiring.kind == "gpus":  # docker reads the value as CSV
        arguments = ["--gpus", f'"device={uuids}"']
    elif wiring.kind == "nv":
        environment["CUDA_VISIBLE_DEVICES"] = uuids
    else:
        environment["NVIDIA_VISIBLE_DEVICES"] = uuids
    chosen = msgspec.structs.replace(
        wiring,
        arguments=arguments,
        environment=environment,
        sentence=f"{wiring.sentence}: {', '.join(device.label for device in devices)}",
    )
    nodes = len({device.gpu for device in devices})
    return ChosenGpus(chosen, min(nodes, 1) if on_wsl(SnapshotView(snapshot)) else nodes)


def find(text: str, snapshot: Snapshot) -> list[ChosenDevice]:
    """The devices that are named, in that order. Raises UsageError, CouldNotLook."""
    option = f"--gpus {text[:80]}"
    try:
        gpus = SnapshotView(snapshot).gpus
    except CannotJudge as why:
        raise CouldNotLook(f"{option}: this machine's GPUs are not known: {why}") from None
    present = [device for gpu in gpus for device in _devices(gpu)]
    found: list[ChosenDevice] = []
    for word in text[:4096].split(","):
        device = _named(word.strip(), present, option)
        if device in found:
            raise UsageError(f"{option}: {device.label} is named twice")
        found.append(device)
    return found


def _named(word: str, present: Sequence[ChosenDevice], option: str) -> ChosenDevice:
    index = int(word) if word.isascii() and word.isdecimal() and len(word) < 5 else None
    for device in present:
        if (index is not None and device.number == index) or device.uuid.lower() == word.lower():
            parts = [one.uuid for one in present if one.gpu == device.gpu and one != device]
            if device.number is not None and parts:
                raise UsageError(
                    f"{option}: {device.label} is divided by MIG: choose its instances",
                    f"name them by UUID: {','.join(parts)}",
                )
            return device
    known_ones = ", ".join(
        one.uuid if one.number is None else f"{one.number} ({one.uuid})" for one in present
    )
    raise UsageError(
        f"{option}: this machine has no GPU {word[:60]!r}",
        f"use nvidia-smi's numbers or UUIDs, separated by commas: {known_ones or 'there are none'}",
    )


def _devices(gpu: Gpu) -> list[ChosenDevice]:
    """The GPU, and its MIG instances."""
    uuid = known(gpu.uuid)
    if not uuid:
        return []
    instances = (known(gpu.mig_instances) or []) if known(gpu.mig_enabled) else []
    parts = filter(None, (known(one.uuid) for one in instances))
    whole = ChosenDevice(uuid, known(gpu.index), uuid)
    return [whole, *(ChosenDevice(part, None, uuid) for part in parts)]


def _of_cdi(wiring: Wiring, devices: list[ChosenDevice], snapshot: Snapshot) -> list[str]:
    """By the specification's names: NVIDIA's has indices, and UUIDs if it is newer."""
    kind = wiring.arguments[1].partition("=")[0]
    probe = snapshot.machine.containers
    specs = (known(probe.facts.cdi_specs) or []) if probe is not None and probe.facts else []
    listed = [known(spec.devices) for spec in specs if known(spec.kind) == kind]
    names = {name for each in listed for name in each or []}
    arguments = []
    for device in devices:
        name = next((one for one in (device.uuid, str(device.number)) if one in names), None)
        if name is None:
            raise Cannot(
                f"no CDI specification of {kind} has a device for {device.label} ({device.uuid})",
                "make it anew: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            )
        arguments += ["--device", f"{kind}={name}"]
    return arguments
