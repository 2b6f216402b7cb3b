"""The check on the network interfaces that NCCL and Open MPI take by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.network import Network, NetworkInterface
from ..declared import declared_causes
from ..driver_state import container
from ..reading import Skip, SnapshotView, known, need
from ..settings import about_setting, change_setting, in_words
from ..verdicts import Finding, Passed, Remedy, Verdicts, about_file, check, fill_in, word
from . import common
from .horovod import built_with
from .settings import matches

CAUSE = declared_causes(__name__)


@check("NET-002")
def taken_interfaces(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    interfaces = need(facts.interfaces, "the network interfaces")
    others = [one for one in interfaces if known(one.kind) != "loopback"]
    if not any(known(one.up) is not False for one in others):
        yield from _nothing_but_lo(view, facts, interfaces)
        return
    taken, good = _first(facts, interfaces), common.best(interfaces)
    if good is not None:
        every = {one.name: one for one in interfaces}
        yield from _open_mpi(view, facts, every, good)
        inner = taken and taken[0] != good.name and not common.is_real(every[taken[0]], every)
        if inner and common.spans_machines(facts):
            shown = ("interfaces", ", ".join(taken)), ("nodes", None)
            given = common.setting(facts, "NCCL_SOCKET_IFNAME")
            cause = CAUSE["inner-interface-first"]
            yield cause.found(
                [] if given is None else about_setting(given),
                [view.evidence(f"seen.network.{at}", value) for at, value in shown],
                commands=_export(good, "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
                advice=None
                if given is None
                else change_setting(given, cause.remedy[:-1], good.name),
                first=taken[0],
                why="" if given is None else f", since {in_words(given)} lets it in",
                nodes=known(facts.nodes),
            )
    yield Passed("NCCL takes " + (", ".join(taken[:3]) or "no interface"))


@check("NET-011")
def own_name(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    if not common.spans_machines(facts):
        raise Skip("no job of several machines")
    addresses = need(facts.own_addresses, "the machine's name in /etc/hosts")
    named = common.setting(facts, "GLOO_SOCKET_IFNAME")
    every = {one.name: one for one in known(facts.interfaces) or []}
    own, good = known(facts.own_interface), common.best(list(every.values()))
    inner = own in every and good is not None and not common.is_real(every[own], every)
    local = bool(addresses) and all(one.startswith(("127.", "::1")) for one in addresses)
    if named or not (local or inner or (addresses and own == "")):
        yield Passed(f"Gloo takes {named.value}" if named else ", ".join(addresses) or "not there")
        return
    cause = CAUSE["own-name-is-inner"] if inner else CAUSE["own-name-is-elsewhere"]
    yield (CAUSE["own-name-is-loopback"] if local else cause).found(
        about_file("/etc/hosts"),
        [view.evidence(f"seen.network.{name}") for name in ("own_addresses", "nodes")],
        commands=[
            "sudoedit /etc/hosts",
            *([] if good is None else _export(good, "GLOO_SOCKET_IFNAME")),
        ],
        addresses=", ".join(addresses),
        interface=own,
        nodes=known(facts.nodes),
    )


_OPEN = {
    "ufw": "sudo ufw allow from {network}",
    "firewalld": "sudo firewall-cmd --permanent --zone=trusted --add-source={network} && sudo firewall-cmd"
    " --reload",
}


@check("NET-012")
def firewall(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    if not common.spans_machines(facts):
        raise Skip("no job of several machines")
    name = need(facts.firewall, "the firewall")
    if not name:
        yield Passed("none that keeps machines out is seen")
        return
    network = fill_in("NETWORK", "the machines' own, such as 10.0.0.0/24")
    yield CAUSE["firewall-between-machines"].found(
        evidence=[view.evidence(f"seen.network.{fact}") for fact in ("firewall", "nodes")],
        commands=[_OPEN[name].format(network=network)] if name in _OPEN else [],
        firewall=name,
        nodes=known(facts.nodes),
    )


def _nothing_but_lo(
    view: SnapshotView, facts: Network, interfaces: list[NetworkInterface]
) -> Verdicts:
    if len(common.gpus(view)) < 2 and not common.spans_machines(facts):
        yield Passed("only lo, which one GPU is content with")
        return
    inside = container(view) or view.seen is not view.machine
    start = Remedy(
        "Start the container with a network: without --network none; between machines with the host's.",
        [f"docker run --gpus all --network host --ipc=host {fill_in('IMAGE', 'your image')}"],
    )
    names = ", ".join(one.name for one in interfaces)
    yield CAUSE["only-loopback"].found(
        evidence=[view.evidence("seen.network.interfaces", names)],
        advice=start if inside else None,
        what="container" if inside else "machine",
    )


def _first(facts: Network, interfaces: list[NetworkInterface]) -> list[str]:
    one = common.setting(facts, "NCCL_SOCKET_IFNAME")
    candidates = [interface.name for interface in interfaces if common.usable(interface)]
    rules = ("ib", "^docker,lo,virbr", "docker", "lo", "virbr") if one is None else (one.value,)
    chosen = (list(filter(matches(rule), candidates)) for rule in rules)
    return next(filter(None, chosen), [])


def _open_mpi(
    view: SnapshotView, facts: Network, every: dict[str, NetworkInterface], good: NetworkInterface
) -> Iterator[Finding]:
    """Horovod over Open MPI, which takes the bridges of containers too unless a setting excludes them."""
    ways = (f"OMPI_MCA_btl_tcp_if_{way}" for way in ("include", "exclude"))
    if "mpi" not in built_with(view) or any(common.setting(facts, way) for way in ways):
        return
    inner = (
        one
        for one in every.values()
        if known(one.kind) == "bridge" and not common.is_real(one, every)
    )
    bridges = ", ".join(one.name for one in inner if known(one.up) and known(one.ipv4))
    if bridges:
        yield CAUSE["open-mpi-takes-bridges"].found(
            evidence=[
                view.evidence("seen.network.interfaces", bridges),
                view.evidence("target.packages.horovod_extensions"),
            ],
            commands=_export(good, "OMPI_MCA_btl_tcp_if_include", "NCCL_SOCKET_IFNAME"),
            bridges=bridges,
        )


def _export(good: NetworkInterface, *variables: str) -> list[str]:
    return [f"export {name}={word(good.name)}" for name in variables]
