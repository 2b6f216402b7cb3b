"""The profile against the network adapters: which there are, and what each has."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import Unavailable, known
from ...facts.missing import CouldNotRun
from ...facts.network import RdmaDevice
from ...facts.profile import Wanted
from ...facts.view import SnapshotView, show
from ...findings.model import Finding, Passed, Remedy, Unjudged, Verdict
from ...findings.shell import word
from ...findings.subjects import Subject
from ...profiles.fits import fits
from ...profiles.keys import COUNT, NAME, SECTIONS, adapter_name, adapters
from ..gpus import together
from ..registry import check
from .common import RAISED, held, told, wanted_tables, words_of


@check(
    "EXP-006",
    title="The network adapters are what the profile says",
    problem="the network adapters are not those of the profile",
    about="How many adapters for RDMA (InfiniBand, RoCE) of which boards a profile wants, and the driver,"
    " firmware, rate and state of each. Virtual functions are not counted.",
    sources=("the profile", "Linux kernel documentation, sysfs-class-infiniband"),
)
def adapters_are_as_expected(view: SnapshotView) -> Iterator[Verdict]:
    tables = wanted_tables(view, "nics")["nics"]
    devices = adapters(view)
    if isinstance(devices, Unavailable):
        raise CouldNotRun(f"the network adapters: {show(devices)}")
    found = [one for table in tables for one in _table(view, table, devices)]
    yield from together(found)
    if not found:
        yield Passed(f"{len(devices)} adapters, as the profile says")


def _table(
    view: SnapshotView, table: dict[str, Wanted], devices: list[RdmaDevice]
) -> Iterator[Finding | Unjudged]:
    name = table.get(NAME)
    meant = [
        device
        for device in devices
        if name is None
        or any(
            fits(name.value, called, "text")
            for called in (adapter_name(device), known(device.driver) or "")
        )
    ]
    count = table.get(COUNT, Wanted(">= 1"))
    if not fits(count.value, len(meant), "number"):
        listed = ", ".join(f"{one.name} ({adapter_name(one)})" for one in devices) or "none"
        yield Finding(
            "fail",
            told(
                view,
                f"adapters {words_of(name.value)}:" if name else "adapters:",
                count,
                len(meant),
            ),
            evidence=[view.evidence("machine.network.rdma", listed)],
            remedy=Remedy(
                f"Look for adapters without a driver. {RAISED}",
                [
                    "grep -l 0x15b3 /sys/bus/pci/devices/*/vendor",
                    "ls /sys/class/infiniband",
                    "cat /sys/class/infiniband/*/board_id",
                ],
            ),
        )
    keys = {key.name: key for key in SECTIONS["nics"].keys}
    for device in meant:
        for wanted in (name for name in table if name in keys):
            key = keys[wanted]
            address = known(device.address) or ""
            text = f"adapter {device.name}" + (f" at {address}" if address else "")
            fact = key.fact(device)
            shown = f"{device.name}: {known(fact)}"
            yield from held(
                view,
                key,
                table[wanted],
                fact,
                view.evidence("machine.network.rdma", shown),
                [Subject(kind="pci-device", text=text, name=device.name, address=address)],
                Remedy(
                    RAISED,
                    [f"grep . /sys/class/infiniband/{word(device.name)}/ports/*/{{rate,state}}"],
                ),
            )
