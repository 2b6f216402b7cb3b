"""A machine's report as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator

from ..checks.registry import area_title
from ..facts.snapshot import Snapshot
from ..findings.model import ELSEWHERE
from . import acceleration, html, tensorcores
from .areas import area_outcome, facts_and_counts
from .devices import devices
from .headlines import gpu_indices
from .html import Masthead
from .model import Report, by_area, tally, verdict, was_left_out
from .page_sections import OUTCOME_WORDS, page_section, problem_sections
from .plain import Column, code_ranges, gist, together
from .results import ReportedResult
from .sections import Block, Fold, Note, ReportSection, Span, Table

_DEVICES = 128
_DEVICE_COLUMNS = ("Device", "PCI address", "NUMA node", "Link", "NVLinks", "MIG", "State")
_CHECK_COLUMNS = (
    Column("Check"),
    Column("Outcome"),
    Column("What it asks for", wraps=True),
    Column("What was seen", wraps=True),
)


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: the machine's, where its fleet has one. back: a link to the fleet's page."""
    masthead = _masthead(report, snapshot, name, back)
    sections = [
        _machine(snapshot, report),
        tensorcores.section(report, snapshot),
        acceleration.section(report, snapshot),
        *_measured(snapshot),
        _checks(report, snapshot),
    ]
    problems = problem_sections(report.results, gpu_indices(snapshot), report.root)
    return html.page(
        f"{masthead.word}: {masthead.title}, envcheck",
        masthead,
        [*problems, *(page_section(one) for one in sections if one is not None)],
        foot=f"envcheck {report.envcheck}; envcheck explain CODE describes a check",
        styles=["machine.css"],
        generator=html.OF_A_FLEET if back else "envcheck",
    )


def _masthead(report: Report, snapshot: Snapshot, name: str, back: str) -> Masthead:
    machine, target, found = report.machine, report.target, verdict(report, snapshot)
    hostname = machine.hostname or ""
    word = found.lead or "; ".join(found.items)
    return Masthead(
        about_what="machine report",
        title=name or (hostname if not hostname.startswith("<") else "") or "This machine",
        kind=found.sign,
        word=word[:1].upper() + word[1:],
        items=found.items if found.lead else [],
        about=machine.summary or "nothing is known of it",
        back=(back, "All machines") if back else ("", ""),
        simulated=report.simulated,
        facts=[
            ("Collected", machine.collected_at.replace("T", " ").replace("Z", " UTC")),
            ("Kernel", machine.kernel or ""),
            ("Container", machine.container or ""),
            ("Target", target.summary if target is not None else ""),
        ],
    )


def _machine(snapshot: Snapshot, report: Report) -> ReportSection:
    """The devices by NUMA node, in the columns in which anything stands."""
    found, gpus_known = devices(snapshot, report.results)
    found = sorted(found[:_DEVICES], key=lambda one: -1 if one.node is None else one.node)
    rows: list[list[Span]] = []
    for one in found:
        faults = "; ".join(f"{OUTCOME_WORDS[f.level]} {f.code} {f.words}" for f in one.faults)
        state = faults or one.note or OUTCOME_WORDS["pass"]
        kind = one.faults[0].level if one.faults else "skipped" if one.note else "pass"
        node = "" if one.node is None else str(one.node)
        texts = (f"{one.title} {one.name}".strip(), one.address, node, one.link, one.nvlinks)
        rows.append([*((text, "") for text in (*texts, one.mig)), (state, kind)])
    shown = [n for n in range(len(_DEVICE_COLUMNS)) if any(row[n][0] for row in rows)]
    columns = [Column(_DEVICE_COLUMNS[n], wraps=n in (0, 6)) for n in shown]
    summary = "" if any(one.title.startswith("GPU") for one in found) else "It has no NVIDIA GPU."
    if not gpus_known:
        summary = "Its GPUs are not known."
    table = Table(columns, [[row[n] for n in shown] for row in rows])
    return ReportSection("machine", "The machine", summary, [table] if rows else [])


def _measured(snapshot: Snapshot) -> Iterator[ReportSection]:
    """A bench and a soak, or why there is nothing to show of them."""
    from ..bench.results import results
    from . import bench_table, soak
    from .bench_model import gpu_names

    probe = None if snapshot.target is None else snapshot.target.bench
    found = results(snapshot) if probe is not None else None
    if found is not None:
        yield from bench_table.sections(found, gpu_names(snapshot), found.bench.left_out)
    elif probe is not None:
        about = f"nothing was measured: {probe.reason or probe.outcome}"
        yield ReportSection("bench", "Bench", about, [])
    soaked = snapshot.machine.soak
    if soaked is not None and soaked.facts is not None:
        yield soak.section(soaked.facts)
    elif soaked is not None:
        about = f"nothing was measured: {soaked.reason or soaked.outcome}"
        yield ReportSection("soak", "Soak", about, [])


def _checks(report: Report, snapshot: Snapshot) -> ReportSection:
    folds: list[Block] = []
    for area, results in by_area(report.results).items():
        outcome = area_outcome(results)
        about = facts_and_counts(area, results, report, snapshot)
        unasked = [one for one in results if was_left_out(one) or one.reason in ELSEWHERE]
        rows: list[list[Span]] = [
            [
                (one.code, "code"),
                (OUTCOME_WORDS[one.outcome], one.outcome),
                (one.title, ""),
                (_seen(one), ""),
            ]
            for one in results
            if one not in unasked
        ]
        aside = together((one.reason, one.code) for one in unasked)
        blocks: list[Block] = [Table(_CHECK_COLUMNS, rows)] if rows else []
        blocks += [
            Note([(f"{code_ranges(codes)}: {why}", "quiet")]) for why, codes in aside.items()
        ]
        spans = [(OUTCOME_WORDS[outcome], outcome), (area_title(area), "heading"), (about, "quiet")]
        folds.append(Fold(spans, blocks))
    summary = f"{tally(report.counts)}."
    return ReportSection("checks", "All checks", summary, folds, str(len(report.results)))


def _seen(result: ReportedResult) -> str:
    because = f"because of {result.consequence_of}: " if result.consequence_of else ""
    return result.detail if result.outcome == "pass" else because + gist(result)
