"""The check on the network interfaces that NCCL and Open MPI take by themselves."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.network import Network, NetworkInterface
from ..driver_state import container
from ..reading import Skip, SnapshotView, known, need
from ..settings import about_setting, change_setting, in_words
from ..verdicts import Finding, Passed, Remedy, Verdicts, about_file, check, fill_in, warn, word
from . import common
from .horovod import built_with
from .settings import matches

_NAME_IT = "Name the interface that leads to the other machines, on each of them."
ONLY_LO = warn(
    "only-loopback",
    "there is no network interface but lo",
    "There is no network interface but lo in this {what}: no other machine can be reached, and where"
    " lo has no address NCCL fails even between the GPUs here ('Socket creation failed').",
    "Bring an interface up.",
    "ip -br link",
    "sudo ip link set lo up",
)
WRONG_FIRST = warn(
    "inner-interface-first",
    "training would take the wrong network",
    "NCCL takes {first} first{why}, which does not lead out of this machine, in a job of {nodes} machines:"
    " processes elsewhere cannot reach it, and all of them hang.",
    _NAME_IT,
)
BRIDGES = warn(
    "open-mpi-takes-bridges",
    "Open MPI would take the wrong network",
    "Horovod is built with MPI here, and Open MPI takes {bridges} too, which cannot be reached from"
    " other machines: hvd.init() hangs as soon as a job has processes there.",
    _NAME_IT,
)


@check(
    "NET-002",
    title="The network that training would take leads to other machines",
    causes=[ONLY_LO, WRONG_FIRST, BRIDGES],
    about="Without NCCL_SOCKET_IFNAME, NCCL uses the first interfaces called ib*, else all but docker*, lo"
    " and virbr*: with a bridge or a VPN as the first, processes elsewhere wait without end.",
    sources=(
        "NCCL 2.28, socket.cc: ib, then ^docker,lo,virbr, then docker, lo, virbr",
        "nccl-tests#14, nccl#210, horovod#310, horovod#700",
        "Open MPI FAQ, TCP: btl_tcp_if_exclude",
    ),
    follows=("NET-001",),
)
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
            yield WRONG_FIRST.found(
                [] if given is None else about_setting(given),
                [view.evidence(f"seen.network.{at}", value) for at, value in shown],
                commands=_export(good, "NCCL_SOCKET_IFNAME", "GLOO_SOCKET_IFNAME"),
                advice=None if given is None else change_setting(given, _NAME_IT[:-1], good.name),
                first=taken[0],
                why="" if given is None else f", since {in_words(given)} lets it in",
                nodes=known(facts.nodes),
            )
    yield Passed("NCCL takes " + (", ".join(taken[:3]) or "no interface"))


OWN_NAME = warn(
    "own-name-is-loopback",
    "the machine's name leads to itself alone",
    "/etc/hosts has this machine's name as {addresses} alone, in a job of {nodes} machines: Gloo takes that"
    " address, and the others end with 'Connection refused' to 127.0.0.1.",
    "Give the name its address in the network, on each machine, or name the interface to Gloo.",
)
OWN_INNER = OWN_NAME.variant(
    "own-name-is-inner",
    headline="the machine's name leads to a network inside of it",
    sentence="/etc/hosts has this machine's name as {addresses}, which is in the network of {interface}, in a"
    " job of {nodes} machines: Gloo takes that address, and no other machine can reach it.",
)
OWN_ELSEWHERE = OWN_NAME.variant(
    "own-name-is-elsewhere",
    headline="no interface has the address of the machine's name",
    sentence="/etc/hosts has this machine's name as {addresses}, which no interface here has, in a job of"
    " {nodes} machines: Gloo takes 127.0.0.1 instead, and the others end with 'Connection refused'.",
)


@check(
    "NET-011",
    title="The machine's name leads to the network",
    causes=[OWN_NAME, OWN_INNER, OWN_ELSEWHERE],
    about="Gloo, and what builds on it, tells the others the address that its machine's own name has. In"
    " /etc/hosts of Debian and Ubuntu that is 127.0.1.1; it may be a bridge of containers, too."
    " Judged in a job of several machines.",
    sources=("ray#37461", "aws-samples/aws-do-eks#50, #69", "Paddle#37951", "nccl#375"),
    follows=("NET-001",),
)
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
    yield (OWN_NAME if local else OWN_INNER if inner else OWN_ELSEWHERE).found(
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


FIREWALL = warn(
    "firewall-between-machines",
    "a firewall keeps the job's machines out",
    "{firewall} is on, in a job of {nodes} machines, and opens every port to none of them: NCCL and Gloo take"
    " any free port, and connections end with 'timed out', 'Connection refused' or 'No route to host'.",
    "Let the other machines' network through, on each machine, and not the whole world: NCCL does not"
    " ask who connects.",
)
_OPEN = {
    "ufw": "sudo ufw allow from {network}",
    "firewalld": "sudo firewall-cmd --permanent --zone=trusted --add-source={network} && sudo firewall-cmd"
    " --reload",
}


@check(
    "NET-012",
    title="No firewall stands between a job's machines",
    causes=[FIREWALL],
    about="NCCL, Gloo and PyTorch's rendezvous connect a job's machines by ports that they choose. Judged"
    " in a job of several machines, by the configuration of ufw and firewalld.",
    sources=("transformers#14878", "nccl#375", "ray#37461", "NCCL user guide, Troubleshooting"),
    follows=("NET-001", "NET-011"),
)
def firewall(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    if not common.spans_machines(facts):
        raise Skip("no job of several machines")
    name = need(facts.firewall, "the firewall")
    if not name:
        yield Passed("none that keeps machines out is seen")
        return
    network = fill_in("NETWORK", "the machines' own, such as 10.0.0.0/24")
    yield FIREWALL.found(
        evidence=[view.evidence(f"seen.network.{fact}") for fact in ("firewall", "nodes")],
        commands=[_OPEN[name].format(network=network)],
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
    yield ONLY_LO.found(
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
        yield BRIDGES.found(
            evidence=[
                view.evidence("seen.network.interfaces", bridges),
                view.evidence("target.packages.horovod_extensions"),
            ],
            commands=_export(good, "OMPI_MCA_btl_tcp_if_include", "NCCL_SOCKET_IFNAME"),
            bridges=bridges,
        )


def _export(good: NetworkInterface, *variables: str) -> list[str]:
    return [f"export {name}={word(good.name)}" for name in variables]
