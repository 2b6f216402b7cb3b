"""Checks on the network interfaces that NCCL, Gloo and MPI take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import Network, NetworkInterface, NetworkSetting
from ...facts.view import SnapshotView, need
from ...findings.causes import Cause
from ...findings.commands import fill_in
from ...findings.model import Finding, Passed, Remedy, Verdict
from ...findings.shell import word
from ..driver_state import container
from ..registry import check
from .common import (
    NCCL_GUIDE,
    about_setting,
    best,
    change_setting,
    gpus,
    is_real,
    network,
    said,
    setting,
    setting_evidence,
    spans_machines,
    usable,
)
from .horovod import built_with


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
    names = value.split(",")
    return lambda name: name in names


# Who reads a variable, what its value means, and what comes of one that means nothing that is there.
_READERS: tuple[tuple[str, Callable[[str], Callable[[str], bool]], str], ...] = (
    ("NCCL_SOCKET_IFNAME", matches, "NCCL ends with 'no socket interface found'"),
    ("GLOO_SOCKET_IFNAME", _by_name, "Gloo ends with 'Unable to find address for'"),
    ("TP_SOCKET_IFNAME", _by_name, "PyTorch's RPC (TensorPipe) cannot start"),
    ("HOROVOD_GLOO_IFACE", _by_name, "Horovod's Gloo cannot start"),
    ("OMPI_MCA_btl_tcp_if_include", _by_name, "Open MPI has no TCP between machines"),
    ("OMPI_MCA_oob_tcp_if_include", _by_name, "Open MPI cannot start processes elsewhere"),
)


NO_INTERFACE = Cause(
    "interface-not-usable",
    "fail",
    headline="a setting names a network interface that is not here",
    sentence="{setting} means no network interface that could be used here ({why}): {then}.",
)
LOOPBACK = Cause(
    "loopback-first",
    "warn",
    headline="NCCL takes the loopback interface",
    sentence="{setting} does not exclude the loopback interface, and NCCL takes that first: processes on"
    " other machines cannot reach it, and all of them hang.",
)
NO_ADAPTER = Cause(
    "adapter-not-here",
    "warn",
    headline="a setting names an RDMA adapter that is not here",
    sentence="{setting} means no RDMA adapter of this machine, which has {adapters}: NCCL goes over TCP,"
    " several times slower.",
)
NO_ADDRESS = Cause(
    "address-family-not-here",
    "fail",
    headline="a setting asks for addresses that are not here",
    sentence="{setting} asks for addresses that no network interface here has: NCCL ends with 'no socket"
    " interface found'.",
)


@check(
    "NET-001",
    title="Settings name network interfaces and adapters that are here",
    causes=[NO_INTERFACE, LOOPBACK, NO_ADAPTER, NO_ADDRESS],
    about="NCCL_SOCKET_IFNAME, GLOO_SOCKET_IFNAME and their like say which interface traffic takes, and"
    " NCCL_IB_HCA which RDMA adapter. A name from another machine (eth0 where it is ens3), or an interface"
    " without a carrier, leaves none: NCCL and Gloo then stop with an error, and where only adapters are"
    " missing NCCL goes over TCP. NCCL's are prefixes; = stands for a whole name, ^ for all others: ^docker0"
    " alone leaves the loopback interface in, which comes first, and no other machine is reached by it. Read"
    " from the environment, from /etc/nccl.conf and from the user's file.",
    sources=(NCCL_GUIDE, "horovod#700", "NCCL 2.28, socket.cc: find or fail"),
)
def named_interfaces(view: SnapshotView) -> Iterator[Verdict]:
    facts = network(view)
    settings = need(facts.settings, "NCCL's settings")
    interfaces = need(facts.interfaces, "the network interfaces")
    names = {one.name for one in settings}
    readers = [one for one in _READERS if one[0] in names]
    if not readers and not names & {"NCCL_IB_HCA", "NCCL_SOCKET_FAMILY"}:
        raise Skip("no variable names an interface")
    found: list[Verdict] = []
    for name, meaning, then in readers:
        one = setting(facts, name)
        if one is not None:
            found += _named(view, one, interfaces, meaning(one.value), then)
    found += _named_adapters(view, facts)
    found += _family(view, facts, interfaces)
    yield from found
    if not found:
        yield Passed(", ".join(said(one) for one in settings if one.name in names and one.value))


def _named(
    view: SnapshotView,
    one: NetworkSetting,
    interfaces: list[NetworkInterface],
    is_meant: Callable[[str], bool],
    then: str,
) -> Iterator[Finding]:
    if any("/" in part for part in one.value.split(",")):
        return  # a subnet, of Open MPI's
    meant = [interface for interface in interfaces if is_meant(interface.name)]
    unmeant = one.value.startswith("^") or spans_machines(network(view))  # lo by itself is meant so
    good = best(interfaces)
    value = "" if good is None else good.name
    evidence = [
        *setting_evidence(view, one),
        view.evidence("seen.network.interfaces", _list(interfaces)),
    ]
    if not any(usable(interface) for interface in meant):
        why = (
            f"{', '.join(sorted(interface.name for interface in meant))} is down or has no address"
            if meant
            else f"this machine has {_list(interfaces)}"
        )
        name_it = "Name the interface that leads to the other machines"
        yield NO_INTERFACE.found(
            about_setting(one),
            evidence,
            advice=change_setting(one, name_it, value),
            setting=said(one),
            why=why,
            then=then,
        )
    elif (
        one.name == "NCCL_SOCKET_IFNAME"
        and known(meant[0].kind) == "loopback"
        and value
        and unmeant
    ):
        yield LOOPBACK.found(
            about_setting(one),
            evidence,
            advice=change_setting(one, "Name the interface, or exclude lo too", value),
            setting=said(one),
        )


def _list(interfaces: list[NetworkInterface]) -> str:
    return ", ".join(one.name for one in interfaces if known(one.kind) != "loopback") or "only lo"


def _named_adapters(view: SnapshotView, facts: Network) -> Iterator[Finding]:
    one = setting(facts, "NCCL_IB_HCA")
    if one is None:
        return
    adapters = [device.name for device in known(facts.rdma) or []]
    listed = ",".join(part.partition(":")[0] for part in one.value.split(","))
    if any(map(matches(listed), adapters)):
        return
    look = ["ls /sys/class/infiniband"] if adapters else []
    remedy = change_setting(one, "Take it away: NCCL then uses every adapter that is here")
    shown = view.evidence("seen.network.rdma", ", ".join(adapters))
    yield NO_ADAPTER.found(
        about_setting(one),
        [*setting_evidence(view, one), shown],
        advice=Remedy(remedy.text, [*remedy.commands, *look]),
        setting=said(one),
        adapters=", ".join(adapters) or "no RDMA adapter",
    )


def _family(
    view: SnapshotView, facts: Network, interfaces: list[NetworkInterface]
) -> Iterator[Finding]:
    one = setting(facts, "NCCL_SOCKET_FAMILY")
    if one is None or one.value not in ("AF_INET", "AF_INET6"):
        return
    field = "ipv4" if one.value == "AF_INET" else "ipv6"
    others = [interface for interface in interfaces if known(interface.kind) != "loopback"]
    if not others or any(known(getattr(interface, field)) is not False for interface in others):
        return
    shown = view.evidence("seen.network.interfaces", _list(interfaces))
    yield NO_ADDRESS.found(
        about_setting(one),
        [*setting_evidence(view, one), shown],
        advice=change_setting(one, "Take it away, and NCCL uses the addresses that are here"),
        setting=said(one),
    )


_NAME_IT = "Name the interface that leads to the other machines, on each of them."
ONLY_LO = Cause(
    "only-loopback",
    "warn",
    headline="there is no network interface but lo",
    sentence="There is no network interface but lo in this {what}: no other machine can be reached, and where"
    " lo has no address NCCL fails even between the GPUs here ('Socket creation failed').",
    remedy="Bring an interface up.",
    commands=["ip -br link", "sudo ip link set lo up"],
)
WRONG_FIRST = Cause(
    "inner-interface-first",
    "warn",
    headline="training would take the wrong network",
    sentence="NCCL takes {first} first, which does not lead out of this machine, in a job of {nodes}"
    " machines: processes elsewhere cannot reach it, and all of them hang.",
    remedy=_NAME_IT,
)
BRIDGES = Cause(
    "open-mpi-takes-bridges",
    "warn",
    headline="Open MPI would take the wrong network",
    sentence="Horovod is built with MPI here, and Open MPI takes {bridges} too, which cannot be reached from"
    " other machines: hvd.init() hangs as soon as a job has processes there.",
    remedy=_NAME_IT,
)
OWN_NAME = Cause(
    "own-name-is-loopback",
    "warn",
    headline="the machine's own name is the loopback interface",
    sentence="/etc/hosts maps this machine's own name to the loopback interface: Gloo, and programs that meet"
    " at $(hostname), cannot be reached by the other ones of the job's {nodes} machines.",
    remedy="Take the name off the line of 127.0.0.1 or 127.0.1.1, or name the interface to Gloo.",
)


@check(
    "NET-002",
    title="The network that training would take leads to other machines",
    causes=[ONLY_LO, WRONG_FIRST, BRIDGES, OWN_NAME],
    about="Without NCCL_SOCKET_IFNAME, NCCL takes the first interfaces called ib*, else all but docker*, lo"
    " and virbr*, in the kernel's order: a bridge of containers (br-*, cni0), a VPN or a virtual machine's"
    " can be the first, and processes on other machines wait for ever. Open MPI takes every interface but lo,"
    " docker0 too: hvd.init() hangs. A container without any interface but lo reaches nobody, and NCCL before"
    " 2.3.5 fails in it. Judged are machines with two GPUs or a job of several machines; which interface"
    " comes first is a detail otherwise. A name that /etc/hosts maps to 127.0.1.1 (Debian's habit) makes Gloo"
    " and MASTER_ADDR=$(hostname) listen where nobody else comes.",
    sources=(
        "NCCL 2.28, socket.cc: ib, then ^docker,lo,virbr, then docker, lo, virbr",
        "nccl-tests#14",
        "nccl#210",
        "horovod#310",
        "horovod#700",
        "Open MPI FAQ, TCP: btl_tcp_if_exclude",
    ),
    follows=("NET-001",),
)
def taken_interfaces(view: SnapshotView) -> Iterator[Verdict]:
    facts = network(view)
    interfaces = need(facts.interfaces, "the network interfaces")
    others = [one for one in interfaces if known(one.kind) != "loopback"]
    if not any(known(one.up) is not False for one in others):
        yield from _nothing_but_lo(view, facts, interfaces)
        return
    found = list(_wrong_first(view, facts, interfaces))
    found += _open_mpi(view, facts, interfaces)
    found += _own_name(view, facts)
    yield from found
    if not found:
        taken = _first(facts, interfaces)
        yield Passed("NCCL takes " + (", ".join(taken[:3]) or "no interface"))


def _nothing_but_lo(
    view: SnapshotView, facts: Network, interfaces: list[NetworkInterface]
) -> Iterator[Verdict]:
    if len(gpus(view)) < 2 and not spans_machines(facts):
        yield Passed("only lo, which one GPU is content with")
        return
    inside = container(view) or view.seen is not view.machine
    names = ", ".join(one.name for one in interfaces)
    start = Remedy(
        "Start the container with a network: without --network none; between machines with the host's.",
        [f"docker run --gpus all --network host --ipc=host {fill_in('IMAGE', 'your image')}"],
    )
    yield ONLY_LO.found(
        evidence=[view.evidence("seen.network.interfaces", names)],
        advice=start if inside else None,
        what="container" if inside else "machine",
    )


def _first(facts: Network, interfaces: list[NetworkInterface]) -> list[str]:
    """What NCCL takes, in its order."""
    one = setting(facts, "NCCL_SOCKET_IFNAME")
    candidates = [interface.name for interface in interfaces if usable(interface)]
    rules = ("ib", "^docker,lo,virbr", "docker", "lo", "virbr") if one is None else (one.value,)
    for rule in rules:
        found = list(filter(matches(rule), candidates))
        if found:
            return found
    return []


def _wrong_first(
    view: SnapshotView, facts: Network, interfaces: list[NetworkInterface]
) -> Iterator[Finding]:
    every = {one.name: one for one in interfaces}
    taken, good = _first(facts, interfaces), best(interfaces)
    if not taken or good is None or not spans_machines(facts) or is_real(every[taken[0]], every):
        return
    yield WRONG_FIRST.found(
        evidence=[
            view.evidence("seen.network.interfaces", ", ".join(taken)),
            view.evidence("seen.network.nodes"),
        ],
        commands=_export(good, "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
        first=taken[0],
        nodes=known(facts.nodes),
    )


def _open_mpi(
    view: SnapshotView, facts: Network, interfaces: list[NetworkInterface]
) -> Iterator[Finding]:
    """Horovod over Open MPI, which takes the bridges of containers too unless it is told not to."""
    if "mpi" not in built_with(view) or any(
        setting(facts, f"OMPI_MCA_btl_tcp_if_{way}") for way in ("include", "exclude")
    ):
        return
    every = {one.name: one for one in interfaces}
    bridges = [
        one.name
        for one in interfaces
        if known(one.kind) == "bridge"
        and not is_real(one, every)
        and known(one.up)
        and known(one.ipv4)
    ]
    good = best(interfaces)
    if not bridges or good is None:
        return
    yield BRIDGES.found(
        evidence=[
            view.evidence("seen.network.interfaces", ", ".join(bridges)),
            view.evidence("target.packages.horovod_extensions"),
        ],
        commands=_export(good, "OMPI_MCA_btl_tcp_if_include", "NCCL_SOCKET_IFNAME"),
        bridges=", ".join(bridges),
    )


def _own_name(view: SnapshotView, facts: Network) -> Iterator[Finding]:
    if known(facts.own_name) != "loopback" or not spans_machines(facts):
        return
    if setting(facts, "GLOO_SOCKET_IFNAME"):
        return
    good = best(known(facts.interfaces) or [])
    yield OWN_NAME.found(
        evidence=[view.evidence(f"seen.network.{name}") for name in ("own_name", "nodes")],
        commands=["sudoedit /etc/hosts", *(_export(good, "GLOO_SOCKET_IFNAME") if good else [])],
        nodes=known(facts.nodes),
    )


def _export(good: NetworkInterface, *variables: str) -> list[str]:
    return [f"export {name}={word(good.name)}" for name in variables]
