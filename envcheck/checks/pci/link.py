"""Checks on what is between a GPU and the rest: its link, errors on it, and what redirects it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from ...facts.gpu import GpuPair
from ...findings.subjects import about_device
from ..declared import declared_causes
from ..driver_state import REBOOT
from ..gpu.link import under_load
from ..gpus import plural, together
from ..nvidia_devices import device_evidence, host_facts, is_virtual, pci_gpus
from ..on_the_bus import link_state
from ..reading import CannotJudge, PciDevice, Skip, SnapshotView, facts_of, known, need
from ..system_commands import on_system
from ..verdicts import TRADE, Passed, Remedy, Verdict, Verdicts, check, unjudged, word

CAUSE = declared_causes(__name__)

# Ways between two GPUs that pass only PCIe switches, and those by one processor's root ports.
BELOW_SWITCHES = ("PIX", "PXB")
BY_ROOT_PORTS = ("PHB", "NODE")
TRANSLATING = {"DMA", "DMA-FQ"}


def _each(gpus: list[PciDevice], judge: Callable[[PciDevice], Iterable[Verdict]]) -> Verdicts:
    """Judge each GPU; a missing fact leaves that one unjudged. Equal verdicts become one."""
    return together(_one_by_one(gpus, judge))


def _one_by_one(gpus: list[PciDevice], judge: Callable[[PciDevice], Iterable[Verdict]]) -> Verdicts:
    passed: Counter[str] = Counter()
    for gpu in gpus:
        try:
            for verdict in judge(gpu):
                if isinstance(verdict, Passed):
                    passed[verdict.detail] += 1
                else:
                    yield verdict
        except CannotJudge as why:
            yield unjudged(why, about_device(gpu))
    for detail, count in passed.items():
        yield Passed(detail if len(gpus) == 1 else f"{detail} ({count} GPUs)")


@check("PCI-005")
def link_width(view: SnapshotView) -> Verdicts:
    gpus = pci_gpus(view)
    if is_virtual(view):
        raise Skip("a virtual machine's slots are made up")
    yield from _each(gpus, lambda gpu: _width(view, gpu))


def _width(view: SnapshotView, gpu: PciDevice) -> Verdicts:
    if known(gpu.answers) is False:
        raise Skip("it does not answer")
    if known(gpu.power_state) not in (None, "D0", "unknown"):
        raise Skip(f"it is asleep ({known(gpu.power_state)})")
    width = need(gpu.link_width, "the link's width")
    card = need(gpu.max_link_width, "the card's lanes")
    slot = need(gpu.slot_max_link_width, "the slot's lanes")
    if width >= min(card, slot):
        yield Passed(f"x{width}")
        return
    broken = width * 4 <= min(card, slot) and _at_work(view, gpu)
    yield (CAUSE["link-broken"] if broken else CAUSE["link-narrow"]).found(
        about_device(gpu),
        device_evidence(view, gpu, "link_width", "max_link_width", "slot_max_link_width"),
        commands=[link_state(word(gpu.address))],
        width=width,
        card=card,
        slot=slot,
        share=width / min(card, slot),
    )


def _at_work(view: SnapshotView, device: PciDevice) -> bool:
    try:
        gpus = view.gpus
    except CannotJudge:
        return False
    return any(known(gpu.pci_address) == device.address and under_load(gpu) for gpu in gpus)


def acs_off(ports: list[str]) -> Remedy:
    return Remedy(
        "Direct transfers need Access Control Services off on those ports, which a boot switches on again."
        f" {TRADE}the devices behind those ports then reach each other's memory unchecked, so do it only"
        " where no virtual machine and no untrusted user has one of them.",
        [
            "sudo lspci -vv | grep -E '^[0-9a-f]|ACSCtl'",
            *(f"sudo setpci -s {word(port)} ECAP_ACS+0x6.w=0000" for port in ports),
        ],
    )


@check("PCI-007")
def peer_transfers(view: SnapshotView) -> Verdicts:
    gpus = pci_gpus(view)
    if len(gpus) < 2:
        raise Skip("there is one GPU only")
    if is_virtual(view):
        raise Skip("in a virtual machine the host decides this")
    pairs = _direct_pairs(view)
    if not pairs:
        yield Passed("no pair of GPUs depends on direct transfers over PCIe")
        return
    findings = list(_redirected(view, gpus, pairs))
    yield from findings
    if not findings:
        yield Passed(plural(len(pairs), "pair") + " of GPUs with direct access")


def _direct_pairs(view: SnapshotView) -> list[GpuPair]:
    """The pairs that reach each other over PCIe, and have no NVLink to do it better."""
    nvml = facts_of(view.machine.nvml, "which GPUs reach each other directly")
    pairs = need(nvml.pairs, "which GPUs reach each other directly")
    linked = {
        known(gpu.pci_address)
        for gpu in view.gpus
        if any(known(link.active) for link in known(gpu.nvlinks) or [])
    }
    direct = [pair for pair in pairs if known(pair.p2p_read) == "ok"]
    return [pair for pair in direct if not (pair.first in linked and pair.second in linked)]


def _redirected(view: SnapshotView, gpus: list[PciDevice], pairs: list[GpuPair]) -> Verdicts:
    pci = facts_of(view.machine.pci, "PCI devices")
    if TRANSLATING & set((known(pci.iommu_mode) or "").split(",")):
        shown = view.evidence(
            "machine.nvml.pairs", plural(len(pairs), "pair") + " with direct access"
        )
        options = on_system(view, "boot-options", options="iommu=pt")
        bridges = {port for gpu in gpus for port in known(gpu.bridges) or []}
        redirecting = sorted(bridges & set(known(pci.acs_ports) or []))
        acs = ", and Access Control Services (ACS) of the ports above them redirect what they send"
        yield CAUSE["iommu-translates"].found(
            evidence=[
                view.evidence("machine.pci.iommu_mode"),
                shown,
                *[view.evidence("machine.pci.acs_ports", ", ".join(redirecting))][
                    : len(redirecting)
                ],
            ],
            commands=["cat /proc/cmdline", *options, REBOOT],
            acs=acs if redirecting else "",
        )
    amd = "AMD" in (known(host_facts(view).cpu_model) or "")
    below = _of_pairs(gpus, pairs, BELOW_SWITCHES)
    across = _of_pairs(gpus, pairs, BY_ROOT_PORTS) if amd else []
    if not below and not across:
        return
    ports = set(need(pci.acs_ports, "Access Control Services of the bridges above the GPUs"))
    slots = ports & {known(gpu.slot) or "" for gpu in below}
    above = {port for gpu in across for port in known(gpu.bridges) or [known(gpu.slot) or ""]}
    for cause, found in (
        (CAUSE["acs-in-switches"], slots),
        (CAUSE["acs-in-root-ports"], (ports & above) - slots),
    ):
        if found:
            evidence = [view.evidence("machine.pci.acs_ports", ", ".join(sorted(found)))]
            yield cause.found(evidence=evidence, advice=acs_off(sorted(found)))


def _of_pairs(
    gpus: list[PciDevice], pairs: list[GpuPair], levels: tuple[str, ...]
) -> list[PciDevice]:
    ends = {end for p in pairs if known(p.level) in levels for end in (p.first, p.second)}
    return [gpu for gpu in gpus if gpu.address in ends]
