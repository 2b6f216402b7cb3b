"""The table beside the picture: each device with its place, its links and its state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ...facts.base import known
from ...facts.snapshot import Snapshot
from .. import html_page as html
from ..html_page import PageSection
from ..machine import facts
from ..plain import WORDS
from ..plots.svg import text
from .picture import picture
from .topology import MachineDevice, Topology

_ROWS = 128
_PAIRS = 16  # GPUs of which each way is shown
_KEY = (
    "Lines are links: thick ones have many lanes. What is wrong is broken, red or amber, and has a shape"
    " (✕ in an octagon: failed, ! in a triangle: a warning) and its check's code."
)


def machine(snapshot: Snapshot, found: Topology) -> PageSection:
    parts = [
        html.plot(picture(found), "The machine and its links"),
        f'<p class="key">{text(_KEY)}</p>',
        _table(found),
        *_ways(snapshot, found),
    ]
    return PageSection("machine", "The machine", parts)


def _table(found: Topology) -> str:
    devices = [*found.gpus, *found.switches, *found.nics]
    if not devices:
        return ""
    columns = {
        "Device": [text(f"{one.title} {one.name}".strip()) for one in devices],
        "PCI address": [f'<span class="code">{text(one.address)}</span>' for one in devices],
        "NUMA node": ["" if one.node is None else str(one.node) for one in devices],
        "Link": [_link(one) for one in devices],
        "NVLinks": [_nvlinks(one) for one in devices],
        "MIG": [
            "" if one.instances is None else str(len(one.instances) or "on, none")
            for one in devices
        ],
        "State": [_state(one) for one in devices],
        "": [text(", ".join(one.notes)) for one in devices],
    }
    names = {"": "Told by it"}
    kept = {
        name: cells
        for name, cells in columns.items()
        if any(cells) and (name != "PCI address" or any(one.address for one in devices))
    }
    rows = [[(cell, "") for cell in row] for row in zip(*kept.values(), strict=True)]
    kinds = {"State": "wraps", "Device": "wraps"}
    table = html.markup_table(
        [(names.get(name, name), kinds.get(name, "")) for name in kept], rows[:_ROWS]
    )
    return html.details("The same as a table", table, is_open=False)


def _link(one: MachineDevice) -> str:
    more = f" (of {one.link.most})" if one.link.most else ""
    return text(one.link.now + more)


def _nvlinks(one: MachineDevice) -> str:
    return "" if one.nvlinks is None else f"{one.nvlinks[0]} of {one.nvlinks[1]}"


def _state(one: MachineDevice) -> str:
    if one.faults:
        told = [
            f"{html.state(fault.level, WORDS[fault.level])} {text(fault.code)} {text(fault.words)}"
            for fault in one.faults
        ]
        return "<br>".join(told)
    return html.state("skipped", "not listed") if one.gone else html.state("pass", WORDS["pass"])


def _ways(snapshot: Snapshot, found: Topology) -> Iterator[str]:
    """How GPUs reach each other, as nvidia-smi topo has it: one sentence where it is the same for all."""
    nvml = facts(snapshot.machine.nvml)
    pairs = known(nvml.pairs) if nvml is not None else None
    names = {one.address: one.title for one in found.gpus}
    told: dict[tuple[str, str], str] = {}
    for pair in pairs or []:
        if pair.first in names and pair.second in names:
            level, access = known(pair.level) or "?", known(pair.p2p_read) or ""
            word = level + ("" if access in ("", "ok") else f", no peer access: {access}")
            told[(pair.first, pair.second)] = told[(pair.second, pair.first)] = word
    if not told:
        return
    kinds = Counter(told.values())
    if len(kinds) == 1:
        yield html.paragraph(f"On PCIe each GPU reaches each other: {next(iter(kinds))}.", "quiet")
        return
    shown = [one for one in found.gpus if one.address][:_PAIRS]
    rows = [
        [
            (text(one.title), ""),
            *((text(told.get((one.address, other.address), "–")), "") for other in shown),
        ]
        for one in shown
    ]
    table = html.markup_table([("From, to", ""), *((one.title, "") for one in shown)], rows)
    yield html.details("How the GPUs reach each other on PCIe", table)
