"""The scorecard: all faults, the public reports and the healthy machines, counted and written down."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import corpus
import fleet
import jinja2
import msgspec
from first_sight import case
from first_sight import score as first_score
from first_sight.judged import SETS, Total, folder, judged, totals
from first_sight.score import Seen
from world import environments
from world.bases import BASES
from world.machine import Machine
from world.pci import switch_acs_on

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot
from envcheck.reports.model import build

from . import run
from .model import Fault
from .score import Row, Score, by_theme, shown, total
from .themes.system import rdma

Progress = Callable[[int, int], None]


@dataclass
class Healthy:
    """Healthy machines, and the problems reported on them all the same."""

    name: str
    machines: int = 0
    failures: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)

    def add(self, machine: str, findings: Iterable[tuple[str, str, str]]) -> None:
        """findings: (level, code, words)."""
        self.machines += 1
        for level, code, words in findings:
            kept = self.failures if level == "fail" else self.warnings
            kept.append(f"{machine}: {code}: {words[:160]}")


@dataclass
class Card:
    """All that was counted."""

    scores: list[Score]
    reports: list[Score]
    healthy: list[Healthy]
    first: list[Total] = field(default_factory=list)  # at first sight

    @property
    def themes(self) -> list[Row]:
        return by_theme(self.scores)

    @property
    def report_rows(self) -> list[Row]:
        rows: dict[str, Row] = {}
        for score in self.reports:
            row = rows.setdefault(score.theme, Row(score.theme))
            row.count(score)
        return [rows[name] for name in sorted(rows)]

    @property
    def misleading(self) -> list[str]:
        scores = self.scores + self.reports
        return [f"{score.name}: {words}" for score in scores for words in score.misleading]

    @property
    def false_failures(self) -> int:
        return sum(len(group.failures) for group in self.healthy)


def take(faults: Iterable[Fault], progress: Progress = lambda done, of: None) -> Card:
    """Run everything; takes minutes. Raises enter.NoNamespaces, libraries.NoCompiler."""
    taken = faults_alone(faults, progress)
    return Card(taken.scores, reports(), [made_up(), simulated()], first_sight())


def faults_alone(faults: Iterable[Fault], progress: Progress = lambda done, of: None) -> Card:
    faults = list(faults)
    scores = []
    for score in run.side_by_side(run.score, faults):
        scores.append(score)
        progress(len(scores), len(faults))
    return Card(scores, [], [])


def first_sight() -> list[Total]:
    """The cases of tests/first_sight: as they were judged once, and what they score today."""
    folders = {folder(name, row.kind) for name in SETS for row in judged(name)}
    every = {(where, name): one for where in folders for name, one in case.cases(where).items()}
    now = dict(zip(every, run.side_by_side(_case, every.values()), strict=True))
    return [total for name in SETS for total in totals(name, now)]


def _case(one: case.Case) -> Seen:
    try:
        return first_score.judge(one, run.report(case.machine(one)))
    except (RuntimeError, TimeoutError) as error:
        return Seen(False, False, (), (str(error),))


def reports() -> list[Score]:
    """The public problem reports of tests/corpus, as Snapshots."""
    found = []
    for name, report in corpus.reports().items():
        seen = corpus.judged(report)
        why = report.unseen or f"found: {', '.join(seen.codes) or 'nothing'}"
        words = [f"{code}: {seen.codes[code][:160]}" for code in seen.misleading]
        named = bool(report.code) and seen.named
        remedied = named and seen.remedy
        found.append(
            Score(
                name,
                report.theme,
                bool(report.code) and seen.found,
                named,
                remedied,
                words,
                "" if remedied else why,
                report.unseen,
            )
        )
    return found


def well() -> dict[str, Machine]:
    """The healthy machines into which faults go, and some with an environment to look into."""
    found = {name: base() for name, base in BASES.items()}
    for ports in ("InfiniBand", "Ethernet"):
        found[f"h100 with {ports}"] = BASES["h100"]()
        rdma(found[f"h100 with {ports}"], link_layer=ports)
    found["h100 with InfiniBand by DMA-BUF"] = BASES["h100"]()
    rdma(found["h100 with InfiniBand by DMA-BUF"])
    found["h100 with InfiniBand by DMA-BUF"].modules.remove("nvidia_peermem")
    found["a100-mig with ACS on root ports alone"] = BASES["a100-mig"]()
    found["a100-mig with ACS on root ports alone"].pair_level = 30
    switch_acs_on(found["a100-mig with ACS on root ports alone"].devices)
    for base, name, packages in (
        ("h100", "TensorFlow", environments.tensorflow()),
        ("rtx4090", "PyTorch", environments.torch()),
    ):
        made = BASES[base]()
        environments.install(made, packages)
        found[f"{base} with {name}"] = made
    return found


def made_up() -> Healthy:
    """The healthy ones of the made-up machines, through the collector."""
    group = Healthy("made-up machines, through the collector")
    machines = well()
    for name, report in zip(machines, run.side_by_side(run.report, machines.values()), strict=True):
        group.add(name, ((one.level, one.code, one.words) for one in shown(report)))
    return group


def simulated() -> Healthy:
    """The fleet, as Snapshots."""
    group = Healthy("simulated machines, as Snapshots")
    for name, snapshot in fleet.fleet():
        group.add(name, _findings(snapshot))
    return group


def _findings(snapshot: Snapshot) -> Iterable[tuple[str, str, str]]:
    report: Any = msgspec.to_builtins(build(snapshot, diagnose(snapshot)))
    return ((one.level, one.code, one.words) for one in shown(report))


def page(card: Card) -> str:
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        trim_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )
    pages.filters |= {"plain": _plain, "mark": lambda yes: "✓" if yes else "✗"}
    return pages.get_template("card.md.j2").render(card=card, total=total)


def _plain(text: str) -> str:
    """In a cell of a table, without what would become markup; addresses of no machine."""
    return re.sub(r"([|*])", r"\\\1", " ".join(text.split()).translate({60: "‹", 62: "›"}))


def tables(text: str) -> list[str]:
    """The rows of a page's tables that count."""
    return re.findall(r"^\| [^|]+ \| \d+ \|.*$", text, re.M)
