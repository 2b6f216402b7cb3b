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

# Rows that do not measure a rate have sections of their own.
_ELSEWHERE = ("parity", "shapes")
_ORDER = ("fail", "warn", "could-not-run", "")


class BenchColumn(NamedTuple):
    """``rank``: the higher, the sooner it is left out where a page is narrow."""

    key: str
    heading: str
    rank: int
    right: bool = True


class BenchCell(NamedTuple):
    text: str
    style: Outcome | str = ""


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
    rows: list[list[BenchCell]]
    results: list[RowResult]
    notes: list[BenchNote]


class Footnotes:
    """The figures that rows are held against, each with a number; of one report."""

    def __init__(self) -> None:
        self.numbers: dict[tuple[str, str, str], int] = {}

    def of(self, reference: ReferenceRate) -> int:
        key = (reference.kind, reference.about, reference.source)
        return self.numbers.setdefault(key, len(self.numbers) + 1)

    def lines(self) -> Iterator[tuple[int, str]]:
        """(1, "published: A100 40GB, AMP, batch 256 (github.com/…)")"""
        for (kind, about, source), number in self.numbers.items():
            what = KINDS[kind]
            text = f"{what}: {about}" if about else what
            yield number, f"{text} ({source})" if source else text


KINDS = {
    "published": "published",
    "baseline": "the baseline",
    "other-gpu": "this run's other GPUs",
}


def tables(
    results: list[RowResult], gpus: Mapping[str, str], footnotes: Footnotes
) -> list[BenchTable]:
    """gpus: what each address's GPU is called."""
    kinds: dict[tuple[object, ...], list[RowResult]] = {}
    for result in results:
        row = result.run.row
        if row.what not in _ELSEWHERE:
            key = (row.model, row.style, row.train, row.image, row.length, row.small)
            kinds.setdefault(key, []).append(result)
    return [_table(rows, gpus, footnotes) for rows in kinds.values()]


def _table(rows: list[RowResult], gpus: Mapping[str, str], footnotes: Footnotes) -> BenchTable:
    unit = next((one.rate.unit for one in rows if one.rate is not None), "samples/s")
    columns = _columns(rows, gpus, unit)
    groups: dict[str, int] = {}
    lines = []
    for result in rows:
        group = result.run.row.group
        place = str(groups.setdefault(group, len(groups) + 1)) if group else ""
        lines.append([_cell(result, column.key, place, gpus, footnotes) for column in columns])
    versioned = next((one for one in rows if known(one.run.framework_version)), rows[0])
    return BenchTable(
        title=words.title_of(versioned),
        unit=unit,
        columns=columns,
        rows=lines,
        results=rows,
        notes=notes(rows),
    )


def _columns(rows: list[RowResult], gpus: Mapping[str, str], unit: str) -> list[BenchColumn]:
    style = rows[0].run.row.style
    places = {words.where(one.run.row, gpus) for one in rows}
    data = {one.run.row.data for one in rows} != {"synthetic"}
    memory = [one.run.memory for one in rows]
    there: list[tuple[object, BenchColumn]] = [
        (len({one.run.row.group for one in rows}) > 1, BenchColumn("group", "Group", 7)),
        (len(places) > 1, BenchColumn("gpu", "GPU", 0)),
        (True, BenchColumn("amp", "AMP", 1, right=False)),
        (True, BenchColumn("compiled", words.COMPILERS[style], 2, right=False)),
        (any(one.run.row.tensorrt for one in rows), BenchColumn("tensorrt", "TRT", 1, right=False)),
        (True, BenchColumn("precision", "Type", 1, right=False)),
        (data, BenchColumn("data", "Data", 1, right=False)),
        (True, BenchColumn("batch", "Batch", 0)),
        (True, BenchColumn("rate", unit[:1].upper() + unit[1:], 0)),
        (any(one.speed_up for one in rows), BenchColumn("speed_up", "Speed", 0)),
        (any(known(one.tensors_mib) for one in memory), BenchColumn("tensors", "Tensors", 5)),
        (any(known(one.pool_mib) for one in memory), BenchColumn("pool", "Pool", 6)),
        (any(known(one.process_mib) for one in memory), BenchColumn("process", "Process", 3)),
        (any(map(words.fitting, rows)), BenchColumn("share", "Share", 0)),
        (any(one.utilisation for one in rows), BenchColumn("utilisation", "MFU", 4)),
        (any(one.epoch_seconds for one in rows), BenchColumn("epoch", "Epoch", 3)),
        (any(known(one.run.accuracy) for one in rows), BenchColumn("accuracy", "Right", 4)),
    ]
    return [column for is_there, column in there if is_there]


def _cell(
    result: RowResult, key: str, group: str, gpus: Mapping[str, str], footnotes: Footnotes
) -> BenchCell:
    """What stands in a column of a row."""
    match key:
        case "share":
            reference = words.fitting(result)
            if reference is None or result.rate is None:
                return BenchCell("")
            text = f"{words.share_of(result)} [{footnotes.of(reference)}]"
            return BenchCell(text, result.verdict)
        case "group":
            return BenchCell(group)
        case "gpu":
            return BenchCell(words.where(result.run.row, gpus))
        case "rate":
            style = result.verdict or ("" if result.rate is not None else "quiet")
            return BenchCell(words.rate_of(result), style)
    return BenchCell(_CELLS[key](result))


def _speed_up(result: RowResult) -> str:
    if result.speed_up is not None:
        return f"×{result.speed_up:.2f}"
    if result.against:
        return "in noise"
    return "unproven" if words.unproven(result) else ""


_CELLS: dict[str, Callable[[RowResult], str]] = {
    "amp": lambda one: words.amp_of(one.run.row),
    "compiled": lambda one: "yes" if one.run.row.compiled else "no",
    "tensorrt": lambda one: "yes" if one.run.row.tensorrt else "no",
    "precision": lambda one: words.precision_of(one.run.row),
    "data": lambda one: one.run.row.data,
    "batch": lambda one: f"{one.run.row.batch:,}",
    "speed_up": _speed_up,
    "tensors": lambda one: words.gib(known(one.run.memory.tensors_mib)),
    "pool": lambda one: words.gib(known(one.run.memory.pool_mib)),
    "process": lambda one: words.gib(known(one.run.memory.process_mib)),
    "utilisation": lambda one: words.share(one.utilisation) if one.utilisation else "",
    "epoch": lambda one: f"{words.number(one.epoch_seconds)} s" if one.epoch_seconds else "",
    "accuracy": lambda one: f"{100 * found:.1f} %" if (found := known(one.run.accuracy)) else "",
}


def notes(rows: list[RowResult]) -> list[BenchNote]:
    """Remarks on rows; the same remark on several is one."""
    groups: dict[tuple[str, str], list[str]] = {}
    for result in rows:
        for level, text in _notes(result):
            groups.setdefault((level, text), []).append(result.run.row.name)
    found = [BenchNote(level, tuple(names), text) for (level, text), names in groups.items()]
    return sorted(found, key=lambda note: _ORDER.index(note.level))


def _notes(result: RowResult) -> Iterator[tuple[str, str]]:
    run = result.run
    if result.verdict in ("warn", "fail"):
        yield result.verdict, result.verdict_words or "slower than it should be"
    if result.suspect and (not result.verdict or result.verdict_by in ("", "baseline")):
        yield "", f"first suspect: {result.suspect}"
    if result.unsteady:
        apart = f"{words.spread(result) * 2:.0f} %"
        yield "", f"its repetitions differ by {apart}: too much to be judged"
    if run.outcome != "ok":
        level = "could-not-run" if run.outcome in ("error", "timeout", "crashed") else ""
        yield level, words.outcome_of(result) + (f": {run.reason}" if run.reason else "")
    elif result.rate is None and not run.losses and not run.shapes:
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
    if result.speed_up is not None and not run.in_turn:
        yield "", f"not measured in turn with {result.against}: there was no room for both"
    if result.rate is not None and 0 < result.rate.repetitions < 5:
        yield "", f"only {number_of(result.rate.repetitions, 'repetition')}"
    if run.row.largest and run.tried:
        yield "", _largest(result)


def _largest(result: RowResult) -> str:
    """ "largest batch 640: predicted 655, tried; 704 was out of memory" """
    tried = result.run.tried
    fits = [one.batch for one in tried if one.outcome == "ok"]
    beyond = [one for one in tried if one.outcome != "ok"]
    predicted = [one.batch for one in tried if one.predicted]
    text = f"largest batch that fits: {max(fits):,}" if fits else "no batch fits"
    if predicted:
        text += f"; predicted from smaller ones: {predicted[-1]:,}"
    if beyond:
        least = min(beyond, key=lambda one: one.batch)
        text += f"; {least.batch:,}: {words.OUTCOMES[least.outcome]}"
    return text


def context(results: list[RowResult]) -> list[tuple[str, str]]:
    """("1,894 images/s", "H100 80GB SXM5, … (github.com/…); differs in batch 640"): figures that do not fit.

    Each is told once, with the rows that it stands beside.
    """
    seen: dict[tuple[str, str], list[str]] = {}
    for result in results:
        for one in result.references:
            if not one.fits:
                unit = result.rate.unit if result.rate is not None else ""
                source = f" ({one.source})" if one.source else ""
                differs = f"; differs in {one.differs}" if one.differs else ""
                key = f"{words.number(one.rate)} {unit}".rstrip(), one.about + source + differs
                seen.setdefault(key, []).append(result.run.row.name)
    return [
        (rate, f"{about}; beside {names[0]}" + (f" and {len(names) - 1} more" if names[1:] else ""))
        for (rate, about), names in seen.items()
    ]
