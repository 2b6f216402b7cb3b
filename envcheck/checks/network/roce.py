"""The check on what makes Ethernet fit for RDMA, and has to be the same on all ports of a machine."""

from __future__ import annotations

from ...data import table
from ...facts.network import NetworkInterface, RdmaPort
from ..declared import declared_causes
from ..reading import Skip, SnapshotView, known
from ..verdicts import Passed, Verdicts, about_file, check, word
from . import common

CAUSE = declared_causes(__name__)


def _of_port(port: RdmaPort, interfaces: dict[str, NetworkInterface]) -> dict[str, str | None]:
    """{a setting of roce_settings.csv: its value}; None: not known."""
    first = interfaces.get(port.interfaces[0]) if port.interfaces else None
    mtu = known(first.mtu) if first is not None and known(first.up) else None
    pfc, ecn, gids = known(port.pfc), known(port.ecn), known(port.routed_gids)
    return {
        "mtu": None if mtu is None else str(mtu),
        "pfc": None if pfc is None else _numbers(pfc),
        "ecn": None if ecn is None else _numbers(ecn),
        "trust": known(port.trust),
        "gids": None if gids is None else "some" if gids else "none",
    }


def _numbers(found: list[int]) -> str:
    return ", ".join(map(str, found)) or "none"


@check("NET-014")
def ports_are_set_the_same(view: SnapshotView) -> Verdicts:
    ports = [one for one in common.serving_ports(view) if not common.is_infiniband(one[1])]
    if not ports:
        raise Skip("no active RoCE port that serves GPUs")
    facts = common.network(view)
    interfaces = {one.name: one for one in known(facts.interfaces) or []}
    for row in table("roce_settings"):
        values = [(one, _of_port(one[1], interfaces)[row["setting"]]) for one in ports]
        for (device, port), value, others, usual in common.odd_ports(
            values, len(common.gpus(view))
        ):
            states = " ".join(f"{n}:{'on' if str(n) in usual else 'off'}" for n in range(8))
            interface = word(port.interfaces[0] if port.interfaces else "INTERFACE")
            yield CAUSE["roce-port-set-differently"].found(
                about_file(f"/sys/class/infiniband/{device.name}/ports/{port.port}"),
                [view.evidence("machine.network.rdma", f"{device.name}: {row['what']} {value}")],
                commands=[
                    row["command"].format(interface=interface, usual=word(usual), map=states)
                ],
                port=common.named([(device, port)]),
                value=value,
                what=row["what"],
                others=common.named(others),
                usual=usual,
                effect=row["effect"],
            )
    yield Passed(f"{len(ports)} ports")
