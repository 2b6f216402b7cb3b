"""The text report's section on Tensor Cores: a table for each kind of GPU; what is not proven, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from ..facts.snapshot import Snapshot
from ..findings.model import Remedy
from ..tensorcores.mode_verdict import ModeVerdict
from .model import Report, tensor_cores_left_out
from .results import ReportedResult
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

if TYPE_CHECKING:
    from .page import Page

# More than these are in the JSON report alone.
GPUS, ROWS, TEXTS = 16, 60, 6
_TEXT_CELLS = 160
_BAR = 6
_LINES = ("bits", "rate", "hardware")
_SAYS = {"tensor": "tensor", "not tensor": "no", "cannot tell": "—"}
_LEGEND = (
    "The bar is the share of the chip's peak at the clock that was seen, in a burst of under a second: heat"
    " takes longer to show. ×FP32: against FP32 products timed in between. INT8 is in TOP/s. A dash: this"
    " line of evidence cannot tell."
)


def section(page: Page, report: Report, snapshot: Snapshot, verbose: bool = True) -> None:
    """The section with a blank line before it; nothing where no matrix product was asked for.

    Unless ``verbose``, only the levels with a problem have a table.
    """
    judged = report.tensor_cores
    summary = proven(judged) if judged else _why_nothing(report, snapshot)
    if not summary:
        return
    page.blank()
    page.paragraph(("Tensor Cores:", "heading"), (summary, ""), hanging=2)
    groups = folded(judged)
    shown = groups if verbose else [_with_problems(group) for group in groups]
    shown = [group for group in shown if group.rows]
    if not shown:
        for group in groups[:GPUS]:
            _rates(page, group)
        return
    for group in shown[:GPUS]:
        page.blank()
        _table(page, group, verbose)
        _unproven(page, group.rows[:ROWS], report.results)
    if (more := len(shown) - GPUS) > 0:
        page.paragraph((f"and {more} more GPUs in --format json", ""))
    page.blank()
    if any(row.verdict not in SILENT for group in shown for row in group.rows):
        page.paragraph((_LEGEND, "quiet"))
    page.paragraph(("All of it, and why it is a proof:", ""))
    page.command("envcheck explain tensor-cores", here=True)


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
    """The levels with a problem."""
    levels = {level_of(row) for row in group.rows if needs_words(row) and not plain_fp32(row)}
    rows = [row for row in group.rows if level_of(row) in levels]
    return msgspec.structs.replace(group, rows=rows)


def _rates(page: Page, group: SameGpus) -> None:
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
        page.paragraph((text, "quiet"), indent=2, hanging=4)


def _table(page: Page, group: SameGpus, verbose: bool) -> None:
    count = [(f"({group.count} with the same results)", "")] if group.count > 1 else []
    page.paragraph((group.title or "No GPU's own", "heading"), *count, hanging=2)
    shown = group.rows[:ROWS]
    for place, (_, found) in enumerate(groupby(shown, key=level_of)):
        _level(page, list(found), with_heading=place == 0)
    if (more := len(group.rows) - ROWS) > 0:
        page.paragraph((f"and {more} more in --format json", ""), indent=2)
    if verbose:
        _cannot_tell(page, [row for row in shown if row.verdict not in SILENT])


def _level(page: Page, rows: list[ModeVerdict], with_heading: bool) -> None:
    """What computed at this level, how its control came out, and its rows."""
    from .page import Column

    ran = [row for row in rows if row.verdict not in SILENT]
    control = next((row for row in rows if row.control), None)
    words = []
    if control is not None and good_control(control):
        words = [("– control: not engaged, as it must be", "")]
    elif control is not None and ran:
        text = f"– control: {control.verdict}, so nothing here counts as proven"
        words = [(text, style_of(control))]
    page.paragraph((rows[0].level, "code"), (computed_by(rows[0]), "code"), *words, hanging=3)
    headings = ("TFLOP/s", "of peak", "×FP32", "bits", "rate", "hardware")
    rate, peak, ratio, *lines = headings if with_heading else [""] * 6
    columns = [Column(width=15), Column(width=13), Column(rate, 7, right=True)]
    columns += [Column(peak, _BAR + 5, right=True), Column(ratio, 5, right=True)]
    columns += [Column(name, size) for name, size in zip(lines, (6, 6, 8), strict=True)]
    if page.columns < 80:  # a narrow page has no room for the bars
        columns = [columns[0], columns[1], Column(rate, 7, right=True), Column(peak, 7, right=True)]
    if ran:
        cells = [[*_cells(row, page.columns < 80)] for row in ran]
        page.table(columns, cells, indent=2, headings="quiet")
    for silent in _alike(
        (row for row in rows if row.verdict in SILENT), lambda row: (row.verdict, row.reason)
    ):
        names = f"{', '.join(map(label, silent))}:"
        verdict, reason = silent[0].verdict, silent[0].reason
        why = [(f"({reason})", "quiet")] if reason else []
        page.paragraph((names, ""), (verdict, VERDICT_STYLES[verdict]), *why, indent=2, hanging=4)


def _cells(row: ModeVerdict, narrow: bool) -> list[tuple[str, str]]:
    first = [(label(row), ""), (row.verdict, style_of(row)), (number(row.tflops), "")]
    if narrow:
        return [*first, (share_of(row), "")]
    bar = ""
    if row.share is not None and not row.partial and 0 <= row.share < 9.99:
        full = round(min(row.share, 1.0) * _BAR)
        bar = "█" * full + "░" * (_BAR - full)
    lines = [(_SAYS[getattr(row, name).says], "") for name in _LINES]
    return [*first, (f"{bar} {share_of(row).replace(' ', ''):>4}", ""), (ratio_of(row), ""), *lines]


def _alike(
    rows: Iterable[ModeVerdict], key: Callable[[ModeVerdict], object]
) -> list[list[ModeVerdict]]:
    """Rows with the same key together, in their order."""
    found: dict[object, list[ModeVerdict]] = {}
    for row in rows:
        found.setdefault(key(row), []).append(row)
    return list(found.values())


def _cannot_tell(page: Page, ran: Sequence[ModeVerdict]) -> None:
    """Why a line of evidence cannot tell; of rows with a problem their evidence says it."""
    for name in _LINES:
        blind = [
            row
            for row in ran
            if not _has_evidence(row)
            and getattr(row, name).says == "cannot tell"
            and getattr(row, name).text
        ]
        groups = _alike(blind, lambda row, name=name: getattr(row, name).text)  # type: ignore[misc]
        title = (f"{name.capitalize()}:", "quiet")
        for rows in groups[:TEXTS]:
            text = page.cut(page.clean(getattr(rows[0], name).text), _TEXT_CELLS)
            page.paragraph(title, (f"{text} ({names_of(rows)})", "quiet"), hanging=2)
        if (more := len(groups) - TEXTS) > 0:
            page.paragraph(title, (f"{more} more in --format json", "quiet"))


def _has_evidence(row: ModeVerdict) -> bool:
    """Whether its three lines of evidence are shown in words."""
    return needs_words(row) and row.verdict not in SILENT and not plain_fp32(row)


def _unproven(page: Page, judged: list[ModeVerdict], results: list[ReportedResult]) -> None:
    """What is not proven, and what is below the peak: each cause once, with its modes."""
    problems, slow = [*filter(needs_words, judged)], [row for row in judged if row.slow]
    if problems or slow:
        page.blank()
    for rows in _alike(problems, lambda row: (row.verdict, row.cause or row.reason, _key(row))):
        row = rows[0]
        why = row.cause or row.reason
        code = _code(row.remedy, results)
        spans = [(f"{names_of(rows)}:", "code"), (row.verdict, style_of(row))]
        spans += [(f"– {why}", "")] if why else []
        spans += [(f"(see {code} above)", "")] if code else []
        page.paragraph(*spans, hanging=2)
        if not code and _has_evidence(row):
            _evidence(page, rows)
        if not code and row.remedy is not None:
            page.remedy(row.remedy)
    for rows in _alike(slow, lambda row: row.slow):
        text = (f"below the peak – {rows[0].slow}", "")
        page.paragraph((f"{names_of(rows)}:", "code"), text, hanging=2)


def _key(row: ModeVerdict) -> tuple[str, ...]:
    return () if row.remedy is None else (row.remedy.text, *row.remedy.commands)


def _evidence(page: Page, rows: list[ModeVerdict]) -> None:
    """The three lines of rows with the same cause; where theirs differ, each with its rows."""
    for name in _LINES:
        groups = _alike(rows, lambda row, name=name: getattr(row, name))  # type: ignore[misc]
        for group in groups[:TEXTS]:
            line = getattr(group[0], name)
            whose = f" of {names_of(group)}" if len(groups) > 1 else ""
            text = f" ({page.cut(page.clean(line.text), 2 * _TEXT_CELLS)})" if line.text else ""
            page.paragraph((f"{name}{whose}: {line.says}{text}", "quiet"), indent=4, hanging=6)


def _code(remedy: Remedy | None, results: list[ReportedResult]) -> str:
    """The check whose findings give this remedy in full; "" where none does."""
    for result in results if remedy is not None else []:
        for finding in result.findings if result.outcome in ("fail", "warn") else []:
            found = finding.remedy
            if found is None or remedy is None or found.text != remedy.text:
                continue
            if set(found.commands) <= set(remedy.commands):
                return result.code
    return ""
