"""The report's section on Tensor Cores: a table for each kind of GPU; what is not proven, and why."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import msgspec

from ..facts.snapshot import Snapshot
from ..findings.model import Remedy
from ..tensorcores.mode_verdict import ModeVerdict
from .model import Report, tensor_cores_left_out
from .plain import Column, together
from .results import ReportedResult
from .sections import Advice, Block, Heading, Note, ReportSection, Span, Table
from .tensorcore_rows import (
    SILENT,
    VERDICT_STYLES,
    SameGpus,
    computed_by,
    folded,
    good_control,
    label,
    level_of,
    names_of,
    needs_words,
    number,
    plain_fp32,
    proven,
    ratio_of,
    share_of,
    style_of,
)

# More than these are in the JSON report alone.
GPUS, ROWS = 16, 60
_TEXT = 320  # characters
_LINES = ("bits", "rate", "hardware")
_SAYS = {"tensor": "tensor", "not tensor": "no", "cannot tell": "—"}
_COLUMNS = (
    Column(),
    Column(),
    Column("TFLOP/s", right=True),
    Column("of peak", right=True),
    Column("×FP32", right=True, rank=1),
    *(Column(name, rank=1) for name in _LINES),
)
_LEGEND = (
    "Of peak: the share of the chip's peak at the clock that was seen, in a burst of under a second. ×FP32:"
    " against FP32 products timed in between. INT8 is in TOP/s. A dash: this line of evidence cannot tell."
)


def section(report: Report, snapshot: Snapshot, verbose: bool = True) -> ReportSection | None:
    """None where no matrix product was asked for. Unless ``verbose``, only levels with a problem have a
    table."""
    judged = report.tensor_cores
    summary = proven(judged) if judged else _why_nothing(report, snapshot)
    if not summary:
        return None
    groups = folded(judged)
    shown = groups if verbose else [_with_problems(group) for group in groups]
    shown = [group for group in shown if group.rows]
    blocks: list[Block] = []
    for group in shown[:GPUS]:
        blocks += [*_table(group), *_unproven(group.rows[:ROWS], report.results)]
    if (more := len(shown) - GPUS) > 0:
        blocks.append(Note([(f"and {more} more GPUs in --format json", "")]))
    if any(row.verdict not in SILENT for group in shown for row in group.rows):
        blocks.append(Note([(_LEGEND, "quiet")]))
    if shown:
        proof = "All of it, and why it is a proof:"
        blocks.append(Advice(proof, ["envcheck explain tensor-cores"], here=True))
    blocks += [] if shown else [note for group in groups[:GPUS] for note in _rates(group)]
    return ReportSection("tensor-cores", "Tensor Cores", summary, blocks)


def _why_nothing(report: Report, snapshot: Snapshot) -> str:
    """Why no matrix product ran; "" where the machine has no GPU, which is reported elsewhere."""
    if report.machine.gpus == [] or tensor_cores_left_out(report.results):
        return ""
    for document in (snapshot.machine, snapshot.target):
        probe = None if document is None else document.micro_kernels
        if probe is not None and (probe.facts is None or not probe.facts.runs):
            return f"no matrix product ran: {probe.reason or probe.outcome}."
    return ""


def _with_problems(group: SameGpus) -> SameGpus:
    levels = {level_of(row) for row in group.rows if needs_words(row) and not plain_fp32(row)}
    rows = [row for row in group.rows if level_of(row) in levels]
    return msgspec.structs.replace(group, rows=rows)


def _rates(group: SameGpus) -> Iterator[Note]:
    """Where all is proven, the fastest rates: "FP16 830 TFLOP/s; INT8 1613 TOP/s"."""
    best: dict[str, float] = {}
    for row in group.rows:
        if row.verdict == "proven" and row.mode != "fp32" and row.tflops is not None:
            best[row.mode] = max(best.get(row.mode, 0.0), row.tflops)
    floats = ", ".join(f"{m.upper()} {number(v)}" for m, v in best.items() if m != "int8")
    parts = [f"{floats} TFLOP/s"] if floats else []
    parts += [f"INT8 {number(best['int8'])} TOP/s"] if "int8" in best else []
    if parts:
        each = "each, " if group.count > 1 else ""
        text = f"{group.title}: {'; '.join(parts)} ({each}in short bursts)"
        yield Note([(text, "quiet")], 1)


def _table(group: SameGpus) -> Iterator[Block]:
    count: list[Span] = [(f"({group.count} with the same results)", "")] if group.count > 1 else []
    yield Heading([(group.title or "No GPU's own", "heading"), *count])
    for _, found in groupby(group.rows[:ROWS], key=level_of):
        yield from _level(list(found))
    if (more := len(group.rows) - ROWS) > 0:
        yield Note([(f"and {more} more in --format json", "")], 1)


def _level(rows: list[ModeVerdict]) -> Iterator[Block]:
    """What computed at this level, how its control came out, and its rows."""
    ran = [row for row in rows if row.verdict not in SILENT]
    control = next((row for row in rows if row.control), None)
    spans: list[Span] = [(rows[0].level, "code"), (computed_by(rows[0]), "code")]
    if control is not None and good_control(control):
        spans.append(("– control: not engaged, as it must be", ""))
    elif control is not None and ran:
        text = f"– control: {control.verdict}, so nothing here counts as proven"
        spans.append((text, style_of(control)))
    yield Note(spans)
    if ran:
        yield Table(_COLUMNS, [_cells(row) for row in ran])
    silent = (row for row in rows if row.verdict in SILENT)
    for (verdict, reason), same in together(((r.verdict, r.reason), r) for r in silent).items():
        why = [(f"({reason})", "quiet")] if reason else []
        names = f"{', '.join(map(label, same))}:"
        yield Note([(names, ""), (verdict, VERDICT_STYLES[verdict]), *why], 1)


def _cells(row: ModeVerdict) -> list[Span]:
    lines = [(_SAYS[getattr(row, name).says], "") for name in _LINES]
    numbers = [(text, "") for text in (number(row.tflops), share_of(row), ratio_of(row))]
    return [(label(row), ""), (row.verdict, style_of(row)), *numbers, *lines]


def _unproven(judged: list[ModeVerdict], results: list[ReportedResult]) -> Iterator[Block]:
    """What is not proven, and what is below the peak: each cause once, with its modes."""
    problems = filter(needs_words, judged)
    alike = together(((row.verdict, row.cause or row.reason, _key(row)), row) for row in problems)
    for rows in alike.values():
        row, why, code = rows[0], rows[0].cause or rows[0].reason, _code(rows[0].remedy, results)
        spans: list[Span] = [(f"{names_of(rows)}:", "code"), (row.verdict, style_of(row))]
        spans += [(f"– {why}", "")] if why else []
        spans += [(f"(see {code} above)", "")] if code else []
        yield Note(spans)
        if not code and row.verdict not in SILENT and not plain_fp32(row):
            yield from _evidence(row)
        if not code and row.remedy is not None:
            yield Advice(row.remedy.text, row.remedy.commands)
    for slow, rows in together((row.slow, row) for row in judged if row.slow).items():
        yield Note([(f"{names_of(rows)}:", "code"), (f"below the peak – {slow}", "")])


def _key(row: ModeVerdict) -> tuple[str, ...]:
    return () if row.remedy is None else (row.remedy.text, *row.remedy.commands)


def _evidence(row: ModeVerdict) -> Iterator[Note]:
    """The three lines of evidence."""
    for name in _LINES:
        line = getattr(row, name)
        text = f" ({line.text[:_TEXT]})" if line.text else ""
        yield Note([(f"{name}: {line.says}{text}", "quiet")], 2)


def _code(remedy: Remedy | None, results: list[ReportedResult]) -> str:
    """The check whose findings give this remedy in full; "" where none does."""
    for result in results if remedy is not None else []:
        for finding in result.findings if result.outcome in ("fail", "warn") else []:
            found = finding.remedy
            same = found is not None and remedy is not None and found.text == remedy.text
            if found and remedy and same and set(found.commands) <= set(remedy.commands):
                return result.code
    return ""
