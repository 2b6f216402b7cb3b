"""Copies from GPU to GPU: whole, and as fast as what joins the two."""

from __future__ import annotations

from typing import NamedTuple

from ...data.bandwidth import NVLINK, PCIE_LANE
from ...data.products import product
from ...facts.acceleration import SystemTrial
from ..acceleration.common import Seen, died, each_run, failed, number
from ..declared import declared_causes
from ..driver_state import on_wsl
from ..kernel.events import gpu_at, subjects_at
from ..pci.link import BELOW_SWITCHES
from ..peer_groups import is_vgpu
from ..reading import CouldNotRun, Gpu, Skip, SnapshotView, fact, known
from ..verdicts import Passed, Subject, Unjudged, Verdicts, check
from .common import ABSENT, called, gb_s, spread_of, words, words_of

CAUSE = declared_causes(__name__)

_DIRECTLY = "directly "
_NVLINK = 0.5  # of what the NVLinks of one GPU carry
_PCIE = 0.4  # of what the slower link carries, below one PCIe switch
_SHOWN = 4


class PeerCopy(NamedTuple):
    view: SnapshotView
    trial: SystemTrial
    first: str  # addresses
    second: str
    one: Gpu | None
    other: Gpu | None

    @property
    def rate(self) -> float:
        return number(self.trial, "GB/s") if self.trial.outcome == "ok" else 0

    @property
    def wrong(self) -> float:
        return number(self.trial, "wrong") + number(self.trial, "wrong_read")

    @property
    def called(self) -> str:
        return f"{called(self.one, self.first)} to {called(self.other, self.second)}"

    @property
    def level(self) -> str:
        """What is between the two on PCIe; "" where that is not known."""
        ends = {self.first, self.second}
        pairs = fact(self.view.machine.nvml, "pairs") or []
        return next((known(p.level) or "" for p in pairs if {p.first, p.second} == ends), "")


def pairs_of(view: SnapshotView, seen: Seen) -> list[PeerCopy]:
    """Those that reach each other directly, or should; raises CannotJudge where there are none."""
    found = []
    for trial in seen.run.trials:
        first, to, second = trial.name.removeprefix(_DIRECTLY).partition(" to ")
        if trial.name.startswith(_DIRECTLY) and to:
            gpus = gpu_at(view, first), gpu_at(view, second)
            found.append(PeerCopy(view, trial, first, second, *gpus))
    if not found:
        first_trial = died(seen) or next(iter(seen.run.trials), None)
        raise CouldNotRun(f"GPU to GPU: {failed(seen, first_trial)}")
    if all(pair.trial.outcome == "not-supported" for pair in found):
        raise Skip("not applicable: the driver offers no direct access between the GPUs")
    return found


@check("MEM-005")
def gpu_to_gpu(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        direct = [pair for pair in pairs_of(view, seen) if pair.rate]
        slow: dict[str, list[PeerCopy]] = {}
        for pair in direct:
            if why := _slow(pair):
                slow.setdefault(why, []).append(pair)
        for why, pairs in slow.items():
            trials, rate = [pair.trial for pair in pairs], gb_s(min(pair.rate for pair in pairs))
            shown = _first([f"{pair.called} {gb_s(pair.rate)}" for pair in pairs])
            evidence = seen.evidence(*trials)
            yield CAUSE["slow-peer-copies"].found(
                _subjects(pairs), evidence, rate=rate, pairs=shown, why=why
            )
        if not direct:
            raise CouldNotRun("GPU to GPU: no copy was timed")
        if not slow:
            yield Passed(spread_of([pair.rate for pair in direct]))

    yield from each_run(view, "peers", judge, document=view.machine, absent=ABSENT)


def _first(texts: list[str]) -> str:
    more = f" and {len(texts) - _SHOWN} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more


def _subjects(pairs: list[PeerCopy]) -> list[Subject]:
    found = [s for p in pairs for end in (p.first, p.second) for s in subjects_at(p.view, end)]
    return list({subject.text: subject for subject in found}.values())


def _slow(pair: PeerCopy) -> str:
    """What the pair falls short of; "" where it does not."""
    one, other = pair.one, pair.other
    if one is None or other is None or on_wsl(pair.view) or is_vgpu(one) or is_vgpu(other):
        return ""
    wires = _switched(one, other)
    if pair.rate < _NVLINK * wires:
        return f"while the NVLinks of each carry {gb_s(wires)}"
    carries = min(_pcie(one), _pcie(other))
    if not _linked(one) and pair.level in BELOW_SWITCHES and pair.rate < _PCIE * carries:
        return f"while their PCIe switch and links carry {gb_s(carries)}"
    return ""


def _linked(gpu: Gpu) -> int:
    return sum(known(link.active) is True for link in known(gpu.nvlinks) or [])


def _switched(one: Gpu, other: Gpu) -> float:
    """GB/s of the NVLinks between two GPUs that NVSwitches join; 0 where they do not, or it is not known."""
    sold = [product(known(gpu.name) or "") for gpu in (one, other)]
    if not all(entry is not None and entry.nvswitch for entry in sold):
        return 0
    generation = min(entry.nvlink_generation for entry in sold if entry is not None)
    return min(_linked(one), _linked(other)) * NVLINK.get(generation, 0)


def _pcie(gpu: Gpu) -> float:
    generation, width = known(gpu.pcie_gen_max) or 0, known(gpu.pcie_width) or 0
    return PCIE_LANE.get(generation, 0) * width


@check("MEM-006")
def peer_pattern(view: SnapshotView) -> Verdicts:
    def judge(seen: Seen) -> Verdicts:
        pairs = pairs_of(view, seen)
        wrong = [pair for pair in pairs if pair.wrong]
        hung = [pair for pair in pairs if pair.trial.outcome == "timeout"]
        whole = [pair for pair in pairs if pair.trial.outcome == "ok" and not pair.wrong]
        if wrong:
            where = next(filter(None, (words_of(pair.trial, "where") for pair in wrong)), "")
            yield CAUSE["damaged-peer-copies"].found(
                _subjects(wrong),
                seen.evidence(*[pair.trial for pair in wrong]),
                first=wrong[0].called,
                pairs=_first([f"{pair.called} ({words(pair.wrong)})" for pair in wrong]),
                where=f"; first at {where}" if where else "",
            )
        for pair in hung:
            yield CAUSE["peer-copy-hangs"].found(
                _subjects([pair]), seen.evidence(pair.trial), pair=pair.called
            )
        for pair in pairs:
            if pair.trial.outcome not in ("ok", "not-supported") and pair not in hung:
                why = f"{pair.trial.name}: {failed(seen, pair.trial)}"
                yield Unjudged("could-not-run", why, _subjects([pair]))
        if whole and not wrong and not hung:
            skipped = number(seen.trial("left out"), "pairs")
            more = f"; {skipped:.0f} pairs left out" if skipped else ""
            yield Passed(f"{len(whole)} direct copies arrived whole{more}")

    yield from each_run(view, "peers", judge, document=view.machine, absent=ABSENT)
