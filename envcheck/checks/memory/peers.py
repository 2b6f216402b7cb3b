"""Copies from GPU to GPU: whole, and as fast as what joins the two."""

from __future__ import annotations

from statistics import median
from typing import NamedTuple

from ...data.bandwidth import NVLINK, PCIE_LANE, peer_line
from ...data.products import product
from ...facts.acceleration import SystemTrial
from ..acceleration.common import NOTHING_RUNS, Seen, died, each_run, failed, number
from ..driver_state import on_wsl
from ..pci.link import BELOW_SWITCHES
from ..peer_groups import is_vgpu
from ..reading import Gpu, SnapshotView, known
from ..verdicts import Cause, Finding, Passed, Subject, Unjudged, Verdicts, check, warn
from .common import ABSENT, called, gb_s, gpu_at, spread_of, subjects, words, words_of

DIRECTLY, BY_HOST = "directly ", "by way of the host "
_NVLINK = 0.5  # of what the NVLinks of one GPU carry
_PCIE = 0.4  # of what the slower link carries, below one PCIe switch
_PAIRS = 0.5  # of what most pairs of their kind reach
_SHOWN = 4


class PeerCopy(NamedTuple):
    """One GPU that sends, and one that gets."""

    trial: SystemTrial
    first: str  # addresses
    second: str
    one: Gpu | None
    other: Gpu | None

    @property
    def rate(self) -> float:
        return number(self.trial, "GB/s") if self.trial.outcome == "ok" else 0

    @property
    def called(self) -> str:
        return f"{called(self.one, self.first)} to {called(self.other, self.second)}"

    @property
    def subjects(self) -> list[Subject]:
        return subjects(self.one, self.first) + subjects(self.other, self.second)


def pairs_of(view: SnapshotView, seen: Seen, way: str) -> list[PeerCopy]:
    found = []
    for trial in seen.run.trials:
        first, to, second = trial.name.removeprefix(way).partition(" to ")
        if trial.name.startswith(way) and to:
            found.append(PeerCopy(trial, first, second, gpu_at(view, first), gpu_at(view, second)))
    return found


SLOW = warn(
    "slow-peer-copies",
    "are slow to copy to each other: {rate}",
    "Direct copies are slow: {pairs}, {why}: what several GPUs compute together waits for these.",
    "Check how the two are joined, whether all NVLinks are up, and whether Access Control Services or the"
    " IOMMU redirect what goes over PCIe.",
    "nvidia-smi topo -m",
    "nvidia-smi nvlink -s",
    "nvidia-smi topo -p2p r",
)


@check(
    "MEM-005",
    title="GPU to GPU",
    causes=(SLOW,),
    about="Every pair of GPUs copies to each other, directly if the driver allows it, and by way of the"
    " host. Pairs that NVSwitches join are compared with their NVLinks and with Azure's pass lines; pairs"
    " of one PCIe switch with their links; and every pair with the others that are joined in the same way.",
    sources=["github.com/NVIDIA/nvbandwidth, README (device_to_device_memcpy)"],
    follows=(
        *NOTHING_RUNS,
        "MEM-006",
        "PCI-007",
        "PCI-005",
        "GPU-010",
        "GPU-012",
        "GPU-013",
        "GPU-019",
    ),
    systems=("peers",),
)
def gpu_to_gpu(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        direct = [pair for pair in pairs_of(view, seen, DIRECTLY) if pair.rate]
        staged = [pair for pair in pairs_of(view, seen, BY_HOST) if pair.rate]
        if not direct and not staged:
            yield _nothing(seen)
            return
        kinds = [_kind(view, pair) for pair in direct]
        slow: dict[str, list[PeerCopy]] = {}
        for pair, kind in zip(direct, kinds, strict=True):
            peers = zip(direct, kinds, strict=True)
            alike = [peer for peer, its in peers if kind and its == kind and peer is not pair]
            why = "" if _shared(view, pair) else _slow(view, pair, alike)
            if why:
                slow.setdefault(why, []).append(pair)
        for why, pairs in slow.items():
            yield _finding(seen, why, pairs)
        if not slow:
            yield Passed(_told(direct, staged))

    yield from each_run(view, "peers", judge, document=view.machine, absent=ABSENT)


def _nothing(seen: Seen) -> Unjudged:
    ended = died(seen)
    first = ended or (seen.run.trials[0] if seen.run.trials else None)
    return Unjudged("could-not-run", f"GPU to GPU: {failed(seen, first)}")


def _told(direct: list[PeerCopy], staged: list[PeerCopy]) -> str:
    parts = []
    if direct:
        parts.append(f"directly {spread_of([pair.rate for pair in direct])}")
    if staged:
        parts.append(f"by way of the host {spread_of([pair.rate for pair in staged])}")
    if not direct:
        parts.append("the driver offers no direct access")
    return ", ".join(parts)


def _shared(view: SnapshotView, pair: PeerCopy) -> bool:
    return on_wsl(view) or any(gpu is None or is_vgpu(gpu) for gpu in (pair.one, pair.other))


def _slow(view: SnapshotView, pair: PeerCopy, alike: list[PeerCopy]) -> str:
    """What the pair falls short of; "" where it does not. alike: the others of its kind."""
    one, other = pair.one, pair.other
    assert one is not None and other is not None
    wires = _switched(one, other)
    if wires:
        line = peer_line(known(one.name) or "")
        if pair.rate < _NVLINK * wires:
            return f"while the NVLinks of each carry {gb_s(wires)}"
        if line is not None and pair.rate < line.gb_s * 0.75:
            return f"while Azure passes such pairs from {gb_s(line.gb_s)} on"
    level = _level(view, pair)
    if not _linked(one) and level in BELOW_SWITCHES:
        carries = min(_pcie(one), _pcie(other))
        if pair.rate < _PCIE * carries:
            return f"while their PCIe switch and links carry {gb_s(carries)}"
    if len(alike) > 2 and pair.rate < _PAIRS * (usual := median(peer.rate for peer in alike)):
        return f"while {len(alike)} pairs that are joined alike reach {gb_s(usual)}"
    return ""


def _linked(gpu: Gpu) -> int:
    return sum(known(link.active) is True for link in known(gpu.nvlinks) or [])


def _switched(one: Gpu, other: Gpu) -> float:
    """GB/s of the NVLinks between two GPUs that NVSwitches join; 0 where they are not, or nobody knows."""
    sold = [product(known(gpu.name) or "") for gpu in (one, other)]
    if not all(entry is not None and entry.nvswitch for entry in sold):
        return 0
    generation = min(entry.nvlink_generation for entry in sold if entry is not None)
    return min(_linked(one), _linked(other)) * NVLINK.get(generation, 0)


def _pcie(gpu: Gpu) -> float:
    generation, width = known(gpu.pcie_gen_max) or 0, known(gpu.pcie_width) or 0
    return PCIE_LANE.get(generation, 0) * width


def _level(view: SnapshotView, pair: PeerCopy) -> str:
    nvml = view.machine.nvml
    pairs = known(nvml.facts.pairs) if nvml is not None and nvml.facts is not None else None
    ends = {pair.first, pair.second}
    return next(
        (known(told.level) or "" for told in pairs or [] if {told.first, told.second} == ends), ""
    )


def _kind(view: SnapshotView, pair: PeerCopy) -> tuple[str, ...]:
    """Pairs of one kind are joined in the same way; () where that is not known.

    NVLinks without a switch join some pairs by more wires than others: no two of them are alike.
    """
    one, other = pair.one, pair.other
    if one is None or other is None:
        return ()
    if _linked(one) and _linked(other):
        return ("nvswitch", known(one.name) or "") if _switched(one, other) else ()
    level = _level(view, pair)
    return (level, known(one.name) or "", known(other.name) or "") if level else ()


def _finding(seen: Seen, why: str, pairs: list[PeerCopy]) -> Finding:
    shown = ", ".join(f"{pair.called} {gb_s(pair.rate)}" for pair in pairs[:_SHOWN])
    more = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
    return SLOW.found(
        _all_subjects(pairs),
        seen.evidence(*[pair.trial for pair in pairs]),
        rate=gb_s(min(pair.rate for pair in pairs)),
        pairs=shown + more,
        why=why,
    )


def _all_subjects(pairs: list[PeerCopy]) -> list[Subject]:
    return list({subject.text: subject for pair in pairs for subject in pair.subjects}.values())


_KEEP_OFF = (
    "Check PCI-007: an IOMMU that translates addresses, or Access Control Services above the GPUs, break"
    " direct copies. Otherwise update the driver, or go back to NVIDIA's own if it was patched for direct"
    " access, and check the NVLinks and PCIe links of both. Until then NCCL_P2P_DISABLE=1 keeps NCCL off"
    " direct copies.",
    (
        "export NCCL_P2P_DISABLE=1",
        "cat /proc/cmdline",
        "nvidia-smi topo -p2p r",
        "nvidia-smi nvlink -s",
    ),
)
DAMAGED = Cause(
    "damaged-peer-copies",
    "fail",
    "hand each other damaged data: {first}",
    "{ways} from GPU to GPU arrive damaged: {pairs}{where}. What several GPUs compute together is wrong,"
    " without any error.",
    *_KEEP_OFF,
)
HANGS = Cause(
    "peer-copy-hangs",
    "fail",
    "never finish a direct copy: {pair}",
    "A direct copy from {pair} never ends, though the driver offers it: NCCL and every program that copies so"
    " hang.",
    *_KEEP_OFF,
)


@check(
    "MEM-006",
    title="Peer pattern",
    causes=(DAMAGED, HANGS),
    about="A pattern is copied from each GPU to each other one and compared there; with direct access the"
    " other GPU reads it in place, too. An IOMMU that translates, Access Control Services or a driver that"
    " offers direct access where the board has none make collectives hang or results wrong, without any"
    " error.",
    sources=["NVIDIA CUDA programming guide, IOMMU on Linux"],
    follows=(*NOTHING_RUNS, "MEM-001"),
    systems=("peers",),
)
def peer_pattern(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        pairs = pairs_of(view, seen, DIRECTLY) + pairs_of(view, seen, BY_HOST)
        wrong = [pair for pair in pairs if _wrong(pair)]
        if wrong:
            yield _damaged(seen, wrong)
        hung = [pair for pair in pairs_of(view, seen, DIRECTLY) if pair.trial.outcome == "timeout"]
        for pair in hung:
            yield HANGS.found(pair.subjects, seen.evidence(pair.trial), pair=pair.called)
        whole = [pair for pair in pairs if pair.trial.outcome == "ok" and not _wrong(pair)]
        other = [
            p for p in pairs if p.trial.outcome not in ("ok", "not-supported") and p not in hung
        ]
        for pair in other:
            yield Unjudged(
                "could-not-run", f"{pair.trial.name}: {failed(seen, pair.trial)}", pair.subjects
            )
        if not pairs:
            yield _nothing(seen)
        elif whole and not wrong and not hung:
            yield Passed(_whole(seen, whole))

    yield from each_run(view, "peers", judge, document=view.machine, absent=ABSENT)


def _whole(seen: Seen, whole: list[PeerCopy]) -> str:
    direct = sum(pair.trial.name.startswith(DIRECTLY) for pair in whole)
    staged = len(whole) - direct
    left = number(seen.trial("left out"), "pairs")
    more = f"; {left:.0f} pairs left out" if left else ""
    if direct:
        return f"whole: {direct} direct copies, {staged} by way of the host{more}"
    return f"whole: {staged} copies by way of the host; no direct access{more}"


def _wrong(pair: PeerCopy) -> float:
    return number(pair.trial, "wrong") + number(pair.trial, "wrong_read")


def _damaged(seen: Seen, wrong: list[PeerCopy]) -> Finding:
    direct = [pair for pair in wrong if pair.trial.name.startswith(DIRECTLY)]
    ways = "Direct copies" if len(direct) == len(wrong) else "Copies"
    shown = ", ".join(f"{pair.called} ({words(_wrong(pair))})" for pair in wrong[:_SHOWN])
    more = f" and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    where = next((told for pair in wrong if (told := words_of(pair.trial, "where"))), "")
    return DAMAGED.found(
        _all_subjects(wrong),
        seen.evidence(*[pair.trial for pair in wrong]),
        first=wrong[0].called,
        ways=ways,
        pairs=shown + more,
        where=f"; first at {where}" if where else "",
    )
