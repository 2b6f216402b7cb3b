"""Acceleration systems, and what a bench or a soak in the Snapshot came to."""

from __future__ import annotations

from collections.abc import Iterator

from ...facts.snapshot import Snapshot
from .. import acceleration
from .. import html_page as html
from ..html_page import PageSection
from ..machine import facts
from ..model import Report
from ..plots.svg import text

_TABLES = 4  # of a bench: its own page has all of them


def systems(report: Report) -> Iterator[PageSection]:
    """A line a system; those of which the same is to be said share one. None where none was asked for."""
    results = acceleration.asked(report)
    if not results:
        return
    rows = []
    alike: dict[tuple[str, str], list[str]] = {}
    for result in results:
        word, why = acceleration.state(result), acceleration.why(result)
        if result.outcome == "skipped":
            alike.setdefault((word, why), []).append(result.title)
            continue
        rows.append(
            [
                (text(result.title), ""),
                (html.state(result.outcome, word), ""),
                (text(why), ""),
                (f'<span class="code">{text(result.code)}</span>', "quiet"),
            ]
        )
    columns = [("System", ""), ("State", ""), ("What was seen", "wraps"), ("Check", "")]
    parts = [
        html.paragraph(
            acceleration.summary(results)[:1].upper() + acceleration.summary(results)[1:]
        )
    ]
    if rows:
        parts.append(html.markup_table(columns, rows))
    parts.append(
        html.listed(
            (f"{word}:", "skipped", f"{', '.join(titles)}{f' ({why})' if why else ''}")
            for (word, why), titles in alike.items()
        )
    )
    yield PageSection("acceleration", "Acceleration systems", parts)


def bench(snapshot: Snapshot) -> Iterator[PageSection]:
    document = snapshot.target
    if document is None or document.bench is None:
        return
    from ...bench.results import results
    from ..bench_page.parts import parts

    found = results(snapshot)
    if found is None:
        why = document.bench.reason or document.bench.outcome
        yield PageSection("bench", "Bench", [html.paragraph(f"Nothing came of it: {why}")])
        return
    shown = parts(found, snapshot, found.bench.left_out, most=_TABLES)
    told = [html.paragraph(f"{len(found.rows)} rows, begun {found.bench.began}", "quiet")]
    yield PageSection("bench", "Bench", [*told, *(html.section(one, 3) for one in shown)])


def soak(snapshot: Snapshot, report: Report) -> Iterator[PageSection]:
    probe = snapshot.machine.soak
    if probe is None:
        return
    found = facts(probe)
    if found is None:
        why = probe.reason or probe.outcome
        yield PageSection("soak", "Soak", [html.paragraph(f"Nothing came of it: {why}")])
        return
    from ..soak_page import mismatches, plots, table
    from ..soak_words import summary, worst

    results = [result for result in report.results if result.area == "soak"]
    word, _, told = summary(found, results).partition(": ")
    kind = worst(results)
    seen = list(mismatches(found))
    parts = [
        f"<p>{html.state(kind, word)} {text(told)}</p>",
        table(found),
        *plots(found),
        *([html.heading("Wrong results", 3), *seen] if seen else []),
    ]
    yield PageSection("soak", "Soak", parts)
