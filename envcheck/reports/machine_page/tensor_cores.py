"""The Tensor Cores' results: a table for each kind of GPU, with bars against the peak."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ...facts.target import FRAMEWORKS
from ...tensorcores.mode_verdict import Line, ModeVerdict
from .. import html_page as html
from ..grouping import Alike, folded
from ..html_page import PageSection
from ..model import Report
from ..plots.svg import text
from ..tensorcore_rows import SILENT, as_it_must, label, number, style_of
from ..tensorcores import proven

_GPUS, _ROWS = 16, 60
_COLUMNS = [
    ("Mode", ""),
    ("Verdict", ""),
    ("TFLOP/s", "right"),
    ("Of the peak", ""),
    ("×FP32", "right"),
    ("Bits", ""),
    ("Rate", ""),
    ("Hardware", ""),
]
_SAYS = {"tensor": "tensor", "not tensor": "no", "cannot tell": "–"}
_LEGEND = (
    "The bar is the share of the chip's peak at the clock that was seen, in a burst of under a second."
    " ×FP32: against FP32 products timed in between. INT8 is in TOP/s. A dash: this line of evidence cannot"
    " tell. envcheck explain tensor-cores has all of it, and why it is a proof."
)


def tensor_cores(report: Report) -> Iterator[PageSection]:
    """The section; none where no matrix product ran."""
    if not report.tensor_cores:
        return
    said = proven(report.tensor_cores)
    parts = [html.paragraph(said[:1].upper() + said[1:])]
    groups = folded(report.tensor_cores)
    for group in groups[:_GPUS]:
        parts += _group(group)
    if (left := len(groups) - _GPUS) > 0:
        parts.append(html.paragraph(f"and {left} more GPUs in --format json"))
    parts.append(html.paragraph(_LEGEND, "quiet"))
    yield PageSection("tensor-cores", "Tensor Cores", parts)


def _group(group: Alike) -> Iterator[str]:
    alike = f" ({group.count} alike)" if group.count > 1 else ""
    yield html.heading((group.title or "No GPU's own") + alike, 3)
    shown = group.rows[:_ROWS]
    for (level, framework, library), found in groupby(shown, key=_level):
        rows = list(found)
        by = FRAMEWORKS.get(framework, framework) or library
        by = by or {"L0": "the hardware, by the driver alone", "L1": "the target's cuBLAS"}[level]
        yield html.heading(f"{level}: {by}", 4)
        ran = [row for row in rows if row.verdict not in SILENT]
        if ran:
            yield html.markup_table(_COLUMNS, [_cells(row) for row in ran])
        yield html.listed(_silent(rows))
        yield html.listed(_causes(ran))
    if (left := len(group.rows) - _ROWS) > 0:
        yield html.paragraph(f"and {left} more in --format json")


def _level(row: ModeVerdict) -> tuple[str, str, str]:
    return (row.level, row.framework, row.library)


def _cells(row: ModeVerdict) -> list[tuple[str, str]]:
    kind = style_of(row)
    word = html.state(kind, row.verdict) if kind else f'<span class="quiet">{row.verdict}</span>'
    ratio = "" if row.ratio is None else f"{row.ratio:.1f}" if 0 <= row.ratio < 999 else "?"
    return [
        (text(label(row)), ""),
        (word, ""),
        (number(row.tflops), ""),
        (_bar(row), ""),
        (ratio, ""),
        *((_line(line), "") for line in (row.bits, row.rate, row.hardware)),
    ]


def _line(line: Line) -> str:
    told = f' title="{text(line.text)}"' if line.text else ""
    return f"<span{told}>{_SAYS[line.says]}</span>"


def _bar(row: ModeVerdict) -> str:
    """The figure says what the bar does; none for an instruction that cannot reach the peak."""
    share = row.share
    if share is None or not 0 <= share < 9.99:
        return "" if share is None else "?"
    percent = f"{100 * share:.0f} %"
    if row.partial:
        return percent
    kind = " warn" if row.slow else ""
    width = f"{min(share, 1.0) * 100:.1f}"
    return (
        '<svg class="bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="of" width="100" height="8" rx="2"/>'
        f'<rect class="is{kind}" width="{width}" height="8" rx="2"/></svg>{percent}'
    )


def _silent(rows: list[ModeVerdict]) -> Iterator[tuple[str, str, str]]:
    """Modes in which nobody did arithmetic, by their reasons."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.verdict in SILENT:
            key = (row.verdict, style_of(row), row.reason)
            alike.setdefault(key, []).append(label(row))
    for (verdict, kind, reason), labels in alike.items():
        yield f"{', '.join(labels)}: {verdict}", kind, f"({reason})" if reason else ""


def _causes(rows: list[ModeVerdict]) -> Iterator[tuple[str, str, str]]:
    """Why something is not proven, and why it is slower than it could be."""
    alike: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        odd = row.control if row.verdict == "proven" else not as_it_must(row)
        plain = row.verdict == "not engaged" and row.mode == "fp32"
        why = row.cause or row.reason
        if odd and why and not (plain and not row.cause):
            alike.setdefault((row.verdict, style_of(row), why), []).append(label(row))
        if row.slow:
            alike.setdefault(("below the peak", "warn", row.slow), []).append(label(row))
    for (word, kind, why), labels in alike.items():
        yield f"{', '.join(dict.fromkeys(labels))}: {word}", kind, f"– {why}"
