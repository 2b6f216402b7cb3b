"""The report of `envcheck bench` as one HTML page: what differs first, then the rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..bench.records import BenchResult, RowResult
from ..facts.snapshot import Snapshot
from . import bench_table, html
from . import bench_words as words
from .bench_model import BenchReport, gpu_names
from .bench_progress import duration
from .html import Masthead, PageSection
from .page_sections import page_section, problem_sections
from .sections import Advice, ReportSection

_ROWS = 40  # of the differences: the worst
_SCALE = 0.1  # the least share that a bar's full length stands for


class _Difference(NamedTuple):
    """share: of the reference, that the row is above or below it. length: of its bar, -1 to 1."""

    gpu: str
    row: str
    verdict: str
    share: float
    length: float
    rate: str
    number: str  # of the reference
    reference: str


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
            page_section(ReportSection("again", "Again", "", [again])),
        ],
        foot=f"envcheck {report.envcheck}",
        styles=["machine.css"],
    )


def sections(found: BenchResult, snapshot: Snapshot) -> Iterator[PageSection]:
    """The differences, and the tables of all rows."""
    gpus = gpu_names(snapshot)
    compared = sorted(_differences(found, gpus), key=lambda one: one.share)[:_ROWS]
    yield PageSection("differences", "Differences", "differences.html", {"rows": compared})
    for one in bench_table.sections(found, gpus, found.bench.left_out):
        yield page_section(one)


def _differences(found: BenchResult, gpus: dict[str, str]) -> Iterator[_Difference]:
    shares = {id(one): share for one in found.rows if (share := _share(one)) is not None}
    scale = max([_SCALE, *map(abs, shares.values())])
    for one in found.rows:
        reference, row = words.reference_of(one), one.run.row
        if id(one) in shares and reference is not None:
            place = words.where(row, gpus)
            yield _Difference(
                gpu=f"GPU {place}" if row.gpus else place,
                row=row.name,
                verdict=one.verdict,
                share=shares[id(one)],
                length=shares[id(one)] / scale,
                rate=words.rate_of(one),
                number=words.number(reference.rate),
                reference=words.reference_in_words(reference),
            )


def _share(one: RowResult) -> float | None:
    """By how much of its reference a row is above it; None without one."""
    reference = words.reference_of(one)
    if reference is None or one.rate is None:
        return None
    return one.rate.median / reference.rate - 1
