"""A machine's report as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator

from ..checks.registry import area_title
from ..facts.snapshot import Snapshot
from ..findings.model import ELSEWHERE
from . import acceleration, html, tensorcores
from .areas import area_outcome
from .devices import devices
from .headlines import gpu_indices
from .html import Masthead, PageSection
from .model import Report, by_area, count, tally, verdict, was_left_out
from .plain import WORDS, Column, code_ranges, gist
from .results import ReportedResult
from .sections import Block, Fold, Note, ReportSection, Span, Table, problems, together
from .summary import area_facts
from .verdict import OverallVerdict

_WORDS = {**WORDS, "skipped": "skipped"}
_EVIDENCE, _PROBLEMS = 12, 60
_DEVICES = 128
_TABLES = 4  # of a bench: its own page has all of them
_DEVICE_COLUMNS = (
    *("Device", "PCI address", "NUMA node", "Link", "NVLinks", "MIG"),
    *("Reported", "State"),
)
_CHECK_COLUMNS = (
    Column("Check"),
    Column("Outcome"),
    Column("What it asks for", wraps=True),
    Column("What was seen", wraps=True),
)


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: the machine's, where its fleet has one. back: a link to the fleet's page."""
    found = verdict(report, snapshot)
    hostname = report.machine.hostname or ""
    title = name or (hostname if not hostname.startswith("<") else "") or "This machine"
    sections = [
        *_problems(report, snapshot),
        page_section(_machine(snapshot, report)),
        *_optional(tensorcores.section(report, snapshot)),
        *_optional(acceleration.section(report, snapshot)),
        *_bench(snapshot),
        *_soak(snapshot, report),
        page_section(_checks(report, snapshot)),
    ]
    return html.page(
        f"{_word(found)}: {title}, envcheck",
        _masthead(report, found, title, back),
        sections,
        foot=f"envcheck {report.envcheck}; envcheck explain CODE describes a check",
        styles=["machine.css"],
        generator=html.OF_A_FLEET if back else "envcheck",
    )


def _word(found: OverallVerdict) -> str:
    word = found.lead or "; ".join(found.items)
    return word[:1].upper() + word[1:]


def _masthead(report: Report, found: OverallVerdict, title: str, back: str) -> Masthead:
    machine, target = report.machine, report.target
    return Masthead(
        about_what="machine report",
        title=title,
        kind=found.sign,
        word=_word(found),
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


def page_section(one: ReportSection) -> PageSection:
    data = {"summary": one.summary, "blocks": one.blocks}
    return PageSection(one.id, one.title, "section.html", data, one.count)


def _optional(one: ReportSection | None) -> list[PageSection]:
    return [] if one is None else [page_section(one)]


def _problems(report: Report, snapshot: Snapshot) -> Iterator[PageSection]:
    """What is wrong, and what could not be checked; no section where neither is."""
    found = list(problems(report.results, gpu_indices(snapshot)))
    if not found:
        return
    outcomes = {one.outcome for one in found}
    title = (
        "Problems" if "fail" in outcomes else "Warnings" if "warn" in outcomes else "Not checked"
    )
    data = {
        "problems": [
            (one, code_ranges(other.code for other in one.follows)) for one in found[:_PROBLEMS]
        ],
        "more": max(0, len(found) - _PROBLEMS),
        "evidence": _EVIDENCE,
        "root": report.root,
        "words": _WORDS,
    }
    yield PageSection("problems", title, "machine/problems.html", data, str(len(found)))


def _machine(snapshot: Snapshot, report: Report) -> ReportSection:
    """The devices by NUMA node, in the columns in which anything stands."""
    found, gpus_known = devices(snapshot, report.results)
    found = sorted(found[:_DEVICES], key=lambda one: -1 if one.node is None else one.node)
    rows: list[list[Span]] = []
    for one in found:
        faults = "; ".join(f"{_WORDS[f.level]} {f.code} {f.words}" for f in one.faults)
        state = faults or ("not listed" if one.gone else _WORDS["pass"])
        kind = one.faults[0].level if one.faults else "skipped" if one.gone else "pass"
        node = "" if one.node is None else str(one.node)
        texts = (f"{one.title} {one.name}".strip(), one.address, node, one.link, one.nvlinks)
        rows.append([(text, "") for text in (*texts, one.mig, ", ".join(one.notes))])
        rows[-1].append((state, kind))
    shown = [n for n in range(len(_DEVICE_COLUMNS)) if any(row[n][0] for row in rows)]
    columns = [Column(_DEVICE_COLUMNS[n], wraps=n in (0, 7)) for n in shown]
    summary = "" if any(one.title.startswith("GPU") for one in found) else "It has no NVIDIA GPU."
    if not gpus_known:
        summary = "Its GPUs are not known."
    table = Table(columns, [[row[n] for n in shown] for row in rows])
    return ReportSection("machine", "The machine", summary, [table] if rows else [])


def _bench(snapshot: Snapshot) -> Iterator[PageSection]:
    document = snapshot.target
    if document is None or document.bench is None:
        return
    from ..bench.results import results
    from . import bench_page

    found = results(snapshot)
    if found is None:
        about = f"Nothing was measured: {document.bench.reason or document.bench.outcome}"
        yield PageSection("bench", "Bench", "paragraph.html", {"text": about})
        return
    about = f"{len(found.rows)} rows, begun {found.bench.began}"
    parts = bench_page.parts(found, snapshot, found.bench.left_out, most=_TABLES)
    yield PageSection("bench", "Bench", "paragraph.html", {"text": about}, parts=parts)


def _soak(snapshot: Snapshot, report: Report) -> Iterator[PageSection]:
    probe = snapshot.machine.soak
    if probe is None:
        return
    if probe.facts is None:
        about = f"Nothing was measured: {probe.reason or probe.outcome}"
        yield PageSection("soak", "Soak", "paragraph.html", {"text": about})
        return
    from . import soak_page

    results = [result for result in report.results if result.area == "soak"]
    yield soak_page.section(probe.facts, results)


def _checks(report: Report, snapshot: Snapshot) -> ReportSection:
    folds: list[Block] = []
    for area, results in by_area(report.results).items():
        outcome = area_outcome(results)
        facts = area_facts(area, snapshot, report.tensor_cores)
        about = "; ".join(filter(None, (", ".join(facts), tally(count(results)))))
        rows: list[list[Span]] = [
            [
                (one.code, "code"),
                (_WORDS[one.outcome], one.outcome),
                (one.title, ""),
                (_seen(one), ""),
            ]
            for one in results
            if not _is_aside(one)
        ]
        aside = together((one.reason, one.code) for one in results if _is_aside(one))
        blocks: list[Block] = [Table(_CHECK_COLUMNS, rows)] if rows else []
        blocks += [
            Note([(f"{code_ranges(codes)}: {why}", "quiet")]) for why, codes in aside.items()
        ]
        spans = [(_WORDS[outcome], outcome), (area_title(area), "heading"), (about, "quiet")]
        folds.append(Fold(spans, blocks))
    summary = f"{tally(report.counts)}."
    return ReportSection("checks", "All checks", summary, folds, str(len(report.results)))


def _is_aside(result: ReportedResult) -> bool:
    return was_left_out(result) or result.reason in ELSEWHERE


def _seen(result: ReportedResult) -> str:
    because = f"because of {result.consequence_of}: " if result.consequence_of else ""
    return result.detail if result.outcome == "pass" else because + gist(result)
