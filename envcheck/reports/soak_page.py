"""A soak as one HTML page: what it came to, its GPUs, and what was sampled over the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..facts.soak import Mismatch, Soak, SoakGpu, SoakMinute
from ..findings.model import CheckResult
from . import html_page
from .html_script import SCRIPT
from .plots.lines import Band, Curve, lines
from .soak_words import gpu_word, how, lasted, span, summary, worst

_HELD = ("hw_thermal_slowdown", "sw_thermal_slowdown", "hw_power_brake_slowdown", "hw_slowdown")


def _held_down(one: SoakMinute) -> float:
    return 100.0 * sum(one.throttled.get(name, 0.0) for name in _HELD)


_PLOTS: tuple[tuple[str, str, str, Callable[[SoakMinute], float | None]], ...] = (
    ("rate", "Products", "TFLOP/s", lambda one: one.tflops),
    ("temperature", "Temperature, the highest of each minute", "°C", lambda one: one.temperature_c),
    (
        "memory-temperature",
        "Temperature of the memory",
        "°C",
        lambda one: one.memory_temperature_c,
    ),
    ("power", "Power", "W", lambda one: one.power_w),
    ("clock", "SM clock", "MHz", lambda one: one.sm_clock_mhz),
    (
        "throttled",
        "Held down by heat or the power brake",
        "% of the samples",
        _held_down,
    ),
)
_MOST = 20  # mismatches of a GPU


def render(soak: Soak, results: Sequence[CheckResult]) -> str:
    title = f"envcheck soak, {soak.began}" if soak.began else "envcheck soak"
    kind = worst(results)
    sections = [
        *_findings(results),
        html_page.PageSection("gpus", "GPUs", [table(soak)]),
        html_page.PageSection("over-time", "Over time", [*plots(soak)]),
        html_page.PageSection("mismatches", "Wrong results", [*mismatches(soak)]),
        html_page.PageSection("ran", "What ran", [html_page.facts(_facts(soak))]),
    ]
    sections = [one for one in sections if any(one.parts)]
    word, _, told = summary(soak, results).partition(": ")
    head = html_page.masthead(
        "soak", title, kind, word, [told] if told else [], about=f"asked for {span(soak.asked)}"
    )
    return html_page.whole(
        title,
        map(html_page.section, sections),
        head=head,
        contents=html_page.contents(sections),
        kind=kind,
        script=SCRIPT,
    )


def table(soak: Soak) -> str:
    columns = [("GPU", ""), ("state", ""), ("products", "right"), ("wrong", "right")]
    columns += [("memory, MiB", "right"), ("passes over it", "right"), ("Xids", "right")]
    rows = [
        [
            (gpu_word(gpu), ""),
            (lasted(gpu) + (f": {gpu.reason}" if gpu.reason else ""), _kind(gpu)),
            (f"{gpu.products:,}", ""),
            (f"{gpu.wrong:,}", "fail" if gpu.wrong else ""),
            (f"{gpu.memory_mib:,}", ""),
            (f"{gpu.passes:,}", ""),
            (f"{len(gpu.xids):,}", ""),
        ]
        for gpu in soak.gpus
    ]
    return html_page.table(columns, rows)


def _kind(gpu: SoakGpu) -> str:
    return "fail" if gpu.outcome in ("died", "hung", "error") else ""


def _findings(results: Sequence[CheckResult]) -> Iterator[html_page.PageSection]:
    found = [(result, finding) for result in results for finding in result.findings]
    told = []
    for result, finding in found:
        lead = "FAIL" if finding.level == "fail" else "WARN"
        words = f"{result.code} {finding.subject}: {finding.message}"
        told.append(html_page.listed([(lead, finding.level, words)]))
        if finding.remedy is not None:
            told.append(html_page.paragraph(finding.remedy.text))
            if finding.remedy.commands:
                told.append(html_page.command(*finding.remedy.commands))
    if told:
        yield html_page.PageSection("wrong", "What is wrong", told, str(len(found)))


def plots(soak: Soak) -> Iterator[str]:
    bands = [
        Band(gpu.ended, soak.seconds, f"{gpu_word(gpu)} {lasted(gpu)}")
        for gpu in soak.gpus
        if gpu.ended is not None
    ]
    for name, title, unit, value in _PLOTS:
        curves = [
            Curve(
                name=gpu_word(gpu),
                points=[(one.began + one.seconds / 2, value(one)) for one in gpu.minutes],
            )
            for gpu in soak.gpus
        ]
        curves = [one for one in curves if any(y for _x, y in one.points)]
        if curves:
            drawn = lines(f"soak-{name}", title, unit, curves, bands=bands)
            yield html_page.plot(drawn, title)


def mismatches(soak: Soak) -> Iterator[str]:
    rows = [
        [
            (gpu_word(gpu), ""),
            (span(seen.seconds), ""),
            (seen.what, ""),
            (_place(seen), ""),
            (seen.found or seen.bits, ""),
            (seen.wanted, ""),
            (f"{seen.words:,}", ""),
        ]
        for gpu in soak.gpus
        for seen in gpu.mismatches[:_MOST]
    ]
    if rows:
        columns = [("GPU", ""), ("at", "right"), ("what", ""), ("where", ""), ("is", "")]
        columns += [("was", ""), ("words", "right")]
        yield html_page.table(columns, rows)


def _place(seen: Mismatch) -> str:
    if seen.addresses:
        return seen.addresses
    words = "" if seen.row is None else f"row {seen.row}, column {seen.column}"
    return words + ("" if seen.unit is None else f", multiprocessor {seen.unit}")


def _facts(soak: Soak) -> Iterator[tuple[str, str]]:
    yield "asked for", span(soak.asked)
    yield "took", span(soak.seconds)
    for gpu in soak.gpus:
        yield gpu_word(gpu), how(gpu)
        if gpu.no_samples:
            yield f"{gpu_word(gpu)}, no samples", gpu.no_samples
