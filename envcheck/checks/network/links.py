"""The check on the PCIe links of RDMA adapters."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import RdmaDevice
from ...facts.view import SnapshotView, facts_of, need
from ...findings.causes import Cause
from ...findings.model import Finding, Passed, Verdict
from ...findings.shell import word
from ..nvidia_devices import is_virtual
from ..on_the_bus import link_state
from ..registry import check
from .common import about_adapter, fabric

SLOW_LINK = Cause(
    "pcie-link-slow",
    "warn",
    headline="has too few PCIe lanes",
    sentence="{adapter}'s PCIe link runs at {what}: all that it sends and receives is slowed by it.",
    remedy="Reseat the adapter and its riser, or move it to a slot with all lanes.",
)


@check(
    "NET-011",
    title="RDMA adapters have all of their PCIe lanes",
    causes=[SLOW_LINK],
    about="An adapter that came up with fewer than it and its"
    " slot have, or at a lower speed than its like in this machine, is badly seated, in the wrong slot or"
    " behind a bad riser, and every collective waits for it. Judged on bare metal, of adapters with a port"
    " that serves GPUs; in a virtual machine slots are made up.",
    sources=("Linux kernel documentation, sysfs-bus-pci",),
)
def lanes(view: SnapshotView) -> Iterator[Verdict]:
    facts = facts_of(view.machine.network, "the network")
    need(facts.rdma, "RDMA adapters")
    if is_virtual(view):
        raise Skip("a virtual machine's slots are made up")
    adapters = list({device.name: device for device, _ in fabric(facts)}.values())
    adapters = [one for one in adapters if known(one.virtual_function) is not True]
    if not adapters:
        raise Skip("no active RDMA port that serves GPUs")
    judged = [one for one in adapters if known(one.link_width) is not None]
    if not judged:
        need(adapters[0].link_width, "the adapters' PCIe links")
    found = [finding for one in judged for finding in _link(view, one, judged)]
    yield from found
    if not found:
        widths = sorted({f"x{known(one.link_width)}" for one in judged})
        yield Passed(f"{len(judged)} at {', '.join(widths)}")


def _link(view: SnapshotView, one: RdmaDevice, every: list[RdmaDevice]) -> Iterator[Finding]:
    width, speed = known(one.link_width) or 0, known(one.link_gts) or 0
    most = min(known(one.max_link_width) or width, known(one.slot_max_link_width) or 99)
    board = known(one.board)
    like = [other for other in every if board and known(other.board) == board]
    fastest = max((known(other.link_gts) or 0 for other in like), default=0)
    usual = sum((known(other.link_gts) or 0) == fastest for other in like)
    if width < most:
        what = f"x{width}, while it and its slot have {most} lanes"
    elif speed < fastest and usual * 2 > len(like):
        what = f"{speed:g} GT/s, and {usual} like it at {fastest:g}"
    else:
        return
    address = known(one.address) or ""
    shown = f"{one.name}: x{width} of x{known(one.max_link_width)}, {speed:g} GT/s"
    yield SLOW_LINK.found(
        about_adapter(one, one.name),
        [view.evidence("machine.network.rdma", shown)],
        commands=[link_state(word(address))] if address else [],
        adapter=one.name,
        what=what,
    )
