"""The machine as an SVG: its devices by socket and switch, their links, and what is wrong where.

Heights and rows are computed here; templates/machine/picture.svg draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .html import part, width_of
from .topology import MachineDevice, Topology, gib, worst

_GPU, _NIC, _FAULT, _CHIPS = 44.0, 28.0, 19.0, 24.0  # heights
_GAP, _APART, _TOP = 9.0, 26.0, 4.0
_FAULTS, _INSTANCES = 3, 7  # shown of a device
_MOST = 64  # devices of a kind that are drawn
_SMALL = 11 / 12  # the width of a small character, beside that of a plot's


class DeviceRow(NamedTuple):
    device: MachineDevice
    y: float
    base: float  # height without instances and faults
    height: float
    bridge: str  # that it shares with another device

    @property
    def middle(self) -> float:
        return self.y + self.base / 2


class NodeBlock(NamedTuple):
    """A NUMA node, or the whole machine (None), with what is attached to it."""

    node: int | None
    rows: list[DeviceRow]
    top: float
    bottom: float
    title: str
    lines: list[str]  # below the title
    bridges: dict[str, list[DeviceRow]]


def picture(found: Topology) -> str:
    """An SVG with its text alternative; its style is in machine.css."""
    blocks = _blocks(found)
    rows = [row for block in blocks for row in block.rows if row.device.kind == "gpu"]
    has_fabric = bool(found.switches) or any(gpu.nvlinks is not None for gpu in found.gpus)
    linked = [row for row in rows if row.device.nvlinks is not None]
    return part(
        "machine/picture.svg",
        found=found,
        blocks=blocks,
        bridged=any(block.bridges for block in blocks),
        fabric=(linked or rows or [None]) if has_fabric else [],
        linked=linked,
        height=blocks[-1].bottom + _TOP,
        faults=_FAULTS,
        instances=_INSTANCES,
        worst=worst,
        about=_in_words(found),
    )


def _blocks(found: Topology) -> list[NodeBlock]:
    """From top to bottom; in each, what shares a bridge together."""
    devices = [*found.gpus[:_MOST], *found.nics[:_MOST]]
    shared = _shared_bridges(devices)
    nodes = sorted({one.node for one in devices if one.node is not None and one.node >= 0})
    if found.gpus and all(gpu.node is None for gpu in found.gpus):
        nodes = []  # the adapters' nodes alone would say that the GPUs are elsewhere
    elsewhere = [one for one in devices if one.node not in nodes]
    members: dict[int | None, list[MachineDevice]] = {
        node: [one for one in devices if one.node == node] for node in nodes
    }
    if elsewhere or not nodes:
        members[None] = elsewhere
    blocks, y = [], _TOP
    for node, of_it in members.items():
        block = _block(node, _together(of_it, shared), y, found)
        blocks.append(block)
        y = block.bottom + _APART
    return blocks


def _block(
    node: int | None, members: list[tuple[str, MachineDevice]], top: float, found: Topology
) -> NodeBlock:
    rows: list[DeviceRow] = []
    bridges: dict[str, list[DeviceRow]] = {}
    y = top
    for bridge, one in members:
        if rows and rows[-1].bridge != bridge:
            y += _GAP
        base = _GPU if one.kind == "gpu" else _NIC
        height = base + (_CHIPS if one.instances is not None else 0.0)
        height += _FAULT * min(len(one.faults), _FAULTS + 1)
        rows.append(DeviceRow(one, y, base, height, bridge))
        if bridge:
            bridges.setdefault(bridge, []).append(rows[-1])
        y += height + _GAP
    if not found.gpus:
        y += _GPU + _GAP  # for the empty place
    bottom = max(y - _GAP, top + 60.0)
    lines = _wrapped(found.cpu, 118.0) if bottom - top > 80 else []
    lines += [f"{gib(found.memory_mib)} of memory"] if node is None and found.memory_mib else []
    lines = lines[: max(0, int((bottom - top - 40) / 15))]
    title = "This machine" if node is None else f"NUMA node {node}"
    return NodeBlock(node, rows, top, bottom, title, lines, bridges)


def _shared_bridges(devices: Sequence[MachineDevice]) -> dict[str, str]:
    """By a device's address, the nearest bridge above it that is above another slot, too."""
    slots: dict[str, set[str]] = {}
    for device in devices:
        for bridge in device.bridges:
            slots.setdefault(bridge, set()).add(device.slot)
    return {
        device.address or device.title: next(
            (bridge for bridge in reversed(device.bridges) if len(slots[bridge]) > 1), ""
        )
        for device in devices
    }


def _together(
    devices: Sequence[MachineDevice], shared: dict[str, str]
) -> list[tuple[str, MachineDevice]]:
    """Each device with its bridge, in the order of the bridges' first devices."""
    groups: dict[object, list[tuple[str, MachineDevice]]] = {}
    for place, one in enumerate(devices):
        bridge = shared.get(one.address or one.title, "")
        groups.setdefault(bridge or place, []).append((bridge, one))
    return [pair for members in groups.values() for pair in members]


def _wrapped(words: str, width: float) -> list[str]:
    """In up to four lines."""
    lines: list[str] = []
    for word in words.split()[:12]:
        if lines and width_of(f"{lines[-1]} {word}") * _SMALL <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines[:4]


def _in_words(found: Topology) -> str:
    """The text alternative; the table below the picture has all of it."""
    parts = ["1 GPU" if len(found.gpus) == 1 else f"{len(found.gpus)} GPUs"]
    parts += [f"{len(found.switches)} NVSwitches"] if found.switches else []
    parts.append(
        f"{len(found.nics)} network adapters" if found.nics else "no network adapter known"
    )
    wrong = [
        f"{one.title}: " + ", ".join(f"{fault.code} {fault.words}" for fault in one.faults)
        for one in (*found.gpus, *found.switches, *found.nics)
        if one.faults
    ]
    return f"{', '.join(parts)}. {'Wrong: ' + '; '.join(wrong) if wrong else 'Nothing is marked'}."
