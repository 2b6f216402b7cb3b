"""A soak as text: a line a minute, and a table of its GPUs at the end; and as JSON lines."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from typing import Any

import msgspec

from .. import json_text
from ..facts.base import known
from ..facts.soak import Soak, SoakGpu, SoakMinute
from ..findings.model import Outcome
from . import model, terminal
from .page import Column, Page
from .plain import number_of
from .results import ReportedResult
from .sections import Block, Note, ReportSection, Span, Table, problems

_STOPPED = {
    "": "",
    "user": ", stopped by its user",
    "fail-fast": ", ended at the first failure",
    "none-left": ", ended since no GPU was left",
}
_WORDS = {"fail": "FAIL", "warn": "WARN", "pass": "OK"}
_TITLES = ("GPU", "State", "Products", "TFLOP/s", "Last", "MHz", "°C", "W", "Wrong", "Xids")


def span(seconds: float) -> str:
    """ "5:00", "1:02:03", "2 d 3:00:00" """
    whole = round(seconds)
    days, hours, minutes, rest = whole // 86400, whole // 3600 % 24, whole // 60 % 60, whole % 60
    if days:
        return f"{days} d {hours}:{minutes:02}:{rest:02}"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def gpu_name(gpu: SoakGpu) -> str:
    index = known(gpu.index)
    title = f"GPU {index}" if index is not None else known(gpu.gpu) or "GPU"
    return " ".join(filter(None, (title, known(gpu.name))))


def worst(results: Sequence[ReportedResult]) -> Outcome:
    """The worst outcome; what could not run counts less than a warning."""
    decided = [result for result in results if result.outcome != "could-not-run"]
    found = model.worst(decided)
    return found if found in ("fail", "warn") else model.worst(results)


def verdict(soak: Soak, results: Sequence[ReportedResult]) -> str:
    """ "OK: 8 GPUs, 30:00, 1,234,567 products compared" """
    ran = [gpu for gpu in soak.gpus if gpu.outcome not in ("busy", "not-run")]
    products = sum(gpu.products for gpu in ran)
    count = number_of(len(ran), "GPU") if ran else "0 GPUs"
    about = f"{count}, {span(soak.seconds)}, {products:,} products compared{_STOPPED[soak.stopped]}"
    outcome = worst(results)
    word = _WORDS.get(outcome, "COULD NOT JUDGE")
    found = [finding for result in results for finding in result.findings]
    found = [finding for finding in found if finding.level == outcome] or found
    heads = [f"{one.subject or 'it'} {one.headline}".strip() for one in found if one.headline]
    if not found:
        return f"{word}: {about}"
    more = f"; and {len(heads) - 2} more" if len(heads) > 2 else ""
    return f"{word}: {'; '.join(heads[:2])}{more} ({about})"


def minute_line(began: float, minutes: Sequence[tuple[str, SoakMinute, list[str]]]) -> str:
    """ "0:05  GPU 0  N TFLOP/s  N MHz  N °C  N W"; after a GPU's figures what is wrong."""
    parts = []
    for name, minute, failures in minutes:
        figures = [
            name,
            "-" if minute.tflops is None else f"{minute.tflops:.4g} TFLOP/s",
            "" if minute.sm_clock_mhz is None else f"{minute.sm_clock_mhz:.0f} MHz",
            "" if minute.temperature_c is None else f"{minute.temperature_c:.0f} °C",
            "" if minute.power_w is None else f"{minute.power_w:.0f} W",
            f"FAIL: {', '.join(failures)}" if failures else "",
        ]
        parts.append("  ".join(filter(None, figures)))
    return f"{span(began):>8}  " + " | ".join(parts)


def render(soak: Soak, results: Sequence[ReportedResult], **style: Any) -> str:
    page = Page(**style)
    page.paragraph((verdict(soak, results), worst(results)))
    terminal.draw(page, section(soak))
    for problem in problems(results):
        terminal.problem(page, problem, verbose=True)
    return page.text()


def section(soak: Soak) -> ReportSection:
    """Its GPUs; for text and for HTML."""
    columns = [Column(title, right=place > 1) for place, title in enumerate(_TITLES)]
    blocks: list[Block] = [Table(columns, [_row(gpu) for gpu in soak.gpus])]
    notes = [f"products by {words}" for words in map(_computed_by, soak.gpus) if words]
    for gpu in soak.gpus:
        notes += [f"{gpu_name(gpu)}: {text}" for text in (gpu.reason, gpu.no_samples) if text]
    blocks += [Note([(text, "quiet")], 1) for text in dict.fromkeys(notes)]
    return ReportSection("soak", "Soak", "", blocks)


def _computed_by(gpu: SoakGpu) -> str:
    """ "cublasGemmEx, FP16 into FP32 (libcublas.so.12 12.9.1)" """
    library = f"{gpu.library} {gpu.library_version}" if gpu.library else "envcheck's own kernel"
    return f"{gpu.call} ({library})" if gpu.call else ""


def _state(gpu: SoakGpu) -> str:
    """ "ok", "died at 1:02:03" """
    if gpu.outcome in ("died", "hung") and gpu.ended is not None:
        return f"{gpu.outcome} at {span(gpu.ended)}"
    return f"lost at {span(gpu.lost_at)}" if gpu.lost_at is not None else gpu.outcome


def _row(gpu: SoakGpu) -> list[Span]:
    minutes = gpu.minutes
    rates = [one.tflops for one in minutes if one.tflops is not None]
    kind = {"ok": "pass", "busy": "skipped", "not-run": "skipped"}.get(gpu.outcome, "fail")
    heat = [one.temperature_c for one in minutes if one.temperature_c is not None]
    figures = (
        f"{gpu.products:,}",
        _median(rates, "{:.4g}"),
        f"{rates[-1]:.4g}" if rates else "-",
        _median([one.sm_clock_mhz for one in minutes], "{:.0f}"),
        f"{max(heat):.0f}" if heat else "-",
        _median([one.power_w for one in minutes], "{:.0f}"),
    )
    wrong = (f"{gpu.wrong:,}", "fail" if gpu.wrong else "")
    cells = [(gpu_name(gpu), ""), (_state(gpu), kind), *((figure, "") for figure in figures)]
    return [*cells, wrong, (f"{len(gpu.xids):,}", "")]


def _median(values: Sequence[float | None], form: str) -> str:
    known_values = [value for value in values if value is not None]
    return form.format(statistics.median(known_values)) if known_values else "-"


def minute_json(number: int, gpus: Sequence[dict[str, Any]]) -> str:
    """gpus: the collector's records, each with the failures that were seen in it."""
    return json_text.line({"minute": number, "gpus": list(gpus)})


def summary_json(soak: Soak, results: Sequence[ReportedResult]) -> str:
    """The last line."""
    last = {
        "verdict": worst(results),
        "text": verdict(soak, results),
        "asked": soak.asked,
        "seconds": soak.seconds,
        "began": soak.began,
        "stopped": soak.stopped,
        "gpus": [msgspec.structs.replace(gpu, minutes=[]) for gpu in soak.gpus],
        "findings": [
            {"code": result.code, **msgspec.to_builtins(finding)}
            for result in results
            for finding in result.findings
        ],
    }
    return json_text.line({"summary": last})
