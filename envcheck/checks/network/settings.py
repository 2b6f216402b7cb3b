"""Checks on NCCL's and its peers' settings: names that are not here, and fast ways switched off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.base import ProgramSetting
from ...facts.network import Network, NetworkInterface
from ..declared import declared_causes, declared_rows
from ..reading import Skip, SnapshotView, fact, is_absent, known, need
from ..settings import (
    Conditions,
    about_setting,
    change_setting,
    in_words,
    wrong_here,
)
from ..target import installed_if_known
from ..verdicts import Finding, Params, Passed, Verdicts, about, check
from . import common
from .horovod import built_with
from .known_bad import nccl_here

CAUSE = declared_causes(__name__)


def matches(value: str) -> Callable[[str], bool]:
    """Which names a value of NCCL_SOCKET_IFNAME means: prefixes, "=" for whole names, "^" for all others."""
    inverted = value.startswith("^")
    value = value.removeprefix("^")
    exact = value.startswith("=")
    words = [word for word in value.removeprefix("=").split(",") if word]

    def is_meant(name: str) -> bool:
        listed = name in words if exact else name.startswith(tuple(words))
        return (listed or not words) != inverted

    return is_meant


def _by_name(value: str) -> Callable[[str], bool]:
    return lambda name: name in value.split(",")


def _by_mpi(value: str) -> Callable[[str], bool]:
    """Open MPI takes networks, too: whether one is here is not known."""
    return lambda name: "/" in value or name in value.split(",")


def _by_ucx(value: str) -> Callable[[str], bool]:
    names = [one.partition(":")[0] for one in value.split(",")]
    return lambda name: value == "all" or name in names


_SOCKET = "NCCL_SOCKET_IFNAME"
_MPI = "Open MPI ends with 'None of the TCP networks specified' or hangs"
# {variable: (what its value means, what comes of one that names nothing that is here)}
_READERS: dict[str, tuple[Callable[[str], Callable[[str], bool]], str]] = {
    _SOCKET: (matches, "NCCL ends with 'no socket interface found'"),
    "GLOO_SOCKET_IFNAME": (_by_name, "Gloo ends with 'Unable to find address for'"),
    "TP_SOCKET_IFNAME": (_by_name, "PyTorch's RPC ends with 'Unable to find address for'"),
    "HOROVOD_GLOO_IFACE": (_by_name, "Horovod's Gloo ends with 'Unable to find address for'"),
    "OMPI_MCA_btl_tcp_if_include": (_by_mpi, _MPI),
    "OMPI_MCA_oob_tcp_if_include": (_by_mpi, _MPI),
    "UCX_NET_DEVICES": (_by_ucx, "UCX ends with 'network device is not available'"),
}
# Of Ray from 2.1 up to 2.3, in worker processes that have no such variable.
_RAYS = ProgramSetting(name=_SOCKET, value="en,eth,bond", source="Ray Train")
_RAY_RELEASES = (Version("2.1"), Version("2.3"))


@check("NET-001")
def named_interfaces(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    settings = {one.name: one for one in need(facts.settings, "NCCL's settings") if one.value}
    interfaces = need(facts.interfaces, "the network interfaces")
    judged = [settings[name] for name in _READERS if name in settings]
    adapters = [
        NetworkInterface(name=device.name, up=common.is_active(port))
        for device, port in common.each_port(facts)
    ]
    ray = installed_if_known(view).get("ray")
    release = parse_version(ray.version) if ray else None
    if release and _SOCKET not in settings and _RAY_RELEASES[0] <= release < _RAY_RELEASES[1]:
        judged.append(_RAYS)
    if not judged:
        raise Skip("no variable names an interface")
    for one in judged:
        named = [*interfaces, *adapters] if one.name == "UCX_NET_DEVICES" else interfaces
        yield from _interface(view, one, named)
    yield Passed(", ".join(map(in_words, judged)))


def _interface(
    view: SnapshotView, one: ProgramSetting, interfaces: list[NetworkInterface]
) -> Iterator[Finding]:
    meaning, then = _READERS[one.name]
    meant = [interface for interface in interfaces if meaning(one.value)(interface.name)]
    if any(map(common.usable, meant)):
        return
    good = common.best(interfaces)
    value = "" if good is None else good.name
    others = [each.name for each in interfaces if known(each.kind) != "loopback"]
    shown = ", ".join(others) or "only lo"
    why = f"this machine has {shown}"
    if meant:
        down = [each.name for each in meant if known(each.up) is False or not known(each.running)]
        named = sorted(down or [each.name for each in meant])
        verb = "is" if len(named) == 1 else "are"
        why = f"{', '.join(named)} {verb} {'down' if down else 'without an address'}"
    elif one.value.startswith("^") and one.name != _SOCKET:
        why = f"it takes names of interfaces, and no ^; {why}"
    found = view.evidence("seen.network.interfaces", shown)
    if one is _RAYS:
        given: Params = {
            "version": installed_if_known(view)["ray"].version,
            "setting": f"{one.name}={one.value}",
            "env": f'{{"env_vars": {{"{one.name}": "{value}"}}}}',
        }
        yield CAUSE["ray-names-no-interface"].found(
            about("package", "ray"), [found], why=why, then=then, **given
        )
        return
    yield CAUSE["interface-not-usable"].found(
        about_setting(one),
        [view.evidence("seen.network.settings", in_words(one)), found],
        advice=change_setting(one, "Name the interface that leads to the other machines", value),
        setting=in_words(one),
        why=why,
        then=then,
    )


_CHOOSES_GID = Version("2.21")
_PORT = re.compile(r":\d+")  # of an adapter in NCCL_IB_HCA
_ROWS = declared_rows(__name__, "NET-003")


@check("NET-003")
def fast_ways(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    settings = need(facts.settings, "NCCL's settings")
    if not settings:
        raise Skip("nothing is set")
    yield from wrong_here(view, _ROWS, "seen.network.settings", settings, _conditions(view, facts))
    yield from _first_gid(view, facts)
    yield Passed("nothing that this machine has is switched off")


def _first_gid(view: SnapshotView, facts: Network) -> Iterator[Finding]:
    old = next((one for one in nccl_here(view) if one.version < _CHOOSES_GID), None)
    alone = common.setting(facts, "MASTER_ADDR") is None and not common.spans_machines(facts)
    if old is None or alone or common.setting(facts, "NCCL_IB_GID_INDEX"):
        return
    roce = [one for one in common.fabric(facts) if not common.is_infiniband(one[1])]
    routed = {common.named([one]): known(one[1].routed_gids) for one in roce}
    ports = [name for name, entries in routed.items() if entries and 0 not in entries]
    if ports:
        index = max(routed[ports[0]] or [])
        yield CAUSE["gid-of-old-nccl"].found(
            about("variable", "NCCL_IB_GID_INDEX"),
            [old.evidence, view.evidence("machine.network.rdma", f"RoCE v2 at {index}")],
            commands=[f"export NCCL_IB_GID_INDEX={index}", "show_gids"],
            version=str(old.version),
            ports=", ".join(ports),
        )


def _conditions(view: SnapshotView, facts: Network) -> Conditions:
    ports, found = common.fabric(facts), common.gpus(view)
    adapters = [device.name for device, _port in ports]
    usable = [one for one in known(facts.interfaces) or [] if known(one.kind) != "loopback"]
    hca, gid = common.setting(facts, "NCCL_IB_HCA"), common.setting(facts, "NCCL_IB_GID_INDEX")
    index = int(gid.value) if gid is not None and gid.value.isdecimal() else -1
    roce = [one for one in ports if not common.is_infiniband(one[1])]

    def without(family: str) -> str:
        lacking = bool(usable) and all(known(getattr(one, family)) is False for one in usable)
        return ", ".join(one.name for one in usable) if lacking else ""

    def no_gid(field: str) -> str:
        tables = [(one, known(getattr(one[1], field))) for one in roce]
        return common.named([one for one, table in tables if table and index not in table])

    return {
        "gpus": lambda: len(found) > 1 or common.spans_machines(facts),
        "machines": lambda: str(known(facts.nodes)) if common.spans_machines(facts) else "",
        "p2p": lambda: _direct_way(view),
        "no-p2p": lambda: "" if len(found) < 2 or _direct_way(view) else _no_way(view),
        "rdma": lambda: common.named(ports),
        "no-rdma": lambda: (
            (known(facts.rdma) is not None or is_absent(facts.rdma))
            and not any(common.is_active(port) for _device, port in common.each_port(facts))
        ),
        "data-centre": lambda: common.for_data_centres(view),
        "hca-unknown": lambda: (
            ""
            if hca is None or any(map(matches(_PORT.sub("", hca.value)), adapters))
            else common.named(ports)
        ),
        "no-ipv4": lambda: without("ipv4"),
        "no-ipv6": lambda: without("ipv6"),
        "gid-empty": lambda: no_gid("gids"),
        "gid-local": lambda: no_gid("routed_gids"),
        "mpi": lambda: "mpi" in built_with(view) or bool(common.setting(facts, "OMPI_MCA_pml")),
    }


def _direct_way(view: SnapshotView) -> str:
    """What GPUs reach each other by without the host's memory; "" where they do not."""
    found = common.gpus(view)
    linked = [gpu for gpu in found if any(known(link.active) for link in known(gpu.nvlinks) or [])]
    if len(linked) > 1:
        return "NVLink"
    direct = any(known(pair.p2p_read) == "ok" for pair in fact(view.seen.nvml, "pairs") or [])
    return "direct transfers between the GPUs" if direct and len(found) > 1 else ""


def _no_way(view: SnapshotView) -> str:
    states = {known(pair.p2p_read) or "" for pair in fact(view.seen.nvml, "pairs") or []}
    return ", ".join(sorted(states - {""}))
