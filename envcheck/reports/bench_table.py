"""A bench's rows as tables, a table for each model and style: cells and notes, for text and for HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ..bench.records import ReferenceRate, RowResult
from ..facts.base import known
from ..findings.model import Outcome
from . import bench_words as words
from .plain import WORDS, number_of

_ORDER = ("fail", "warn", "could-not-run", "")
Cell = tuple[str, "Outcome | str"]  # text, style


class BenchColumn(NamedTuple):
    """``rank``: the higher, the sooner it is left out where a page is narrow; 0: never."""

    heading: str
    rank: int
    cell: Callable[[RowResult], Cell | str]
    right: bool = True


class BenchNote(NamedTuple):
    """A remark on a row, or on several."""

    level: Outcome | str
    names: tuple[str, ...]
    text: str

    @property
    def word(self) -> str:
        """ "FAIL"; "" for a mere remark."""
        return WORDS.get(self.level, "")  # type: ignore[call-overload,no-any-return]


class BenchTable(msgspec.Struct, frozen=True, kw_only=True):
    title: str
    unit: str
    columns: list[BenchColumn]
    rows: list[list[Cell]]
    results: list[RowResult]
    notes: list[BenchNote]


class Footnotes:
    """The figures that rows are held against, each with a number; of one report."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str, str], int] = {}

    def of(self, reference: ReferenceRate) -> int:
        key = (reference.kind, reference.about, reference.source)
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def lines(self) -> Iterator[str]:
        """ "[1] published: A100 40GB, AMP, batch 256 (github.com/…)" """
        for (kind, about, source), number in self.numbers.items():
            text = ": ".join(filter(None, (words.KINDS[kind], about)))
            yield f"[{number}] {text}" + (f" ({source})" if source else "")


def tables(
    results: list[RowResult], gpus: Mapping[str, str], footnotes: Footnotes
) -> list[BenchTable]:
    """gpus: what each address's GPU is called."""
    kinds: dict[tuple[object, ...], list[RowResult]] = {}
    for result in results:
        row = result.run.row
        key = (row.model, row.style, row.image, row.length, row.small)
        kinds.setdefault(key, []).append(result)
    return [_table(rows, gpus, footnotes) for rows in kinds.values()]


def _table(rows: list[RowResult], gpus: Mapping[str, str], footnotes: Footnotes) -> BenchTable:
    unit = next((one.rate.unit for one in rows if one.rate is not None), "samples/s")
    # A column without anything in it is left out, but for the mode, the batch and the rate.
    shown = []
    for column in _columns(rows, gpus, footnotes, unit):
        cells = [column.cell(result) for result in rows]
        styled: list[Cell] = [(one, "") if isinstance(one, str) else one for one in cells]
        if any(text for text, _style in styled):
            shown.append((column, styled))
    versioned = next((one for one in rows if known(one.run.framework_version)), rows[0])
    return BenchTable(
        title=words.title_of(versioned),
        unit=unit,
        columns=[column for column, _cells in shown],
        rows=[list(line) for line in zip(*(cells for _column, cells in shown), strict=True)],
        results=rows,
        notes=notes(rows),
    )


def _columns(
    rows: list[RowResult], gpus: Mapping[str, str], footnotes: Footnotes, unit: str
) -> list[BenchColumn]:
    groups: dict[str, int] = {}
    for one in rows:
        groups.setdefault(one.run.row.group, len(groups) + 1)
    places = {words.where(one.run.row, gpus) for one in rows}

    def group(one: RowResult) -> str:
        return str(groups[one.run.row.group]) if len(groups) > 1 and one.run.row.group else ""

    def held_against(one: RowResult) -> Cell:
        reference = words.reference_of(one)
        if reference is None or one.rate is None:
            return "", ""
        return f"{words.share_of(one)} [{footnotes.of(reference)}]", one.verdict

    def gpu(one: RowResult) -> str:
        return words.where(one.run.row, gpus) if len(places) > 1 else ""

    def memory(name: str) -> Callable[[RowResult], str]:
        return lambda one: words.gib(known(getattr(one.run.memory, name)))

    compiler = words.COMPILERS[rows[0].run.row.style]
    return [
        BenchColumn("Group", 7, group),
        BenchColumn("GPU", 0, gpu),
        BenchColumn("AMP", 1, lambda one: _yes(one.run.row.precision == "amp"), right=False),
        BenchColumn(compiler, 2, lambda one: _yes(one.run.row.compiled), right=False),
        BenchColumn("Type", 1, lambda one: words.precision_of(one.run.row), right=False),
        BenchColumn("Batch", 0, lambda one: f"{one.run.row.batch:,}"),
        BenchColumn(unit[:1].upper() + unit[1:], 0, _rate),
        BenchColumn("Speed", 0, _speed_up),
        BenchColumn("Tensors", 5, memory("tensors_mib")),
        BenchColumn("Pool", 6, memory("pool_mib")),
        BenchColumn("Share", 0, held_against),
        BenchColumn("MFU", 4, lambda one: words.share(one.utilisation) if one.utilisation else ""),
        BenchColumn("Epoch", 3, _epoch),
    ]


def _yes(is_so: bool) -> str:
    return "yes" if is_so else "no"


def _rate(one: RowResult) -> Cell:
    return words.rate_of(one), one.verdict or ("" if one.rate is not None else "quiet")


def _epoch(one: RowResult) -> str:
    return f"{words.number(one.epoch_seconds)} s" if one.epoch_seconds else ""


def _speed_up(one: RowResult) -> str:
    if one.speed_up is not None:
        return f"×{one.speed_up:.2f}"
    if one.against:
        return "in noise"
    return "unproven" if words.unproven(one) else ""


def notes(rows: list[RowResult]) -> list[BenchNote]:
    """Remarks on rows; the same remark on several is one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for result in rows:
        for level, text in _notes(result):
            groups.setdefault((level, text), []).append(result.run.row.name)
    found = [BenchNote(level, tuple(names), text) for (level, text), names in groups.items()]
    return sorted(found, key=lambda note: _ORDER.index(note.level))


def _notes(result: RowResult) -> Iterator[tuple[str, str]]:
    run, rate = result.run, result.rate
    if result.verdict in ("warn", "fail"):
        yield result.verdict, result.verdict_words or "slower than it should be"
    if result.suspect and (not result.verdict or result.verdict_by in ("", "baseline")):
        yield "", f"first suspect: {result.suspect}"
    if result.unsteady and rate is not None:
        yield "", f"its repetitions differ by {rate.spread:.0%}: too much to be judged"
    if run.outcome != "ok":
        level = "could-not-run" if run.outcome in ("error", "timeout", "crashed") else ""
        yield level, words.outcome_of(result) + (f": {run.reason}" if run.reason else "")
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
