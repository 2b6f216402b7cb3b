"""The check on settings that switch off the fast ways between GPUs."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.base import known
from ...facts.missing import Skip
from ...facts.network import Network, NetworkSetting
from ...facts.view import SnapshotView, need
from ...findings.causes import Cause
from ...findings.model import Passed, Verdict
from ..registry import check
from .common import (
    NCCL_GUIDE,
    about_setting,
    change_setting,
    fabric,
    for_data_centres,
    gpus,
    network,
    place,
    said,
    setting,
    setting_evidence,
)

_NEVER = ("LOC", "0")  # of NCCL_P2P_LEVEL and NCCL_NET_GDR_LEVEL
_YES = ("1", "2", "true", "yes")


SWITCHED_OFF = Cause(
    "fast-way-off",
    "warn",
    headline="a setting switches off a fast way between GPUs",
    sentence="{setting} keeps NCCL off {what}: {then}.",
)


@check(
    "NET-003",
    title="NCCL's settings leave its fast ways on",
    causes=[SWITCHED_OFF],
    about="NCCL_P2P_DISABLE, NCCL_SHM_DISABLE, NCCL_IB_DISABLE, NCCL_NET=Socket and NCCL_NET_GDR_LEVEL=LOC"
    " are for finding a fault; left in a script, in an image or in /etc/nccl.conf they keep NCCL off NVLink,"
    " shared memory or InfiniBand on machines that are well, and training is several times slower without a"
    " word. Judged only where there is what they switch off: GPUs that reach each other directly, or an"
    " active RDMA port. Where they are the way around a fault that is told (PCI-007, NET-008), this follows.",
    sources=(NCCL_GUIDE, "NVIDIA NCCL user guide: not to be retained in scripts"),
    follows=("PCI-007", "NET-008", "NET-010"),
)
def fast_ways(view: SnapshotView) -> Iterator[Verdict]:
    facts = network(view)
    settings = need(facts.settings, "NCCL's settings")
    if not settings:
        raise Skip("nothing is set")
    found = [*_between_gpus(view, facts), *_between_machines(view, facts)]
    for one, what, then in found:
        yield SWITCHED_OFF.found(
            about_setting(one),
            setting_evidence(view, one),
            advice=change_setting(one, "Take it away, unless it is there to get around a fault"),
            setting=said(one),
            what=what,
            then=then,
        )
    if not found:
        yield Passed("nothing that this machine has is switched off")


def _between_gpus(view: SnapshotView, facts: Network) -> Iterator[tuple[NetworkSetting, str, str]]:
    found = gpus(view)
    if len(found) < 2:
        return
    linked = [gpu for gpu in found if any(known(link.active) for link in known(gpu.nvlinks) or [])]
    nvml = view.seen.nvml
    pairs = None if nvml is None or nvml.facts is None else known(nvml.facts.pairs)
    direct = [pair for pair in pairs or [] if known(pair.p2p_read) == "ok"]
    one = _on(facts, "NCCL_P2P_DISABLE") or _at(facts, "NCCL_P2P_LEVEL")
    if one is not None and (len(linked) > 1 or direct):
        what = "NVLink" if len(linked) > 1 else "direct transfers between the GPUs"
        yield one, what, "everything between GPUs goes through the host's memory"
    one = _on(facts, "NCCL_SHM_DISABLE")
    indirect = pairs is not None and len(direct) < len(pairs) and len(linked) < 2
    if one is not None and indirect:
        yield (
            one,
            "shared memory, the way between GPUs that cannot reach each other directly",
            "it goes through the network stack instead",
        )


def _between_machines(
    view: SnapshotView, facts: Network
) -> Iterator[tuple[NetworkSetting, str, str]]:
    ports = fabric(facts)
    if not ports:
        return
    names = ", ".join(place(*one) for one in ports)
    one = _on(facts, "NCCL_IB_DISABLE")
    net = setting(facts, "NCCL_NET")
    if one is None and net is not None and net.value.lower() == "socket":
        one = net
    if one is not None:
        yield one, f"the RDMA adapters ({names})", "traffic between machines goes over TCP"
        return
    one = (
        _at(facts, "NCCL_NET_GDR_LEVEL")
        or _at(facts, "NCCL_IB_GDR_LEVEL")
        or _off(facts, "NCCL_IB_CUDA_SUPPORT")
    )
    if one is not None and for_data_centres(view):
        yield (
            one,
            f"GPUDirect RDMA ({names})",
            "what goes to other machines is copied through the host's memory",
        )


def _on(facts: Network, name: str) -> NetworkSetting | None:
    one = setting(facts, name)
    return one if one is not None and one.value.lower() in _YES else None


def _off(facts: Network, name: str) -> NetworkSetting | None:
    one = setting(facts, name)
    return one if one is not None and one.value == "0" else None


def _at(facts: Network, name: str) -> NetworkSetting | None:
    one = setting(facts, name)
    return one if one is not None and one.value.upper() in _NEVER else None
