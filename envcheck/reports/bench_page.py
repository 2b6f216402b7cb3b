"""The report of `envcheck bench` as one HTML page: what differs first, then the rates."""

from __future__ import annotations

from collections.abc import Iterator

from ..bench.records import BenchResult
from ..facts.snapshot import Snapshot
from . import bench_table, html
from . import bench_words as words
from .bench_model import BenchReport, gpu_names
from .html import Masthead, PageSection
from .page_sections import page_section, problem_sections
from .plain import duration
from .sections import Advice, ReportSection

_ROWS = 40  # of the differences: the worst
_SCALE = 0.1  # the least difference that a bar's full length stands for


def render(report: BenchReport, found: BenchResult, snapshot: Snapshot) -> str:
    machine, target = report.machine, report.target
    verdict = report.verdict[:1].upper() + report.verdict[1:]
    again = Advice("The same again:", [report.command], here=True)
    head = Masthead(
        about_what="bench",
        title=machine.hostname or "This machine",
        kind=report.outcome,
        word=verdict,
        about=machine.summary,
        simulated=report.simulated,
        note=report.note,
        facts=[
            ("Ran", f"{', '.join(report.asked) or 'the default rows'}; {duration(report.seconds)}"),
            ("Began", report.began.replace("T", " ").replace("Z", " UTC")),
            ("Target", target.summary if target is not None else ""),
            ("With", " ".join(f"{name}={value}" for name, value in report.settings.items())),
        ],
    )
    differing, *rates = sections(found, snapshot)
    return html.page(
        f"{verdict}: bench of {head.title}, envcheck",
        head,
        [
            differing,
            *problem_sections(report.results, snapshot),
            *rates,
            page_section(ReportSection("again", "Run again", "", [again])),
        ],
        foot=f"envcheck {report.envcheck}",
        styles=["machine.css"],
    )


def sections(found: BenchResult, snapshot: Snapshot) -> Iterator[PageSection]:
    """The differences, and the tables of all rows."""
    gpus = gpu_names(snapshot)
    compared = [
        (one.rate.median / reference.rate - 1, one, reference)
        for one in found.rows
        if one.rate is not None and (reference := words.reference_of(one)) is not None
    ]
    compared.sort(key=lambda one: one[0])
    scale = max([_SCALE, *(abs(share) for share, _, _ in compared)])
    data = {"rows": compared[:_ROWS], "scale": scale, "gpus": gpus, "words": words}
    yield PageSection("differences", "Differences", "differences.html", data)
    for one in bench_table.sections(found, gpus, found.bench.left_out):
        yield page_section(one)
