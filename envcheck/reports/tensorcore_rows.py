"""The table of Tensor Core results of one GPU: a line a mode, or a few where the page is narrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

from ..tensorcores.mode_verdict import ModeVerdict, Verdict

if TYPE_CHECKING:
    from .page import Page, Span

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

_VERDICT, _BAR = 13, 6


class _Silent(msgspec.Struct):
    """Modes of one level of which the same reason is told."""

    verdict: Verdict
    reason: str
    labels: list[str]


_SAYS = {"tensor": "tensor", "not tensor": "no", "cannot tell": "—"}


def label(row: ModeVerdict) -> str:
    """What was multiplied, and how it was set: "TF32", "FP32 control", "FP32 by default"."""
    if row.setting in _SETTING_LABELS:
        return _SETTING_LABELS[row.setting]
    return f"{row.mode.upper()} control" if row.control else row.mode.upper()


def as_it_must(row: ModeVerdict) -> bool:
    """A control that Tensor Cores had no part in."""
    return row.control and row.verdict == "not engaged"


def style_of(row: ModeVerdict) -> str:
    """Plain FP32 has no Tensor Cores to engage; where it was asked for, not using them is no fault."""
    if as_it_must(row):
        return "pass"
    if row.control and row.verdict not in SILENT:
        return "fail"
    if row.verdict == "not engaged" and row.mode == "fp32":
        return ""
    return VERDICT_STYLES[row.verdict]


def has_table(page: Page) -> bool:
    """Whether the page is wide enough for the rows to be a table, in which "cannot tell" is a dash."""
    return page.columns >= 80


def heading(page: Page) -> None:
    """The columns' names; a page without columns has none."""
    if has_table(page):
        _table(page, [], "TFLOP/s", "of peak", "×FP32", *_LINES)


def rows(page: Page, judged: list[ModeVerdict]) -> None:
    """The rows of one level. Modes that did not run, for one and the same reason, are one line."""
    silent: list[_Silent] = []
    ran = [row for row in judged if row.verdict not in SILENT]
    for row in judged:
        if row.verdict in SILENT:
            _collect(silent, row)
        elif not has_table(page):
            _stacked(page, row)
    if ran and has_table(page):
        _table(page, map(_cells, ran), *[""] * 6)
    for those in silent:
        told = (those.verdict, VERDICT_STYLES[those.verdict])
        why = [(f"({those.reason})", "quiet")] if those.reason else []
        page.paragraph((f"{', '.join(those.labels)}:", ""), told, *why, indent=2, hanging=4)


def _table(page: Page, rows: Iterable[list[Span]], *names: str) -> None:
    """Columns of the same width at every level."""
    from .page import Column

    tflops, peak, ratio, bits, rate, hardware = names
    columns = [
        Column(width=_LABEL),
        Column(width=_VERDICT),
        Column(tflops, 7, right=True),
        Column(peak, _BAR + 5, right=True),
        Column(ratio, 5, right=True),
        Column(bits, 6),
        Column(rate, 6),
        Column(hardware, 8),
    ]
    page.table(columns, rows, indent=2, headings="quiet")


def _cells(row: ModeVerdict) -> list[Span]:
    numbers = [number(row.tflops), f"{_bar(row)} {_percent(row.share):>4}", _ratio(row.ratio)]
    evidence = [_SAYS[line.says] for line in (row.bits, row.rate, row.hardware)]
    told = [(text, "") for text in (*numbers, *evidence)]
    return [(label(row), ""), (row.verdict, style_of(row)), *told]


def _collect(silent: list[_Silent], row: ModeVerdict) -> None:
    for those in silent:
        if (those.verdict, those.reason) == (row.verdict, row.reason):
            those.labels.append(label(row))
            return
    silent.append(_Silent(row.verdict, row.reason, [label(row)]))


def _stacked(page: Page, row: ModeVerdict) -> None:
    page.paragraph((f"{label(row)}:", ""), (row.verdict, style_of(row)), indent=2, hanging=4)
    numbers = []
    if row.share is not None:
        numbers.append(f"{_bar(row)} {_percent(row.share)}".lstrip())
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


def _bar(row: ModeVerdict) -> str:
    """None for an instruction that cannot reach the peak: a short bar reads as a fault."""
    share = row.share
    if share is None or row.partial or not 0 <= share < 9.99:
        return ""
    full = round(min(share, 1.0) * _BAR)
    return "█" * full + "░" * (_BAR - full)
