"""Which GPUs and MIG instances a container gets: the user's choice, held against the machine. Pure."""

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
_LONGEST = 4096  # characters of a choice


class ChosenDevice(NamedTuple):
    """A GPU or a MIG instance."""

    uuid: str
    number: int | None  # nvidia-smi's, of a GPU; a MIG instance has none of its own
    gpu: str  # the UUID of the GPU that it is, or is a part of

    @property
    def label(self) -> str:
        return self.uuid if self.number is None else f"GPU {self.number}"


class ChosenGpus(NamedTuple):
    """How they get in, and how many device nodes have to arrive."""

    wiring: Wiring
    nodes: int


def choose(words: str, engine: EngineName, wiring: Wiring, snapshot: Snapshot) -> ChosenGpus:
    """words: "0,1", "GPU-…", "MIG-…". wiring: of all GPUs.

    Raises UsageError for what this machine has not, CouldNotLook where its GPUs are not known, Cannot where
    the CDI specification does not name one.
    """
    devices = find(words, snapshot)
    if wiring.kind == "none":
        raise UsageError(f"--gpus {words}: {engine} was set up without GPUs", "leave it out")
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
    labels = ", ".join(device.label for device in devices)
    nodes = len({device.gpu for device in devices})
    return ChosenGpus(
        msgspec.structs.replace(
            wiring,
            arguments=arguments,
            environment=environment,
            sentence=f"{wiring.sentence}: {labels}",
            chosen=[device.uuid for device in devices],
        ),
        min(nodes, 1) if on_wsl(SnapshotView(snapshot)) else nodes,
    )


def find(words: str, snapshot: Snapshot) -> list[ChosenDevice]:
    """The devices that are meant, in the order in which they are named. Raises UsageError, CouldNotLook."""
    try:
        gpus = SnapshotView(snapshot).gpus
    except CannotJudge as why:
        raise CouldNotLook(
            f"--gpus {words[:80]}: this machine's GPUs are not known: {why}"
        ) from None
    there = [device for gpu in gpus for device in _devices(gpu)]
    found: list[ChosenDevice] = []
    for word in words[:_LONGEST].split(","):
        device = _named(word.strip(), there, words)
        if device in found:
            raise UsageError(f"--gpus {words[:80]}: {device.label} is named twice")
        found.append(device)
    return found


def _named(word: str, there: Sequence[ChosenDevice], words: str) -> ChosenDevice:
    index = int(word) if word.isascii() and word.isdecimal() and len(word) < 5 else None
    for device in there:
        if (index is not None and device.number == index) or device.uuid.lower() == word.lower():
            parts = [one.uuid for one in there if one.gpu == device.gpu and one != device]
            if device.number is not None and parts:
                raise UsageError(
                    f"--gpus {words[:80]}: {device.label} is divided by MIG, and its instances are chosen",
                    f"name them by UUID: {','.join(parts)}",
                )
            return device
    have = ", ".join(_shown(device) for device in there) or "none"
    raise UsageError(
        f"--gpus {words[:80]}: this machine has no GPU {word[:60]!r}",
        f"nvidia-smi's numbers and UUIDs are taken, with commas; there are {have}",
    )


def _shown(device: ChosenDevice) -> str:
    return device.uuid if device.number is None else f"{device.number} ({device.uuid})"


def _devices(gpu: Gpu) -> list[ChosenDevice]:
    """The GPU, and its MIG instances."""
    uuid = known(gpu.uuid)
    if not uuid:
        return []
    instances = (known(gpu.mig_instances) or []) if known(gpu.mig_enabled) else []
    parts = [known(one.uuid) for one in instances]
    whole = ChosenDevice(uuid, known(gpu.index), uuid)
    return [whole, *(ChosenDevice(part, None, uuid) for part in parts if part)]


def _of_cdi(wiring: Wiring, devices: list[ChosenDevice], snapshot: Snapshot) -> list[str]:
    """By the names that the specification has: NVIDIA's has indices, and UUIDs where it is newer."""
    kind = wiring.arguments[1].partition("=")[0]
    probe = snapshot.machine.containers
    specs = (known(probe.facts.cdi_specs) or []) if probe is not None and probe.facts else []
    listed = [known(spec.devices) for spec in specs if known(spec.kind) == kind]
    names = {name for each in listed for name in each or []}
    arguments = []
    for device in devices:
        possible = [device.uuid, *([] if device.number is None else [str(device.number)])]
        name = next((one for one in possible if one in names), "")
        if not name:
            raise Cannot(
                f"no CDI specification of {kind} has a device for {device.label} ({device.uuid})",
                "make it anew: sudo nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml",
            )
        arguments += ["--device", f"{kind}={name}"]
    return arguments
