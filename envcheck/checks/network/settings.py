"""Checks on NCCL's and its peers' settings: names that are not here, and fast ways switched off."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from packaging.version import Version

from ...data.versions import parse_version
from ...facts.network import Network, NetworkInterface, NetworkSetting
from ..reading import Skip, SnapshotView, fact, known, need
from ..target import installed_if_known
from ..verdicts import Finding, Params, Passed, Verdicts, about, check, fail, warn
from . import common


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


_SOCKET = "NCCL_SOCKET_IFNAME"
# {variable: (what its value means, what comes of one that names nothing that is here)}
_READERS: dict[str, tuple[Callable[[str], Callable[[str], bool]], str]] = {
    _SOCKET: (matches, "NCCL ends with 'no socket interface found'"),
    "GLOO_SOCKET_IFNAME": (_by_name, "Gloo ends with 'Unable to find address for'"),
}
NO_INTERFACE = fail(
    "interface-not-usable",
    "a setting names a network interface that is not here",
    "{setting} means no network interface that could be used here ({why}): {then}.",
)
RAYS_CHOICE = NO_INTERFACE.variant(
    "ray-names-no-interface",
    severity="warn",
    headline="Ray Train names a network interface that is not here",
    sentence="Ray Train {version} sets {setting} in its workers, which means no network interface that could"
    " be used here ({why}): {then}.",
    remedy="Name the interface that leads to the other machines, in Ray's runtime_env: {env}. Or upgrade"
    " Ray: from 2.3 on it takes all but lo, docker and veth.",
    source="ray-project/ray#30333, #28633, #31824",
)
# Of Ray from 2.1 up to 2.3, in worker processes that have no such variable.
_RAYS = NetworkSetting(name=_SOCKET, value="en,eth,bond", source="Ray Train")
_RAY_RELEASES = (Version("2.1"), Version("2.3"))


@check(
    "NET-001",
    title="Settings name network interfaces that are here",
    causes=[NO_INTERFACE, RAYS_CHOICE],
    about="NCCL_SOCKET_IFNAME and GLOO_SOCKET_IFNAME select the network interface; with a name from another"
    " machine there is none. NCCL's are prefixes (= for a whole name, ^ for all others).",
    sources=(common.NCCL_GUIDE, "horovod#700", "NCCL 2.28, socket.cc: find or fail"),
)
def named_interfaces(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    settings = {one.name: one for one in need(facts.settings, "NCCL's settings") if one.value}
    interfaces = need(facts.interfaces, "the network interfaces")
    judged = [settings[name] for name in _READERS if name in settings]
    ray = installed_if_known(view).get("ray")
    release = parse_version(ray.version) if ray else None
    if release and _SOCKET not in settings and _RAY_RELEASES[0] <= release < _RAY_RELEASES[1]:
        judged.append(_RAYS)
    if not judged:
        raise Skip("no variable names an interface")
    for one in judged:
        yield from _interface(view, one, interfaces)
    yield Passed(", ".join(map(common.in_words, judged)))


def _interface(
    view: SnapshotView, one: NetworkSetting, interfaces: list[NetworkInterface]
) -> Iterator[Finding]:
    meaning, then = _READERS[one.name]
    meant = [interface for interface in interfaces if meaning(one.value)(interface.name)]
    if any(map(common.usable, meant)):
        return
    good = common.best(interfaces)
    value = "" if good is None else good.name
    others = [each.name for each in interfaces if known(each.kind) != "loopback"]
    shown = ", ".join(others) or "only lo"
    down = ", ".join(sorted(interface.name for interface in meant))
    why = f"{down} is down or has no address" if down else f"this machine has {shown}"
    found = view.evidence("seen.network.interfaces", shown)
    if one is _RAYS:
        given: Params = {
            "version": installed_if_known(view)["ray"].version,
            "setting": f"{one.name}={one.value}",
            "env": f'{{"env_vars": {{"{one.name}": "{value}"}}}}',
        }
        yield RAYS_CHOICE.found(about("package", "ray"), [found], why=why, then=then, **given)
        return
    yield NO_INTERFACE.found(
        common.about_setting(one),
        [common.setting_evidence(view, one), found],
        advice=common.change_setting(
            one, "Name the interface that leads to the other machines", value
        ),
        setting=common.in_words(one),
        why=why,
        then=then,
    )


_OFF = ("LOC", "0")  # of NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL
_PORT = re.compile(r":\d+")  # of an adapter in NCCL_IB_HCA
_YES = ("1", "2", "TRUE", "YES")
SWITCHED_OFF = warn(
    "fast-way-off",
    "a setting switches off a fast way between GPUs",
    "{setting} keeps NCCL off {what}: {then}.",
)


@check(
    "NET-003",
    title="NCCL's settings leave its fast ways on",
    causes=[SWITCHED_OFF],
    about="NCCL_P2P_DISABLE, NCCL_IB_DISABLE, NCCL_NET=Socket and NCCL_NET_GDR_LEVEL=LOC are for finding a"
    " fault; an NCCL_IB_HCA of another machine names no adapter here, and NCCL uses TCP. Judged only if this"
    " machine has what they switch off.",
    sources=(common.NCCL_GUIDE, "NVIDIA NCCL user guide: not to be retained in scripts"),
    follows=("PCI-007", "NET-008"),
)
def fast_ways(view: SnapshotView) -> Verdicts:
    facts = common.network(view)
    if not need(facts.settings, "NCCL's settings"):
        raise Skip("nothing is set")
    for one, what, then in (*_between_gpus(view, facts), *_between_machines(view, facts)):
        text = "Take it away, unless it is there to get around a fault"
        yield SWITCHED_OFF.found(
            common.about_setting(one),
            [common.setting_evidence(view, one)],
            advice=common.change_setting(one, text),
            setting=common.in_words(one),
            what=what,
            then=then,
        )
    yield Passed("nothing that this machine has is switched off")


Off = Iterator[tuple[NetworkSetting, str, str]]  # the setting, what it switches off, what follows


def _between_gpus(view: SnapshotView, facts: Network) -> Off:
    found = common.gpus(view)
    if len(found) < 2:
        return
    linked = [gpu for gpu in found if any(known(link.active) for link in known(gpu.nvlinks) or [])]
    pairs = fact(view.seen.nvml, "pairs")
    direct = any(known(pair.p2p_read) == "ok" for pair in pairs or [])
    one = _is(facts, "NCCL_P2P_DISABLE", _YES) or _is(facts, "NCCL_P2P_LEVEL", _OFF)
    if one is not None and (len(linked) > 1 or direct):
        what = "NVLink" if len(linked) > 1 else "direct transfers between the GPUs"
        yield one, what, "everything between GPUs goes through the host's memory"


def _between_machines(view: SnapshotView, facts: Network) -> Off:
    ports = common.fabric(facts)
    if not ports:
        return
    names, adapters = common.named(ports), [device.name for device, _port in ports]
    one = _is(facts, "NCCL_IB_DISABLE", _YES) or _is(facts, "NCCL_NET", ("SOCKET",))
    if one is not None:
        yield one, f"the RDMA adapters ({names})", "traffic between machines goes over TCP"
        return
    one = common.setting(facts, "NCCL_IB_HCA")
    if one is not None and not any(map(matches(_PORT.sub("", one.value)), adapters)):
        yield one, f"the RDMA adapters ({names})", "it names none of them, and TCP is left"
        return
    one = _is(facts, "NCCL_NET_GDR_LEVEL", _OFF)
    if one is not None and common.for_data_centres(view):
        then = "what goes to other machines is copied through the host's memory"
        yield one, f"GPUDirect RDMA ({names})", then


def _is(facts: Network, name: str, values: tuple[str, ...]) -> NetworkSetting | None:
    one = common.setting(facts, name)
    return one if one is not None and one.value.upper() in values else None
