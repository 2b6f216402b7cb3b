"""What is between the GPUs: told, and never a fault of its own."""

from __future__ import annotations

from collections import Counter

from ...facts.gpu import GpuPair
from ..driver_state import NO_GPUS
from ..reading import Gpu, Skip, SnapshotView, facts_of, known, need
from ..verdicts import Passed, Verdicts, check

_LEVELS = {
    "internal": "on one board",
    "PIX": "by one PCIe switch",
    "PXB": "by several PCIe switches",
    "PHB": "by the processor's host bridge",
    "NODE": "by host bridges of one NUMA node",
    "SYS": "from one processor to the other",
}


@check(
    "PCI-010",
    title="How the GPUs reach each other",
    about="Shows what two GPUs send to each other by: NVLink, PCIe directly, or through the host's memory"
    " if the driver offers no direct access (GeForce boards since the 40 series). It never fails.",
    sources=["nvidia-smi(1), topo"],
    follows=NO_GPUS,
)
def topology(view: SnapshotView) -> Verdicts:
    if len(view.gpus) < 2:
        raise Skip("there is one GPU only")
    nvml = facts_of(view.machine.nvml, "how the GPUs reach each other")
    pairs = need(nvml.pairs, "how the GPUs reach each other")
    linked = {known(gpu.pci_address) for gpu in view.gpus if has_nvlink(gpu)}
    ways = Counter(_way(pair, linked) for pair in pairs)
    words = [
        f"{way} ({count} pairs)" if len(ways) > 1 else way for way, count in ways.most_common()
    ]
    models = Counter(known(gpu.name) or "?" for gpu in view.gpus)
    if len(models) > 1:
        kinds = ", ".join(f"{count} x {name}" for name, count in models.items())
        words.append(f"unlike GPUs, of which the slowest sets the pace ({kinds})")
    yield Passed("; ".join(words) or "no pair is known")


def has_nvlink(gpu: Gpu) -> bool:
    return any(known(link.active) for link in known(gpu.nvlinks) or [])


def _way(pair: GpuPair, linked: set[str | None]) -> str:
    if pair.first in linked and pair.second in linked:
        return "by NVLink"
    place = _LEVELS.get(known(pair.level) or "", "by PCIe")
    reached = known(pair.p2p_read)
    if reached == "ok":
        return f"directly, {place}"
    why = f" ({reached})" if reached else ""
    return f"through the host's memory, {place}{why}"
