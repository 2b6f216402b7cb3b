"""The table of Tensor Core results of one GPU: a line a mode, or a few where the page is narrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..tensorcores.judged import Judged, Line, Verdict

if TYPE_CHECKING:
    from .page import Page

VERDICT_STYLES: dict[Verdict, str] = {
    "proven": "pass",
    "indicated": "warn",
    "not engaged": "fail",
    "contradiction": "fail",
    "cannot tell": "could-not-run",
    "could not run": "could-not-run",
    "not applicable": "skipped",
}

# Under these nobody did arithmetic: there is a reason to tell, and no number.
SILENT: tuple[Verdict, ...] = ("could not run", "not applicable")

# FP32 matrices, in the way that the setting says.
_SETTING_LABELS = {
    "default": "FP32 by default",
    "switch-on": "TF32 turned on",
    "switch-off": "TF32 turned off",
    "override": "TF32 overridden",
    "control": "FP32 control",
}
_LABEL = max(len(label) for label in _SETTING_LABELS.values())

_LINES = ("bits", "rate", "hardware")

# Cells of evidence that are narrower than this have room for a word alone.
_TEXT = 26
_VERDICT, _TFLOPS, _SHARE, _RATIO = 13, 5, 4, 5

# The narrowest bar that still shows a difference, and the widest that is still read at a glance.
_BAR, _WIDE_BAR = 6, 10


class _Layout(NamedTuple):
    """Widths of the columns that change with the page's, in cells."""

    bar: int
    evidence: tuple[int, int, int]
    says: dict[str, str]
    texts: bool


class _Silent(msgspec.Struct):
    """Modes of one level of which the same reason is told."""

    verdict: Verdict
    reason: str
    labels: list[str]


_WORDS = {"tensor": "tensor", "not tensor": "not tensor", "cannot tell": "—"}
_SHORT = {**_WORDS, "not tensor": "no"}


def label(row: Judged) -> str:
    """What was multiplied, and how it was set: "TF32", "FP32 control", "FP32 by default"."""
    if row.setting in _SETTING_LABELS:
        return _SETTING_LABELS[row.setting]
    return f"{row.mode.upper()} control" if row.control else row.mode.upper()


def as_it_must(row: Judged) -> bool:
    """A control that Tensor Cores had no part in."""
    return row.control and row.verdict == "not engaged"


def style_of(row: Judged) -> str:
    """Plain FP32 has no Tensor Cores to engage; where it was asked for, not using them is no fault."""
    if as_it_must(row):
        return "pass"
    if row.control and row.verdict not in SILENT:
        return "fail"
    if row.verdict == "not engaged" and row.mode == "fp32":
        return ""
    return VERDICT_STYLES[row.verdict]


def has_dashes(page: Page) -> bool:
    """Whether "cannot tell" is a dash in the table."""
    return _layout(page) is not None


def is_whole(page: Page, row: Judged, name: str) -> bool:
    """Whether the table has room for all of what one line of evidence ("bits") rests on."""
    layout = _layout(page)
    if layout is None or not layout.texts:
        return False
    line: Line = getattr(row, name)
    return page.fits(page.clean(_told(line, layout)), layout.evidence[_LINES.index(name)])


def heading(page: Page) -> None:
    """The columns' names; a page without columns has none."""
    layout = _layout(page)
    if layout is None:
        return
    cells = [
        page.cell("", 2 + _LABEL),
        page.cell("", _VERDICT),
        page.cell("TFLOP/s", _TFLOPS + 2, right=True),
        page.cell("of peak", layout.bar + _SHARE - 1, right=True),
        page.cell("×FP32", _RATIO, right=True),
    ]
    evidence = [page.cell(name, cells) for name, cells in zip(_LINES, layout.evidence, strict=True)]
    page.line((f"{' '.join(cells)}  {' '.join(evidence)}".rstrip(), "quiet"))


def rows(page: Page, judged: list[Judged]) -> None:
    """The rows of one level. Modes that did not run, for one and the same reason, are one line."""
    layout = _layout(page)
    silent: list[_Silent] = []
    for row in judged:
        if row.verdict in SILENT:
            _collect(silent, row)
        elif layout is None:
            _stacked(page, row)
        else:
            _line(page, row, layout)
    for those in silent:
        told = (those.verdict, VERDICT_STYLES[those.verdict])
        why = [(f"({those.reason})", "quiet")] if those.reason else []
        page.paragraph((f"{', '.join(those.labels)}:", ""), told, *why, indent=2, hanging=4)


def _layout(page: Page) -> _Layout | None:
    """None: the page is too narrow for a table."""
    fixed = 2 + _LABEL + 1 + _VERDICT + 1 + _TFLOPS + 1 + 1 + _SHARE + 1 + _RATIO + 2
    room = page.columns - fixed - 2  # for the bar and three cells of evidence
    if room < _BAR + 6 + 6 + 8:
        return None
    if room < _WIDE_BAR + 3 * len("not tensor"):
        return _Layout(_BAR, (6, 6, 8), _SHORT, texts=False)
    cells = (room - _WIDE_BAR) // 3
    if cells < _TEXT:
        return _Layout(_WIDE_BAR, (10, 10, 10), _WORDS, texts=False)
    return _Layout(_WIDE_BAR, (cells, cells, cells), _WORDS, texts=True)


def _collect(silent: list[_Silent], row: Judged) -> None:
    for those in silent:
        if (those.verdict, those.reason) == (row.verdict, row.reason):
            those.labels.append(label(row))
            return
    silent.append(_Silent(row.verdict, row.reason, [label(row)]))


def _line(page: Page, row: Judged, layout: _Layout) -> None:
    name, verdict = page.cell(label(row), _LABEL), page.cell(row.verdict, _VERDICT)
    numbers = [
        page.cell(number(row.tflops), _TFLOPS, right=True),
        page.cell(_bar(row, layout.bar), layout.bar),
        page.cell(_percent(row.share), _SHARE, right=True),
        page.cell(_ratio(row.ratio), _RATIO, right=True),
    ]
    evidence = [
        page.cell(_told(line, layout), cells)
        for line, cells in zip((row.bits, row.rate, row.hardware), layout.evidence, strict=True)
    ]
    page.line(
        (f"  {name} ", ""),
        (verdict, style_of(row)),
        (f" {' '.join(numbers)}  {' '.join(evidence)}".rstrip(), ""),
    )


def _told(line: Line, layout: _Layout) -> str:
    said = layout.says[line.says]
    return f"{said}: {line.text}" if layout.texts and line.text else said


def _stacked(page: Page, row: Judged) -> None:
    page.paragraph((f"{label(row)}:", ""), (row.verdict, style_of(row)), indent=2, hanging=4)
    numbers = []
    if row.share is not None:
        numbers.append(f"{_bar(row, _BAR)} {_percent(row.share)}".lstrip())
    if row.tflops is not None:
        numbers.append(f"{number(row.tflops)} {'TOP/s' if row.mode == 'int8' else 'TFLOP/s'}")
    if row.ratio is not None:
        numbers.append(f"{_ratio(row.ratio)}×FP32")
    if numbers:
        page.paragraph((", ".join(numbers), ""), indent=4)
    by: dict[str, list[str]] = {}
    for name, line in zip(_LINES, (row.bits, row.rate, row.hardware), strict=True):
        by.setdefault(line.says, []).append(name)
    told = "; ".join(f"{', '.join(names)}: {said}" for said, names in by.items())
    page.paragraph((told, ""), indent=4)


def number(value: float | None) -> str:
    """Three digits that matter, five characters at most; "?" for what no measurement gives."""
    if value is None:
        return ""
    if not 0 <= value < 99999:
        return "?"
    if value < 9.995:
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _ratio(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}" if 0 <= ratio < 999 else "?"


def _percent(share: float | None) -> str:
    if share is None:
        return ""
    return f"{100 * share:.0f}%" if 0 <= share < 9.99 else "?"


def _bar(row: Judged, cells: int) -> str:
    """None for an instruction that cannot reach the peak: a short bar reads as a fault."""
    share = row.share
    if share is None or row.partial or not 0 <= share < 9.99:
        return ""
    full = round(min(share, 1.0) * cells)
    return "█" * full + "░" * (cells - full)
