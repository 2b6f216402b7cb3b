"""A bench as sections of a report, for text and for HTML: a table for each model and style, and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from ..bench.records import BenchResult, RowResult
from ..facts.base import known
from ..facts.bench import LeftOut
from . import bench_words as words
from .plain import WORDS, Column, number_of, together
from .sections import Note, ReportSection, Span, Table

TABLES, ROWS = 24, 200  # shown: the JSON report has all of them
_NAMES = 4  # rows that a note names
_ORDER = ("fail", "warn", "could-not-run", "")

_Cell = Callable[[RowResult], Span | str]  # text, or text and its style


def sections(
    found: BenchResult, gpus: Mapping[str, str], left_out: Sequence[LeftOut]
) -> list[ReportSection]:
    """gpus: what the GPU at each address is called."""
    each = ((one.run.row, one) for one in found.rows[:ROWS])
    kinds = together(((r.model, r.style, r.image, r.length, r.small), one) for r, one in each)
    references: dict[str, int] = {}
    parts = [
        ReportSection(f"rows-{place}", words.title_of(rows), "", _table(rows, gpus, references))
        for place, rows in enumerate(list(kinds.values())[:TABLES], 1)
    ]
    jobs = [(one.name, words.job_in_words(one)) for one in found.scaling]
    reasons = [(one.name, one.reason) for one in left_out[:ROWS]]
    figures = [(f"[{number}]", text) for text, number in references.items()]
    parts += named_notes("scaling", "All GPUs together", jobs)
    parts += named_notes("left-out", "Left out", reasons)
    return parts + named_notes("references", "Compared with", figures)


def named_notes(key: str, title: str, items: Iterable[tuple[str, str]]) -> list[ReportSection]:
    """A section, where it has items: names, and what there is to say of each."""
    notes = [Note([(f"{name}:", "code"), (text, "")], 1) for name, text in items]
    return [ReportSection(key, title, "", notes)] if notes else []


def _table(
    rows: list[RowResult], gpus: Mapping[str, str], references: dict[str, int]
) -> list[Table | Note]:
    """The table, without columns that are empty, and its notes."""
    columns = [Column("Row")]
    cells: list[list[Span]] = [[(one.run.row.name, "code") for one in rows]]
    for column, cell in _columns(rows, gpus, references):
        found = [cell(result) for result in rows]
        styled: list[Span] = [(one, "") if isinstance(one, str) else one for one in found]
        if any(text for text, _style in styled):
            columns.append(column)
            cells.append(styled)
    return [Table(columns, [list(line) for line in zip(*cells, strict=True)]), *_notes(rows)]


def _columns(
    rows: list[RowResult], gpus: Mapping[str, str], references: dict[str, int]
) -> list[tuple[Column, _Cell]]:
    unit = next((one.rate.unit for one in rows if one.rate is not None), "samples/s")
    places = {words.where(one.run.row, gpus) for one in rows}
    compiler = words.STYLES[rows[0].run.row.style][2]

    def share(one: RowResult) -> Span:
        reference = words.reference_of(one)
        if reference is None or one.rate is None:
            return "", ""
        text = words.reference_in_words(reference)
        number = references.setdefault(text, len(references) + 1)
        return f"{words.share(one.rate.median / reference.rate)} [{number}]", one.verdict

    def rate(one: RowResult) -> Span:
        return words.rate_of(one), one.verdict or ("" if one.rate is not None else "quiet")

    def memory(one: RowResult) -> str:
        mib = known(one.run.memory.tensors_mib)
        return "" if mib is None else f"{mib / 1024:.1f} GiB"

    def gpu(one: RowResult) -> str:
        return words.where(one.run.row, gpus) if len(places) > 1 else ""

    def used(one: RowResult) -> str:
        return words.share(one.utilisation) if one.utilisation else ""

    return [
        (Column("GPU", right=True), gpu),
        (Column("AMP", rank=3), lambda one: _yes(one.run.row.precision == "amp")),
        (Column(compiler, rank=4), lambda one: _yes(one.run.row.compiled)),
        (Column("Type", rank=2), lambda one: words.precision_of(one.run.row)),
        (Column("Batch", right=True, rank=1), lambda one: f"{one.run.row.batch:,}"),
        (Column(unit.capitalize(), right=True), rate),
        (Column("Speed", right=True), _speed_up),
        (Column("Tensors", right=True, rank=6), memory),
        (Column("Share", right=True), share),
        (Column("MFU", right=True, rank=5), used),
    ]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _speed_up(one: RowResult) -> str:
    if one.speed_up is not None:
        return f"×{one.speed_up:.2f}"
    if one.against:
        return "in noise"
    return "unproven" if words.unproven(one) else ""


def _notes(rows: list[RowResult]) -> Iterator[Note]:
    """Remarks on rows, the worst first; the same remark on several is one."""
    groups = together((remark, one.run.row.name) for one in rows for remark in _remarks(one))
    for (level, text), names in sorted(groups.items(), key=lambda one: _ORDER.index(one[0][0])):
        named = ", ".join(names[:_NAMES])
        if (more := len(names) - _NAMES) > 0:
            named += f" and {more} more"
        lead = [(WORDS[level], level)] if level else []  # type: ignore[index]
        yield Note([*lead, (f"{named}:", "code"), (text, "")], 1)


def _remarks(result: RowResult) -> Iterator[tuple[str, str]]:
    """(level, text)"""
    run, rate = result.run, result.rate
    if result.verdict in ("warn", "fail"):
        yield result.verdict, result.verdict_words or "slower than it should be"
    if result.suspect and (not result.verdict or result.verdict_by in ("", "baseline")):
        yield "", f"first suspect: {result.suspect}"
    if result.unsteady and rate is not None:
        yield "", f"its repetitions differ by {rate.spread:.0%}: too much to be judged"
    if run.outcome != "ok":
        level = "could-not-run" if run.outcome in ("error", "timeout", "crashed") else ""
        yield level, ": ".join(filter(None, (words.OUTCOMES[run.outcome], run.reason)))
    elif rate is None:
        yield "could-not-run", "no repetition was completed"
    if words.unproven(result):
        why = result.proof_words or "nothing shows that its mode was on"
        yield "warn" if result.proof == "not-engaged" else "", f"no speed-up: {why}"
    if skipped := sum(one.skipped for one in run.repetitions):
        steps = sum(one.steps for one in run.repetitions)
        yield "", f"the loss scaler skipped {skipped:,} of {steps:,} steps, which do not count"
    if run.outcome == "ok" and run.repetitions and not run.warm_up.steady:
        yield "", "its rate was not steady after the warm-up"
    if result.against and result.speed_up is None:
        overlap = f"its repetitions and those of {result.against} overlap, or are too few"
        yield "", f"no speed-up is given: {overlap}"
    if rate is not None and 0 < rate.repetitions < 5:
        yield "", f"only {number_of(rate.repetitions, 'repetition')}"
