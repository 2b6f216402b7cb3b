"""The page of plots of `envcheck bench --format html`."""

from __future__ import annotations

from collections.abc import Iterator

from ...bench.records import BenchResult
from ...facts.snapshot import Snapshot
from .. import html_page as html
from ..bench_model import BenchReport, RowReport
from ..html_page import PageSection
from ..html_script import SCRIPT
from ..plain import finding_lines
from .parts import ROWS, parts

_KINDS = {"problems": "fail", "could-not-look": "could-not-run", "healthy": "pass"}


def render(report: BenchReport, found: BenchResult, snapshot: Snapshot) -> str:
    """The whole page. Of the Snapshot's words nothing becomes markup."""
    sections = [
        *_checks(report),
        *parts(found, snapshot, report.left_out),
        PageSection("repeat", "To repeat it", [*_repeat(report)]),
    ]
    title = report.verdict if not report.simulated else f"Simulated: {report.verdict}"
    return html.whole(
        f"envcheck bench: {title}",
        map(html.section, sections),
        head=_head(report),
        contents=html.contents(sections),
        kind=_kind(report),
        script=SCRIPT,
    )


def _kind(report: BenchReport) -> str:
    """Nothing to hold a figure against is no praise."""
    kind = _KINDS[report.status]
    warned = any(row.result.verdict == "warn" for row in report.rows)
    warned = warned or any(one.outcome == "warn" for one in (*report.results, *report.systems))
    judged = any(row.result.verdict == "pass" for row in report.rows) or report.systems
    return kind if kind != "pass" else "warn" if warned else "pass" if judged else "skipped"


def _head(report: BenchReport) -> str:
    machine = report.machine
    word, colon, rest = report.verdict.partition(": ")
    asked = ", ".join(report.asked) or "what tells most"
    facts = html.facts(
        [
            ("Target", report.target.summary if report.target is not None else ""),
            ("Rows asked for", asked),
            ("Began", report.began + (", interrupted" if report.interrupted else "")),
        ]
    )
    return (
        html.masthead(
            "bench",
            machine.hostname or "This machine",
            _kind(report),
            word[:1].upper() + word[1:],
            [rest] if colon else [],
            about=machine.summary,
            simulated=report.simulated,
        )
        + html.paragraph(report.note, "warn")
        + facts
    )


def _checks(report: BenchReport) -> Iterator[PageSection]:
    told = [one for one in report.results if one.findings]
    lines = []
    for one in told:
        lines.append(html.heading(f"{one.code}: {one.title}", 3))
        lines.append(html.listed(("", "", line) for line in finding_lines(one)))
    if lines:
        yield PageSection("wrong", "What is wrong, and what to do", lines, str(len(told)))


def _repeat(report: BenchReport) -> Iterator[str]:
    """What is needed to have the same figures again."""
    yield html.command(report.command)
    settings = " ".join(f"{name}={value}" for name, value in report.settings.items())
    machine = report.machine
    yield html.facts(
        [
            ("envcheck", report.envcheck),
            ("Driver", report.driver),
            ("CUDA of the driver", machine.cuda or ""),
            ("Kernel", machine.kernel or ""),
            ("System", machine.os or ""),
            ("Container", report.inside),
            ("Settings", settings),
        ]
    )
    yield html.table(
        [
            ("Row", ""),
            ("Framework", ""),
            ("GPUs", ""),
            ("Seed", "right"),
            ("Rounds", "right"),
            ("Evidence", "wraps"),
        ],
        [_repeated(row) for row in report.rows[:ROWS]],
    )


def _repeated(row: RowReport) -> list[tuple[str, str]]:
    run = row.result.run
    evidence = ", ".join(f"{name}: {value}" for name, value in run.evidence.items())
    return [
        (row.name, ""),
        (row.framework, ""),
        (", ".join(row.gpus) or "CPU", ""),
        (str(run.row.seed), ""),
        (str(len(run.repetitions)), ""),
        (evidence, ""),
    ]
