"""Checks on the network interfaces that NCCL, Gloo and MPI take."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import Network, NetworkInterface, NetworkSetting
from ...facts.view import SnapshotView, need
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


@check(
    "NET-001",
    title="Settings name network interfaces and adapters that are here",
    problem="a setting names a network interface that is not here",
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
        yield Finding(
            "fail",
            f"{said(one)} means no network interface that could be used here ({why}): {then}.",
            subjects=about_setting(one),
            evidence=evidence,
            remedy=change_setting(
                one, "Name the interface that leads to the other machines", value
            ),
        )
    elif (
        one.name == "NCCL_SOCKET_IFNAME"
        and known(meant[0].kind) == "loopback"
        and value
        and unmeant
    ):
        yield Finding(
            "warn",
            f"{said(one)} leaves the loopback interface in, and NCCL takes that first: processes on other"
            " machines cannot reach it, and all of them hang.",
            subjects=about_setting(one),
            evidence=evidence,
            remedy=change_setting(one, "Name the interface, or leave lo out too", value),
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
    has = f"has {', '.join(adapters)}" if adapters else "has no RDMA adapter"
    remedy = change_setting(one, "Take it away: NCCL then uses every adapter that is here")
    yield Finding(
        "warn",
        f"{said(one)} means no RDMA adapter of this machine, which {has}: NCCL goes over TCP, several"
        " times slower.",
        subjects=about_setting(one),
        evidence=[
            *setting_evidence(view, one),
            view.evidence("seen.network.rdma", ", ".join(adapters)),
        ],
        remedy=Remedy(remedy.text, [*remedy.commands, *look]),
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
    yield Finding(
        "fail",
        f"{said(one)} asks for addresses that no network interface here has: NCCL ends with 'no socket"
        " interface found'.",
        subjects=about_setting(one),
        evidence=[
            *setting_evidence(view, one),
            view.evidence("seen.network.interfaces", _list(interfaces)),
        ],
        remedy=change_setting(one, "Take it away, and NCCL uses the addresses that are here"),
    )


@check(
    "NET-002",
    title="The network that training would take leads to other machines",
    problem="training would take the wrong network",
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
    yield Finding(
        "warn",
        f"There is no network interface but lo in this {'container' if inside else 'machine'}: no other"
        " machine can be reached, and where lo has no address NCCL fails even between the GPUs here ('Socket"
        " creation failed').",
        evidence=[
            view.evidence("seen.network.interfaces", ", ".join(one.name for one in interfaces))
        ],
        remedy=Remedy(
            "Start the container with a network: without --network none; between machines with the host's.",
            [f"docker run --gpus all --network host --ipc=host {fill_in('IMAGE', 'your image')}"],
        )
        if inside
        else Remedy("Bring an interface up.", ["ip -br link", "sudo ip link set lo up"]),
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
    yield Finding(
        "warn",
        f"NCCL takes {taken[0]} first, which does not lead out of this machine, in a job of"
        f" {known(facts.nodes)} machines: processes elsewhere cannot reach it, and all of them hang.",
        evidence=[
            view.evidence("seen.network.interfaces", ", ".join(taken)),
            view.evidence("seen.network.nodes"),
        ],
        remedy=_name_it(good),
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
    yield Finding(
        "warn",
        f"Horovod is built with MPI here, and Open MPI takes {', '.join(bridges)} too, which"
        f" {'does' if len(bridges) == 1 else 'do'} not lead out of this machine: hvd.init() hangs as soon as"
        " a job has processes on other machines.",
        evidence=[
            view.evidence("seen.network.interfaces", ", ".join(bridges)),
            view.evidence("target.packages.horovod_extensions"),
        ],
        remedy=Remedy(
            "Name the interface that leads to the other machines, to Open MPI and to NCCL.",
            [
                f"export OMPI_MCA_btl_tcp_if_include={word(good.name)}",
                f"export NCCL_SOCKET_IFNAME={word(good.name)}",
            ],
        ),
    )


def _own_name(view: SnapshotView, facts: Network) -> Iterator[Finding]:
    if known(facts.own_name) != "loopback" or not spans_machines(facts):
        return
    if setting(facts, "GLOO_SOCKET_IFNAME"):
        return
    interfaces = known(facts.interfaces) or []
    good = best(interfaces)
    yield Finding(
        "warn",
        "/etc/hosts maps this machine's own name to the loopback interface: Gloo, and what is told to meet at"
        f" $(hostname), waits where no other of the job's {known(facts.nodes)} machines comes.",
        evidence=[
            view.evidence("seen.network.own_name"),
            view.evidence("seen.network.nodes"),
        ],
        remedy=Remedy(
            "Take the name off the line of 127.0.0.1 or 127.0.1.1, or name the interface to Gloo.",
            [
                "sudoedit /etc/hosts",
                *([] if good is None else [f"export GLOO_SOCKET_IFNAME={word(good.name)}"]),
            ],
        ),
    )


def _name_it(good: NetworkInterface) -> Remedy:
    return Remedy(
        "Name the interface that leads to the other machines, on each of them.",
        [
            f"export NCCL_SOCKET_IFNAME={word(good.name)}",
            f"export GLOO_SOCKET_IFNAME={word(good.name)}",
        ],
    )
