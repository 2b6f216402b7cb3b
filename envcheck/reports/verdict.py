"""The verdict: what matters of a diagnosis, in one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from ..checks.registry import area_title
from ..facts.base import known
from ..facts.snapshot import Document, Snapshot
from ..facts.target import FRAMEWORKS, Framework
from ..tensorcores.mode_verdict import ModeVerdict
from .headlines import Headline, headlines
from .machine import MachineDescription, facts, short_gpus
from .results import ReportedResult

Status = Literal["healthy", "problems", "could-not-look"]
Sign = Literal["pass", "warn", "fail", "could-not-run", "skipped"]

# The check that there is a GPU at all.
NO_GPU = "PCI-001"

# The frameworks' builds that need no GPU.
_CPU_BUILDS = ("tensorflow-cpu",)


class OverallVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """``lead`` ("3 problems") and the ``items`` that it counts, most important first.

    word: the lead where the terminal has no character for the sign.
    """

    sign: Sign
    word: str
    lead: str = ""
    items: list[str] = []

    def text(self) -> str:
        return ": ".join(part for part in (self.lead, "; ".join(self.items)) if part)


def verdict_of(
    status: Status,
    results: list[ReportedResult],
    machine: MachineDescription,
    snapshot: Snapshot,
    judged: Iterable[ModeVerdict],
    left_out: int,
) -> OverallVerdict:
    """The verdict on a diagnosed Snapshot.

    ``judged``: what was judged of Tensor Cores; ``left_out``: how many checks nobody asked for.
    """
    found = headlines(results, snapshot)
    if status == "problems":
        return _problems([one for one in found if one.level == "fail"])
    if status == "could-not-look":
        blocked = (r.reason for r in results if r.outcome == "could-not-run")
        lead = "could not look at everything"
        return OverallVerdict(
            sign="could-not-run", word=lead.upper(), lead=lead, items=list(dict.fromkeys(blocked))
        )
    judgements = [r for r in results if r.outcome in ("pass", "warn")]
    if not judgements:
        return OverallVerdict(sign="skipped", word="NOTHING JUDGED", lead="nothing was judged")
    if found:
        number = f"{len(found)} warning{'' if len(found) == 1 else 's'}"
        return OverallVerdict(
            sign="warn",
            word=number.upper(),
            lead=number,
            items=[one.text for one in found],
        )
    if left_out:
        areas = dict.fromkeys(area_title(r.area) for r in judgements)
        lead = "no problem in what was asked for"
        return OverallVerdict(sign="pass", word=f"OK: {lead}", lead=lead, items=[", ".join(areas)])
    if machine.gpus is None:
        lead = "no problem found"
        return OverallVerdict(
            sign="pass", word=f"OK: {lead}", lead=lead, items=["its GPUs are not known"]
        )
    if machine.gpus == []:
        items = [*_without_gpus(snapshot.target), "this machine has no NVIDIA GPU"]
        return OverallVerdict(sign="pass", word="OK", lead="healthy", items=items)
    parts = [short_gpus(machine.gpus), f"driver {machine.driver}" if machine.driver else ""]
    parts += [*_frameworks(snapshot.target, machine), _tensor_cores(judged)]
    items = [", ".join(filter(None, parts))]
    return OverallVerdict(
        sign="pass", word="OK", lead="healthy", items=[item for item in items if item]
    )


def _problems(found: list[Headline]) -> OverallVerdict:
    items = [one.text for one in found]
    if [one.code for one in found] == [NO_GPU]:
        return OverallVerdict(sign="fail", word="PROBLEM", items=["no NVIDIA GPU in this machine"])
    number = f"{len(items)} problem{'' if len(items) == 1 else 's'}"
    word = "PROBLEM" if len(items) == 1 else number.upper()
    return OverallVerdict(sign="fail", word=word, lead=number, items=items)


def _imported(target: Document | None) -> Iterator[Framework]:
    if target is not None:
        for probe in (target.tensorflow, target.torch, target.jax):
            framework = facts(probe)
            if framework is not None and framework.imported:
                yield framework


def _frameworks(target: Document | None, machine: MachineDescription) -> Iterator[str]:
    """ "TensorFlow 2.21 sees all 8" """
    total = sum(group.count for group in machine.gpus or [])
    for framework in _imported(target):
        seen = known(framework.gpus)
        amount = "" if seen is None else f"{len(seen)} of {total}"
        if seen is not None and len(seen) == total:
            amount = f"all {total}" if total > 1 else "it"
        yield _versioned(framework) + (f" sees {amount}" if amount else "")


def _without_gpus(target: Document | None) -> list[str]:
    packages = facts(target.packages) if target is not None else None
    installed = {one.normalized for one in packages.distributions} if packages is not None else ()
    lines = []
    for framework in _imported(target):
        build = next((b for b in _CPU_BUILDS if b in installed and framework.name in b), "")
        lines.append(f"{_versioned(framework, build)} works")
    return lines


def _versioned(framework: Framework, name: str = "") -> str:
    title = name or FRAMEWORKS.get(framework.name, framework.name)
    return " ".join(filter(None, (title, known(framework.version))))


def _tensor_cores(judged: Iterable[ModeVerdict]) -> str:
    """ "Tensor Cores proven in 5 modes": in a mode where every level and GPU that has it proves it."""
    modes: dict[str, bool] = {}
    for row in judged:
        if not row.control and row.mode != "fp32" and row.verdict != "not applicable":
            modes[row.mode] = modes.get(row.mode, True) and row.verdict == "proven"
    proven = sum(modes.values())
    if not proven:
        return ""
    of = "" if proven == len(modes) else f" of {len(modes)}"
    return f"Tensor Cores proven in {proven}{of} mode{'' if len(modes) == 1 else 's'}"
