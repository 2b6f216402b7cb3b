"""The machine as an SVG: what hangs on which socket and switch, by which links, and what is wrong where."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..plots import svg
from ..plots.svg import text
from .topology import DeviceFault, MachineDevice, Topology, gib, shared_bridges

_NODE, _BRIDGE, _CARD, _FABRIC = 138.0, 104.0, 316.0, 118.0  # widths
_TO_BRIDGE, _TO_CARD, _TO_FABRIC = 32.0, 104.0, 104.0  # what lies between them
_GPU, _NIC, _FAULT, _CHIPS = 44.0, 28.0, 19.0, 24.0  # heights
_GAP, _APART, _TOP = 9.0, 26.0, 4.0
_FAULTS = 3  # of a device that are told
_MOST = 64  # devices of a kind that are drawn
_INSTANCES = 7
_SMALL = 11 / 12  # of the width of a plot's characters

_SHAPES = {
    "fail": ("M-3-8h6l5 5v6l-5 5h-6l-5-5v-6z", "M-2.8-2.8l5.6 5.6m0-5.6l-5.6 5.6"),
    "warn": ("M0-8.4L8.6 7h-17.2z", "M0-3v4m0 2v.6"),
}


class _DeviceRow(NamedTuple):
    device: MachineDevice
    y: float
    height: float
    bridge: str

    @property
    def middle(self) -> float:
        return self.y + (_GPU if self.device.kind == "gpu" else _NIC) / 2


class _NodeBlock(NamedTuple):
    """A NUMA node, or the whole machine (None), with what hangs on it."""

    node: int | None
    rows: list[_DeviceRow]
    top: float
    bottom: float


def picture(found: Topology) -> str:
    """An SVG with its text alternative; its style is ``picture_style.STYLE``."""
    shared = shared_bridges([*found.gpus[:_MOST], *found.nics[:_MOST]])
    blocks, height = _placed(found, shared)
    bridged = any(shared.values())
    left = _NODE + _TO_CARD + (_TO_BRIDGE + _BRIDGE if bridged else 0.0)
    fabric = any(gpu.nvlinks is not None for gpu in found.gpus) or bool(found.switches)
    width = left + _CARD + (_TO_FABRIC + _FABRIC if fabric else 12.0)
    parts: list[str] = []
    for before, after in itertools.pairwise(blocks):
        x = _NODE / 2
        parts.append(f'<path class="wire" d="M{x:g} {before.bottom:g}V{after.top:g}"/>')
    for block in blocks:
        parts += _node(block, found)
        parts += _bridges(block, left, found)
        for row in block.rows:
            parts += _link(row, left)
            parts += _card(row, left)
        if not any(row.device.kind == "gpu" for row in block.rows) and not found.gpus:
            parts += _nothing(block, left, found)
    if fabric:
        parts += _fabric(found, blocks, left + _CARD)
    title = "The machine and its links"
    body = "\n".join(parts)
    return (
        f'<svg class="plot machine" xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}"'
        f' viewBox="0 0 {width:g} {height:g}" role="img" aria-labelledby="machine-title machine-about">'
        f'<title id="machine-title">{title}</title>'
        f'<desc id="machine-about">{text(_told(found))}</desc>\n{body}\n</svg>'
    )


def _placed(found: Topology, shared: dict[str, str]) -> tuple[list[_NodeBlock], float]:
    """The blocks from top to bottom; in each, what is under one bridge together."""
    devices = [*found.gpus[:_MOST], *found.nics[:_MOST]]
    nodes = sorted({one.node for one in devices if one.node is not None and one.node >= 0})
    if found.gpus and all(gpu.node is None for gpu in found.gpus):
        nodes = []  # of the adapters alone it would say that the GPUs are elsewhere
    keys: list[int | None] = [*nodes]
    elsewhere = [one for one in devices if one.node not in nodes]
    if elsewhere or not keys:
        keys.append(None)
    blocks, y = [], _TOP
    for key in keys:
        of_it = elsewhere if key is None else [one for one in devices if one.node == key]
        top = y
        rows: list[_DeviceRow] = []
        for bridge, one in _ordered(of_it, shared):
            if rows and rows[-1].bridge != bridge:
                y += _GAP
            height = _height(one)
            rows.append(_DeviceRow(one, y, height, bridge))
            y += height + _GAP
        if not found.gpus:
            y += _GPU + _GAP
        y = max(y - _GAP, top + 60.0)
        blocks.append(_NodeBlock(key, rows, top, y))
        y += _APART
    return blocks, y - _APART + _TOP


def _ordered(
    devices: Sequence[MachineDevice], shared: dict[str, str]
) -> Iterator[tuple[str, MachineDevice]]:
    """In the order of their first ones, those under one bridge together."""
    groups: dict[str, list[MachineDevice]] = {}
    for one in devices:
        bridge = shared.get(one.address or one.title, "")
        groups.setdefault(bridge or f"-{one.kind}-{one.address}-{one.title}", []).append(one)
    for key, members in groups.items():
        for one in members:
            yield "" if key.startswith("-") else key, one


def _height(one: MachineDevice) -> float:
    height = _GPU if one.kind == "gpu" else _NIC
    height += _CHIPS if one.instances is not None else 0.0
    return height + _FAULT * min(len(one.faults), _FAULTS + 1)


def _worst(faults: Sequence[DeviceFault]) -> str:
    return "" if not faults else "fail" if any(one.level == "fail" for one in faults) else "warn"


def _mark(kind: str, x: float, y: float) -> str:
    body, sign = _SHAPES[kind]
    return (
        f'<g class="fault {kind}" transform="translate({x:g} {y:g})">'
        f'<path class="m-body" d="{body}"/><path class="m-sign" d="{sign}"/></g>'
    )


def _words(words: str, x: float, y: float, width: float, kind: str = "", anchor: str = "") -> str:
    """Words with room for so much."""
    small = 1.0 if "name" in kind else _SMALL
    cut = text(svg.cut(words, width / small))
    of_kind = f' class="{kind}"' if kind else ""
    of_anchor = f' text-anchor="{anchor}"' if anchor else ""
    return f'<text x="{x:g}" y="{y:g}"{of_kind}{of_anchor}>{cut}</text>'


def _box(x: float, y: float, width: float, height: float, kind: str, radius: int = 8) -> str:
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="{radius}"/>'


def _node(block: _NodeBlock, found: Topology) -> Iterator[str]:
    height = block.bottom - block.top
    yield _box(1, block.top, _NODE - 1, height, "node")
    y = block.top + height / 2
    whole = block.node is None
    title = "This machine" if whole else f"NUMA node {block.node}"
    lines = _wrapped(found.cpu, _NODE - 20) if height > 80 else []
    if whole and found.memory_mib:
        lines.append(f"{gib(found.memory_mib)} of memory")
    lines = lines[: max(0, int((height - 40) / 15))]
    y -= 7.5 * len(lines) - 4
    yield _words(title, _NODE / 2, y, _NODE - 12, "name", "middle")
    for number, line in enumerate(lines, 1):
        yield _words(line, _NODE / 2, y + 2 + 15 * number, _NODE - 12, "quiet", "middle")


def _wrapped(words: str, width: float) -> list[str]:
    """In up to four lines."""
    lines: list[str] = []
    for word in words.split()[:12]:
        if lines and svg.width_of(f"{lines[-1]} {word}") * _SMALL <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines[:4]


def _bridges(block: _NodeBlock, left: float, found: Topology) -> Iterator[str]:
    spans: dict[str, list[_DeviceRow]] = {}
    for row in block.rows:
        if row.bridge:
            spans.setdefault(row.bridge, []).append(row)
    x = left - _TO_CARD - _BRIDGE
    for bridge, rows in spans.items():
        top, bottom = rows[0].y, rows[-1].y + rows[-1].height
        kind = _worst(found.bridge_faults.get(bridge, []))
        middle = (top + bottom) / 2
        yield f'<path class="wire thick" d="M{_NODE:g} {middle:g}H{x:g}"/>'
        yield _box(x, top, _BRIDGE, bottom - top, f"bridge {kind}")
        yield _words("PCIe switch", x + _BRIDGE / 2, middle - 2, _BRIDGE - 8, "", "middle")
        yield _words(_short(bridge), x + _BRIDGE / 2, middle + 13, _BRIDGE - 8, "quiet", "middle")
        if kind:
            yield _mark(kind, x + _BRIDGE - 6, top + 6)


def _short(address: str) -> str:
    """Of the first domain, which most machines have alone, the address without it."""
    return address.removeprefix("0000:")


def _link(row: _DeviceRow, left: float) -> Iterator[str]:
    one = row.device
    faults = one.faults_of("link")
    kind = _worst(faults)
    start = left - _TO_CARD if row.bridge else _NODE
    width = 1.2 + one.link.width / 8 if one.link.width else 1.2
    missing = " gone" if one.gone else ""
    y = row.middle
    yield (
        f'<path class="wire {kind}{missing}" d="M{start:g} {y:g}H{left:g}" stroke-width="{width:.1f}"/>'
    )
    middle = left - _TO_CARD / 2
    words, most = one.link.now, one.link.most
    if kind:
        yield _mark(kind, left - _TO_CARD + 13, y)
        middle += 10
    if words or kind:
        label = words or "this link"
        yield _words(label, middle, y - 7, _TO_CARD - 24, f"label {kind}", "middle")
    if most:
        yield _words(
            f"of {most}", middle, y + 15, _TO_CARD - 18, f"small {kind or 'quiet'}", "middle"
        )


def _card(row: _DeviceRow, left: float) -> Iterator[str]:
    one = row.device
    kind = _worst(one.faults)
    state = " gone" if one.gone else ""
    yield _box(left, row.y, _CARD, row.height, f"card {one.kind} {kind}{state}")
    x, right = left + 14, left + _CARD - 12
    base = row.y + 19
    title = svg.cut(one.title, 150.0)
    yield _words(title, x, base, 150, "name")
    after = x + svg.width_of(title) * 1.12 + 9
    if one.kind == "nic":
        yield _words(" · ".join(one.notes) or one.name, right, base, right - after, "quiet", "end")
    else:
        yield _words(one.name.removeprefix("NVIDIA "), after, base, right - after, "")
        told = [*one.notes, _short(one.address)]
        yield _words(" · ".join(filter(None, told)), x, base + 17, right - x, "quiet")
    y = row.y + (_GPU if one.kind == "gpu" else _NIC)
    if one.instances is not None:
        yield from _instances(one.instances, x, y - 3, right - x)
        y += _CHIPS
    for fault in one.faults[:_FAULTS]:
        yield _mark(fault.level, x + 7, y + 6)
        words = f"{fault.code} {fault.words}"
        yield _words(words, x + 21, y + 10, right - x - 19, f"label {fault.level}")
        y += _FAULT
    if (left_over := len(one.faults) - _FAULTS) > 0:
        yield _words(f"and {left_over} more", x + 21, y + 10, right - x - 19, f"label {kind}")


def _instances(sizes: Sequence[str], x: float, y: float, room: float) -> Iterator[str]:
    """The instances of MIG, a small box each."""
    yield _words("MIG", x, y + 14, 30, "quiet")
    if not sizes:
        yield _words("on, without an instance", x + 32, y + 14, room - 32, "quiet")
        return
    shown = sizes[:_INSTANCES]
    width = (room - 32) / len(shown) - 4
    for number, size in enumerate(shown):
        at = x + 32 + number * (width + 4)
        yield _box(at, y, width, 20, "chip", 5)
        yield _words(size.removesuffix("iB"), at + width / 2, y + 14, width - 2, "small", "middle")


def _nothing(block: _NodeBlock, left: float, found: Topology) -> Iterator[str]:
    """Where a GPU would be."""
    y = block.bottom - _GPU
    yield f'<path class="wire gone" d="M{_NODE:g} {y + _GPU / 2:g}H{left:g}"/>'
    yield _box(left, y, _CARD, _GPU, "card gone")
    words = "no NVIDIA GPU on the PCI bus" if found.gpus_known else "its GPUs are not known"
    yield _words(words, left + _CARD / 2, y + 27, _CARD - 20, "quiet", "middle")


def _fabric(found: Topology, blocks: Sequence[_NodeBlock], left: float) -> Iterator[str]:
    """What the GPUs' NVLinks lead to: switches, or each other."""
    rows = [row for block in blocks for row in block.rows if row.device.kind == "gpu"]
    linked = [row for row in rows if row.device.nvlinks is not None]
    ends = linked or rows
    x = left + _TO_FABRIC
    top = ends[0].y if ends else _TOP
    bottom = max(ends[-1].y + ends[-1].height if ends else 0.0, top + _GPU)
    for row in linked:
        yield from _nvlink(row, left, x)
    yield _box(x, top, _FABRIC, bottom - top, "fabric")
    middle = x + _FABRIC / 2
    if not found.switches:
        words = "NVLink"
        switched = any(row.device.fabric == "Completed" for row in linked)
        after = "by NVSwitches" if switched else "from GPU to GPU"
        yield _words(words, middle, (top + bottom) / 2 - 2, _FABRIC - 8, "name", "middle")
        yield _words(after, middle, (top + bottom) / 2 + 14, _FABRIC - 8, "quiet", "middle")
        return
    shown = found.switches[: max(1, int((bottom - top) / 21))]
    step = (bottom - top) / len(shown)
    height = min(step - 6, 44.0)
    for number, switch in enumerate(shown):
        y = top + step * (number + 0.5) - height / 2
        kind = _worst(switch.faults)
        yield _box(x + 6, y, _FABRIC - 12, height, f"switch {kind}", 6)
        over = number == len(shown) - 1 and len(found.switches) > len(shown)
        title = f"{len(found.switches) - number} NVSwitches" if over else "NVSwitch"
        if height > 32:
            yield _words(title, middle, y + height / 2 - 2, _FABRIC - 20, "", "middle")
            told = _short(switch.address)
            yield _words(told, middle, y + height / 2 + 13, _FABRIC - 20, "quiet", "middle")
        else:
            yield _words(title, middle, y + height / 2 + 4, _FABRIC - 20, "small", "middle")
        if kind:
            yield _mark(kind, x + _FABRIC - 10, y + 4)


def _nvlink(row: _DeviceRow, left: float, right: float) -> Iterator[str]:
    active, total = row.device.nvlinks or (0, 0)
    faults = row.device.faults_of("nvlink")
    kind = _worst(faults)
    y, middle = row.middle, (left + right) / 2
    gone = " gone" if not active else ""
    yield (
        f'<path class="wire nvlink {kind}{gone}" d="M{left:g} {y:g}H{right:g}"'
        f' stroke-width="{1.2 + active / 8:.1f}"/>'
    )
    if kind:
        yield _mark(kind, left + 13, y)
        middle += 10
    room = right - left - (24 if kind else 6)
    words = f"{active} NVLink{'' if active == 1 else 's'}"
    if active < total:
        words = f"{active} of {total}"
        yield _words("NVLinks up", middle, y + 15, room, f"small {kind or 'quiet'}", "middle")
    yield _words(words, middle, y - 7, room, f"label {kind}", "middle")


def _told(found: Topology) -> str:
    """The same for who does not see it; the table below the picture has all of it."""
    told = [f"{len(found.gpus)} GPUs" if len(found.gpus) != 1 else "1 GPU"]
    if found.switches:
        told.append(f"{len(found.switches)} NVSwitches")
    told.append(f"{len(found.nics)} network adapters" if found.nics else "no network adapter known")
    wrong = [
        f"{one.title}: " + ", ".join(f"{fault.code} {fault.words}" for fault in one.faults)
        for one in (*found.gpus, *found.switches, *found.nics)
        if one.faults
    ]
    return f"{', '.join(told)}. {'Wrong: ' + '; '.join(wrong) if wrong else 'Nothing is marked'}."
