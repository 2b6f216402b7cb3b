"""The report's section on Tensor Cores: a table for each kind of GPU, then what is not proven, and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from ..facts.snapshot import Snapshot
from ..facts.target import FRAMEWORKS
from ..findings.model import CheckResult, Remedy
from ..tensorcores.mode_verdict import Line, ModeVerdict
from .grouping import Alike, folded
from .model import Report, tensor_cores_left_out
from .tensorcore_rows import (
    SILENT,
    as_it_must,
    heading,
    label,
    number,
    rows,
    style_of,
)

if TYPE_CHECKING:
    from .page import Page

# More than these are in the JSON report alone.
GPUS = 16
ROWS = 60
TEXTS = 6
_TEXT_CELLS = 160

_EXPLAIN = "envcheck explain tensor-cores"
_LEGEND = (
    "The bar is the share of the chip's peak at the clock that was seen, in a burst of under a second: heat"
    " takes longer to show. ×FP32: against FP32 products timed in between. INT8 is in TOP/s. A dash: this"
    " line of evidence cannot tell."
)

_Key = tuple[object, ...]


def section(page: Page, report: Report, snapshot: Snapshot, verbose: bool = True) -> None:
    """The whole section with a blank line before it; nothing where no matrix product was asked for.

    One sentence says what is proven. The table of a level follows where something is not as it should be,
    and of all of them where the page is ``verbose``.
    """
    if not report.tensor_cores:
        if why := _why_nothing(report, snapshot):
            page.blank()
            page.paragraph(("Tensor Cores:", "heading"), (why, ""), hanging=2)
        return
    page.blank()
    groups = folded(report.tensor_cores)
    page.paragraph(("Tensor Cores:", "heading"), (proven(report.tensor_cores), ""), hanging=2)
    shown = groups if verbose else [_odd(group) for group in groups]
    shown = [group for group in shown if group.rows]
    if not shown:
        _rates(page, groups)
        return
    for group in shown[:GPUS]:
        page.blank()
        _table(page, group, verbose)
        _unproven(page, group.rows[:ROWS], report.results)
    if (left := len(shown) - GPUS) > 0:
        page.paragraph((f"and {left} more GPUs in --format json", ""))
    page.blank()
    _legend(page, shown)


def proven(judged: list[ModeVerdict]) -> str:
    """ "all 5 modes proven at L0, L1 and L2 (PyTorch)." """
    modes: dict[str, list[ModeVerdict]] = {}
    for row in judged:
        if not row.control and row.mode != "fp32" and row.verdict != "not applicable":
            modes.setdefault(row.mode, []).append(row)
    whole = [mode for mode, rows in modes.items() if all(r.verdict == "proven" for r in rows)]
    levels = _listed(_levels([row for rows in modes.values() for row in rows]))
    if not modes:
        return "no mode of theirs was run."
    if len(whole) == len(modes):
        number = f"all {len(whole)} modes" if len(whole) > 1 else label(modes[whole[0]][0])
        return f"{number} proven at {levels}."
    missing = _by_level([r for rows in modes.values() for r in rows if r.verdict != "proven"])
    named = "; ".join(f"{', '.join(dict.fromkeys(w))} ({where})" for where, w in missing.items())
    number = f"{len(whole) or 'none'} of {len(modes)} mode{'' if len(modes) == 1 else 's'}"
    return f"{number} proven at {levels}; not proven: {named}."


def _levels(rows: list[ModeVerdict]) -> list[str]:
    """ "L0", "L1", "L2 (PyTorch, JAX)" """
    levels: dict[str, dict[str, None]] = {}
    for row in sorted(rows, key=lambda row: row.level):
        names = levels.setdefault(row.level, {})
        if row.framework:
            names[FRAMEWORKS.get(row.framework, row.framework)] = None
    return [f"{level} ({', '.join(names)})" if names else level for level, names in levels.items()]


def _listed(words: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), words[-1]))) if words else ""


def _odd(group: Alike) -> Alike:
    """Of GPUs that are alike, the levels at which something is not as it should be."""
    odd = {_level_key(row) for row in group.rows if _needs_words(row) and not _plain(row)}
    rows = [row for row in group.rows if _level_key(row) in odd]
    return Alike(title=group.title, count=group.count, rows=rows)


def _rates(page: Page, groups: list[Alike]) -> None:
    """Of all that is proven the fastest, a line a kind of GPU: "FP16 830 TFLOP/s; INT8 1613 TOP/s"."""
    for group in groups[:GPUS]:
        best: dict[str, float] = {}
        for row in group.rows:
            if row.verdict == "proven" and row.mode != "fp32" and row.tflops is not None:
                best[row.mode] = max(best.get(row.mode, 0.0), row.tflops)
        if best:
            units = {"TFLOP/s": [m for m in best if m != "int8"], "TOP/s": ["int8"]}
            rates = "; ".join(
                f"{', '.join(f'{mode.upper()} {number(best[mode])}' for mode in modes)} {unit}"
                for unit, modes in units.items()
                if modes and all(mode in best for mode in modes)
            )
            each = " (each, in short bursts)" if group.count > 1 else " (in short bursts)"
            told = f"{group.title}: {rates}{each}"
            page.paragraph((told, "quiet"), indent=2, hanging=4)


def _why_nothing(report: Report, snapshot: Snapshot) -> str:
    """Why no matrix product ran, where that is not plain: a machine without a GPU has said so already."""
    if report.machine.gpus == [] or tensor_cores_left_out(report.results):
        return ""
    for document in (snapshot.machine, snapshot.target):
        probe = None if document is None else document.micro_kernels
        if probe is not None and (probe.facts is None or not probe.facts.runs):
            return f"no matrix product ran: {probe.reason or probe.outcome}."
    return ""


def _table(page: Page, group: Alike, verbose: bool) -> None:
    count = [(f"({group.count} alike)", "")] if group.count > 1 else []
    page.paragraph((group.title or "No GPU's own", "heading"), *count, hanging=2)
    if any(row.verdict not in SILENT for row in group.rows[:ROWS]):
        heading(page)
    for _, found in groupby(group.rows[:ROWS], key=_level_key):
        level = list(found)
        _level(page, level)
        rows(page, level)
    if (left := len(group.rows) - ROWS) > 0:
        page.paragraph((f"and {left} more in --format json", ""), indent=2)
    if verbose:
        _texts(page, group.rows[:ROWS])


def _level_key(row: ModeVerdict) -> tuple[str, str, str]:
    return (row.level, row.framework, row.library)


def _level(page: Page, level: list[ModeVerdict]) -> None:
    """What computed at this level, and how its control came out."""
    first = level[0]
    control = next((row for row in level if row.control), None)
    says = []
    if control is not None and as_it_must(control):
        says = [("– control: not engaged, as it must be", "")]
    elif control is not None and any(row.verdict not in SILENT for row in level):
        told = f"– control: {control.verdict}, so nothing here counts as proven"
        says = [(told, style_of(control))]
    page.paragraph((first.level, "code"), (_computed_by(first), "code"), *says, hanging=3)


def _computed_by(row: ModeVerdict) -> str:
    if row.level == "L0":
        return "the hardware, by the driver alone"
    if row.level == "L1":
        return row.library or "the target's cuBLAS"
    return FRAMEWORKS.get(row.framework, row.framework)


def _texts(page: Page, judged: list[ModeVerdict]) -> None:
    """Why a line cannot tell; and the bits of all that ran, beside those that are not as they should be."""
    told = [row for row in judged if row.verdict not in SILENT and not _needs_evidence(row)]
    titles = [("rate", "Rate:"), ("hardware", "Hardware:")]
    if any(_needs_evidence(row) for row in judged):
        titles.insert(0, ("bits", "Bits:"))
    for name, title in titles:
        alike: dict[str, list[ModeVerdict]] = {}
        for row in told:
            line: Line = getattr(row, name)
            asked = name == "bits" or line.says == "cannot tell"
            if line.text and asked:
                alike.setdefault(line.text, []).append(row)
        for text, those in list(alike.items())[:TEXTS]:
            what = page.cut(page.clean(text), _TEXT_CELLS)
            page.paragraph(
                (title, "quiet"), (what, "quiet"), (f"({_names(those)})", "quiet"), hanging=2
            )
        if (left := len(alike) - TEXTS) > 0:
            page.paragraph((title, "quiet"), (f"{left} more in --format json", "quiet"))


def _needs_words(row: ModeVerdict) -> bool:
    """Whether a row is not as one wishes it to be, or somebody has to do something about it."""
    if row.verdict == "not applicable" or as_it_must(row):
        return False
    if row.verdict == "proven" or row.setting == "override":
        return row.control
    if row.verdict == "could not run" or (row.verdict == "not engaged" and row.mode == "fp32"):
        return bool(row.cause or row.remedy)
    return True


def _needs_evidence(row: ModeVerdict) -> bool:
    """Whether all three lines are told in words: FP32 that stayed FP32 needs a cause alone."""
    return _needs_words(row) and row.verdict not in SILENT and not _plain(row)


def _plain(row: ModeVerdict) -> bool:
    """FP32 that stayed FP32, as most frameworks leave it."""
    return row.verdict == "not engaged" and row.mode == "fp32"


def _unproven(page: Page, judged: list[ModeVerdict], results: list[CheckResult]) -> None:
    """What is not proven, and what is below the peak: each cause once, with its modes."""
    if any(_needs_words(row) or row.slow for row in judged):
        page.blank()
    for alike in _together(filter(_needs_words, judged)):
        row = alike[0]
        code = _code(row.remedy, results)
        why = [(row.cause or row.reason, "")] if row.cause or row.reason else []
        seen = [(f"(see {code} above)", "")] if code else []
        where = f"{_names(alike)}:"
        page.paragraph(
            (where, "code"), (row.verdict, style_of(row)), *_dashed(why), *seen, hanging=2
        )
        if not code and _needs_evidence(row):
            _evidence(page, alike)
        if not code:
            _remedy(page, row.remedy)
    ran = [row for row in judged if row.verdict not in SILENT]
    slow: dict[str, list[ModeVerdict]] = {}
    for row in judged:
        if row.slow:
            slow.setdefault(row.slow, []).append(row)
    for text, those in slow.items():
        where = f"{_names(those, ran)}:"
        told = ("below the peak", "")
        page.paragraph((where, "code"), told, *_dashed([(text, "")]), hanging=2)


def _dashed(why: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [("–", ""), *why] if why else []


def _together(judged: Iterable[ModeVerdict]) -> Iterator[list[ModeVerdict]]:
    """Rows of which the same is told and for which the same is to be done."""
    alike: dict[_Key, list[ModeVerdict]] = {}
    for row in judged:
        key = (row.verdict, row.cause or row.reason, _remedy_key(row.remedy))
        alike.setdefault(key, []).append(row)
    yield from alike.values()


def _names(judged: list[ModeVerdict], everything: list[ModeVerdict] | None = None) -> str:
    """ "L1 TF32, FP16; PyTorch FP32 by default"; of a level alone where it is all of ``everything``."""
    names, all_names = _by_level(judged), _by_level(everything or [])
    return "; ".join(
        where if labels == all_names.get(where) else f"{where} {', '.join(labels)}"
        for where, labels in names.items()
    )


def _by_level(judged: list[ModeVerdict]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for row in judged:
        where = FRAMEWORKS.get(row.framework, row.framework) or row.level
        names.setdefault(where, []).append(label(row))
    return names


def _evidence(page: Page, rows: list[ModeVerdict]) -> None:
    """The three lines of rows of which the same is told; where theirs differ, each with whose it is."""
    for name in ("bits", "rate", "hardware"):
        lines: dict[tuple[str, str], list[ModeVerdict]] = {}
        for row in rows:
            line: Line = getattr(row, name)
            lines.setdefault((line.says, line.text), []).append(row)
        for (says, text), those in list(lines.items())[:TEXTS]:
            whose = f" of {_names(those)}" if len(lines) > 1 else ""
            told = f" ({page.cut(page.clean(text), 2 * _TEXT_CELLS)})" if text else ""
            page.paragraph((f"{name}{whose}: {says}{told}", "quiet"), indent=4, hanging=6)


def _remedy(page: Page, remedy: Remedy | None) -> None:
    if remedy is None:
        return
    page.paragraph(("To do:", "heading"), (remedy.text, ""), indent=2, hanging=4)
    for command in remedy.commands:
        page.command(command)


def _remedy_key(remedy: Remedy | None) -> _Key:
    return () if remedy is None else (remedy.text, *remedy.commands)


def _code(remedy: Remedy | None, results: list[CheckResult]) -> str:
    """The check whose findings give this remedy in full; "" where none does."""
    for result in results if remedy is not None else []:
        told = result.findings if result.outcome in ("fail", "warn") else []
        if any(_within(finding.remedy, remedy) for finding in told):
            return result.code
    return ""


def _within(part: Remedy | None, whole: Remedy | None) -> bool:
    """Whether it is the same remedy, perhaps of one GPU of several."""
    if part is None or whole is None:
        return False
    return part.text == whole.text and set(part.commands) <= set(whole.commands)


def _legend(page: Page, groups: list[Alike]) -> None:
    """How to read the table, and where it is explained why this is a proof."""
    if any(row.verdict not in SILENT for group in groups for row in group.rows):
        page.paragraph((_LEGEND, "quiet"))
    page.paragraph(("All of it, and why it is a proof:", ""))
    page.command(_EXPLAIN, here=True)
