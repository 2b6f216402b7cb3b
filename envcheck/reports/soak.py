"""A soak as text: a line a minute while it runs, and a table of its GPUs at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..facts.soak import Soak, SoakGpu, SoakMinute
from ..facts.view import show
from ..findings.model import CheckResult, Finding
from .page import Column, Page, unchanged
from .soak_words import gpu_word, how, lasted, span, summary, worst

_TITLES = (
    ("GPU", False),
    ("", False),
    ("products", True),
    ("TFLOP/s", True),
    ("last", True),
    ("MHz", True),
    ("°C", True),
    ("W", True),
    ("wrong", True),
)


def minute_line(began: float, minutes: Sequence[tuple[str, SoakMinute, list[str]]]) -> str:
    """ "0:05  GPU 0  N TFLOP/s  N MHz  N °C  N W"; after a GPU's figures what is wrong."""
    told = []
    for name, minute, failures in minutes:
        figures = [
            name,
            "-" if minute.tflops is None else f"{minute.tflops:.4g} TFLOP/s",
            "" if minute.sm_clock_mhz is None else f"{minute.sm_clock_mhz:.0f} MHz",
            "" if minute.temperature_c is None else f"{minute.temperature_c:.0f} °C",
            "" if minute.power_w is None else f"{minute.power_w:.0f} W",
        ]
        if failures:
            figures.append(f"FAIL: {', '.join(failures)}")
        told.append("  ".join(filter(None, figures)))
    return f"{span(began):>8}  " + " | ".join(told)


def render(
    soak: Soak,
    results: Sequence[CheckResult],
    *,
    width: int = 80,
    colour: bool = False,
    utf8: bool = True,
    restore: Callable[[str], str] = unchanged,
    in_place: Callable[[str], str] = unchanged,
) -> str:
    page = Page(width=width, colour=colour, utf8=utf8, restore=restore, in_place=in_place)
    outcome = worst(results)
    page.paragraph((summary(soak, results), outcome))
    page.blank()
    page.table([Column(title, right=right) for title, right in _TITLES], map(_row, soak.gpus))
    for words in dict.fromkeys(filter(None, map(how, soak.gpus))):
        page.paragraph((f"products by {words}", "quiet"), hanging=4)
    for result in results:
        for finding in result.findings:
            _finding(page, result, finding)
    for result in results:
        for reason in dict.fromkeys(one.reason for one in result.unjudged):
            page.paragraph((f"{result.code} not judged: ", "code"), (reason, ""), hanging=4)
    return page.text()


def _row(gpu: SoakGpu) -> list[tuple[str, str]]:
    minutes = gpu.minutes
    last = next((one.tflops for one in reversed(minutes) if one.tflops is not None), None)
    kind = {"ok": "pass", "busy": "skipped", "not-run": "skipped"}.get(gpu.outcome, "fail")
    return [
        (gpu_word(gpu), ""),
        (lasted(gpu), kind),
        (f"{gpu.products:,}", ""),
        (_figure([one.tflops for one in minutes], "{:.4g}"), ""),
        ("-" if last is None else f"{last:.4g}", ""),
        (_figure([one.sm_clock_mhz for one in minutes], "{:.0f}"), ""),
        (_figure([one.temperature_c for one in minutes], "{:.0f}", highest=True), ""),
        (_figure([one.power_w for one in minutes], "{:.0f}"), ""),
        (f"{gpu.wrong:,}", "fail" if gpu.wrong else ""),
    ]


def _figure(values: Sequence[float | None], form: str, highest: bool = False) -> str:
    there = sorted(value for value in values if value is not None)
    if not there:
        return "-"
    return form.format(there[-1] if highest else there[len(there) // 2])


def _finding(page: Page, result: CheckResult, finding: Finding) -> None:
    page.blank()
    where = f" {finding.subject}:" if finding.subjects else ""
    page.paragraph(
        (page.sign(finding.level) + " ", finding.level),
        (f"{result.code}{where} ", "code"),
        (finding.message, ""),
        hanging=2,
    )
    for item in finding.evidence[:4]:
        page.paragraph((f"{item.fact}: {show(item.value)}", "quiet"), indent=2, hanging=4)
    if finding.remedy is not None:
        page.paragraph((finding.remedy.text, ""), indent=2)
        for command in finding.remedy.commands:
            page.command(command)
