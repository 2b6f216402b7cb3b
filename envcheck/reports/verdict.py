"""The verdict: what matters of a diagnosis, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from ..checks.registry import area_title
from ..facts.base import known
from ..facts.snapshot import Document, Snapshot
from ..facts.target import FRAMEWORKS, Framework
from ..findings.model import Outcome
from ..tensorcores.mode_verdict import ModeVerdict
from .headlines import headlines
from .machine import MachineDescription, frameworks, short_gpus
from .plain import number_of
from .results import ReportedResult
from .tensorcore_rows import can_be_proven

# The check that there is a GPU at all.
NO_GPU = "PCI-001"


class OverallVerdict(msgspec.Struct, frozen=True):
    """``lead`` ("3 problems") and the ``items`` that it counts, most important first."""

    sign: Outcome
    lead: str = ""
    items: list[str] = []

    def text(self) -> str:
        return ": ".join(part for part in (self.lead, "; ".join(self.items)) if part)


def verdict_of(
    results: list[ReportedResult],
    machine: MachineDescription,
    snapshot: Snapshot,
    judged: Iterable[ModeVerdict],
    left_out: int,
) -> OverallVerdict:
    """The verdict on a diagnosed Snapshot. ``judged``: what was judged of Tensor Cores; ``left_out``: how
    many checks the user left out."""
    found = headlines(results, snapshot)
    if failed := [one for one in found if one.level == "fail"]:
        if [one.code for one in failed] == [NO_GPU]:
            return OverallVerdict("fail", items=["no NVIDIA GPU in this machine"])
        items = [one.text for one in failed]
        return OverallVerdict("fail", number_of(len(items), "problem"), items)
    blocked = list(dict.fromkeys(r.reason for r in results if r.outcome == "could-not-run"))
    if less := [one.text for one in found if one.degrades]:
        unseen = [f"could not look at everything: {'; '.join(blocked)}"] if blocked else []
        return OverallVerdict("warn", "degraded", less + unseen)
    if blocked:
        return OverallVerdict("could-not-run", "could not look at everything", blocked)
    judgements = [r for r in results if r.outcome in ("pass", "warn")]
    if not judgements:
        return OverallVerdict("skipped", "nothing was judged")
    if found:
        items = [one.text for one in found]
        return OverallVerdict("warn", number_of(len(items), "warning"), items)
    if left_out:
        areas = dict.fromkeys(area_title(r.area) for r in judgements)
        return OverallVerdict("pass", "no problem in what was asked for", [", ".join(areas)])
    if machine.gpus is None:
        return OverallVerdict("pass", "no problem found", ["its GPUs are not known"])
    if not machine.gpus:
        working = [f"{_versioned(one)} works" for one in _imported(snapshot.target)]
        return OverallVerdict("pass", "healthy", [*working, "this machine has no NVIDIA GPU"])
    parts = [short_gpus(machine.gpus), f"driver {machine.driver}" if machine.driver else ""]
    parts += [*_frameworks(snapshot.target, machine), _tensor_cores(judged)]
    return OverallVerdict("pass", "healthy", [", ".join(filter(None, parts))])


def _imported(target: Document | None) -> list[Framework]:
    return [one for one in frameworks(target) if one.imported] if target is not None else []


def _frameworks(target: Document | None, machine: MachineDescription) -> Iterator[str]:
    """ "TensorFlow 2.21 sees all 8" """
    total = sum(group.count for group in machine.gpus or [])
    for framework in _imported(target):
        seen = known(framework.gpus)
        amount = "" if seen is None else f"{len(seen)} of {total}"
        if seen is not None and len(seen) == total:
            amount = {1: "it", 2: "both"}.get(total, f"all {total}")
        yield _versioned(framework) + (f" sees {amount}" if amount else "")


def _versioned(framework: Framework) -> str:
    title = FRAMEWORKS.get(framework.name, framework.name)
    return " ".join(filter(None, (title, known(framework.version))))


def _tensor_cores(judged: Iterable[ModeVerdict]) -> str:
    """ "Tensor Cores proven in 5 modes": in a mode where every level and GPU that has it proves it."""
    modes: dict[str, bool] = {}
    for row in filter(can_be_proven, judged):
        modes[row.mode] = modes.get(row.mode, True) and row.verdict == "proven"
    proven = sum(modes.values())
    of = "" if proven == len(modes) else f" of {len(modes)}"
    words = f"{proven}{of} mode{'' if len(modes) == 1 else 's'}"
    return f"Tensor Cores proven in {words}" if proven else ""
