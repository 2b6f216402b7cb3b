"""The profile against the network adapters: which there are, and the attributes of each."""

from __future__ import annotations

from collections.abc import Iterator

from ...attributes.bounds import fits
from ...attributes.readers import adapter_name, adapters
from ...attributes.registry import COUNT, NAME, SECTIONS
from ...facts.network import RdmaDevice
from ...facts.profile import Wanted
from ..gpus import together
from ..reading import CouldNotRun, SnapshotView, Unavailable, known, show
from ..verdicts import Finding, Passed, Subject, Unjudged, Verdicts, check, word
from .common import DIFFERS, compared, differs, wanted_tables, words_of

_FIND = [
    "grep -l 0x15b3 /sys/bus/pci/devices/*/vendor",
    "ls /sys/class/infiniband",
    "cat /sys/class/infiniband/*/board_id",
]


@check(
    "EXP-006",
    title="The network adapters are what the profile says",
    causes=[DIFFERS],
    about="How many adapters for RDMA (InfiniBand, RoCE) of which boards a profile wants, and the driver,"
    " firmware, rate and state of each. Virtual functions are not counted.",
    sources=("the profile", "Linux kernel documentation, sysfs-class-infiniband"),
)
def adapters_are_as_expected(view: SnapshotView) -> Verdicts:
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
    meant = [device for device in devices if name is None or _is_called(device, name)]
    count = table.get(COUNT, Wanted(">= 1"))
    if not fits(count.value, len(meant), "number"):
        listed = ", ".join(f"{one.name} ({adapter_name(one)})" for one in devices) or "none"
        what = f"adapters {words_of(name.value)}:" if name else "adapters:"
        evidence = view.evidence("machine.network.rdma", listed)
        yield differs(view, what, count, len(meant), [], evidence, _FIND)
    keys = {key.name: key for key in SECTIONS["nics"].keys}
    for device in meant:
        address = known(device.address) or ""
        text = f"adapter {device.name}" + (f" at {address}" if address else "")
        subject = Subject(kind="pci-device", text=text, name=device.name, address=address)
        ports = f"grep . /sys/class/infiniband/{word(device.name)}/ports/*/{{rate,state}}"
        for wanted in (key for key in table if key in keys):
            fact = keys[wanted].fact(device)
            evidence = view.evidence("machine.network.rdma", f"{device.name}: {known(fact)}")
            yield from compared(
                view, keys[wanted], table[wanted], fact, evidence, [ports], [subject]
            )


def _is_called(device: RdmaDevice, name: Wanted) -> bool:
    names = (adapter_name(device), known(device.driver) or "")
    return any(fits(name.value, one, "text") for one in names)
