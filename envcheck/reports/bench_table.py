"""A bench's rows as tables, a table for each model and style: cells and notes, for text and for HTML."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from ..bench.records import ReferenceRate, RowResult
from ..facts.base import known
from ..findings.model import Outcome
from . import bench_words as words
from .plain import WORDS

# The words for levels of notes that have one.
LEVELS = {"fail": WORDS["fail"], "warn": WORDS["warn"], "could-not-run": WORDS["could-not-run"]}

# What is no training for a rate has sections of its own.
ELSEWHERE = ("parity", "shapes")


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
    """What is to be said of a row, or of several."""

    level: Outcome | str
    names: tuple[str, ...]
    text: str


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
            told = f"{what}: {about}" if about else what
            yield number, f"{told} ({source})" if source else told


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
        if row.what not in ELSEWHERE:
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
        told = str(groups.setdefault(group, len(groups) + 1)) if group else ""
        lines.append([told_of(result, column.key, told, gpus, footnotes) for column in columns])
    titled = next((one for one in rows if known(one.run.framework_version)), rows[0])
    return BenchTable(
        title=words.title_of(titled),
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


def told_of(
    result: RowResult, key: str, group: str, gpus: Mapping[str, str], footnotes: Footnotes
) -> BenchCell:
    """What stands in a column of a row."""
    if key == "share":
        return _share(result, footnotes)
    if key == "group":
        return BenchCell(group)
    if key == "gpu":
        return BenchCell(words.where(result.run.row, gpus))
    if key == "rate":
        style = result.verdict or ("" if result.rate is not None else "quiet")
        return BenchCell(words.rate_of(result), style)
    return BenchCell(_CELLS[key](result))


def _share(result: RowResult, footnotes: Footnotes) -> BenchCell:
    reference = words.fitting(result)
    if reference is None or result.rate is None:
        return BenchCell("")
    return BenchCell(f"{words.share_of(result)} [{footnotes.of(reference)}]", result.verdict)


def _speed_up(result: RowResult) -> str:
    if result.speed_up is not None:
        return f"×{result.speed_up:.2f}"
    if result.against:
        return "in noise"
    return "unproven" if words.unproven(result) else ""


def _epoch(result: RowResult) -> str:
    seconds = result.epoch_seconds
    return "" if seconds is None else f"{words.number(seconds)} s"


def _accuracy(result: RowResult) -> str:
    accuracy = known(result.run.accuracy)
    return "" if accuracy is None else f"{accuracy * 100:.1f} %"


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
    "epoch": _epoch,
    "accuracy": _accuracy,
}


def notes(rows: list[RowResult]) -> list[BenchNote]:
    """What is to be said of rows; of which the same is said, as one."""
    alike: dict[tuple[str, str], list[str]] = {}
    for result in rows:
        for level, text in _notes(result):
            alike.setdefault((level, text), []).append(result.run.row.name)
    order = ["fail", "warn", "could-not-run", "", "quiet"]
    found = [BenchNote(level, tuple(names), text) for (level, text), names in alike.items()]
    return sorted(found, key=lambda note: order.index(note.level) if note.level in order else 3)


def _notes(result: RowResult) -> Iterator[tuple[str, str]]:
    run = result.run
    if result.verdict in ("warn", "fail"):
        yield result.verdict, result.verdict_words or "slower than it should be"
    if result.suspect and (not result.verdict or result.verdict_by in ("", "baseline")):
        yield "", f"first suspect: {result.suspect}"
    if result.unsteady:
        yield (
            "",
            f"its repetitions differ by {words.spread(result) * 2:.0f} %: too much to be judged",
        )
    if run.outcome != "ok":
        level = "could-not-run" if run.outcome in ("error", "timeout", "crashed") else ""
        reason = f": {run.reason}" if run.reason else ""
        yield level, words.outcome_of(result) + reason
    elif result.rate is None and not run.losses and not run.shapes:
        yield "could-not-run", "no repetition came of it"
    if words.unproven(result):
        why = result.proof_words or "nothing shows that its mode was on"
        yield "warn" if result.proof == "not-engaged" else "", f"no speed-up: {why}"
    steps = sum(one.steps for one in run.repetitions)
    skipped = sum(one.skipped for one in run.repetitions)
    if skipped:
        yield "", f"the loss scaler skipped {skipped:,} of {steps:,} steps, which do not count"
    if run.outcome == "ok" and run.repetitions and not run.warm_up.steady:
        yield "", "its rate had not come to rest after the warm-up"
    if result.against and result.speed_up is None:
        yield (
            "",
            f"no speed-up is given: its repetitions and those of {result.against} overlap, or are too few",
        )
    if result.speed_up is not None and not run.in_turn:
        yield "", f"not measured in turn with {result.against}: there was no room for both"
    if result.rate is not None and 0 < result.rate.repetitions < 5:
        number = result.rate.repetitions
        yield "", f"{number} repetition{'s' if number > 1 else ''} only"
    if run.row.largest and run.tried:
        yield "", _largest(result)


def _largest(result: RowResult) -> str:
    """ "largest batch 640: predicted 655, tried; 704 was out of memory" """
    tried = result.run.tried
    fits = [one.batch for one in tried if one.outcome == "ok"]
    beyond = [one for one in tried if one.outcome != "ok"]
    predicted = [one.batch for one in tried if one.predicted]
    told = f"largest batch that fits: {max(fits):,}" if fits else "no batch fits"
    if predicted:
        told += f"; predicted from smaller ones: {predicted[-1]:,}"
    if beyond:
        least = min(beyond, key=lambda one: one.batch)
        told += f"; {least.batch:,}: {words.OUTCOMES[least.outcome]}"
    return told


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
