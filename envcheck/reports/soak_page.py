"""A soak as one HTML page: what it came to, its GPUs, and what was sampled over the time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from ..facts.soak import Mismatch, Soak, SoakGpu, SoakMinute
from ..findings.model import CheckResult
from . import html_page
from .plots.lines import Band, Curve, lines
from .soak_words import gpu_word, lasted, span, summary, worst

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
    parts = [
        html_page.heading(title, 1),
        html_page.paragraph(summary(soak, results), worst(results)),
        _table(soak),
        *_findings(results),
        *_plots(soak),
        *_mismatches(soak),
        html_page.heading("What ran"),
        html_page.facts(_facts(soak)),
    ]
    return html_page.whole(title, parts)


def _table(soak: Soak) -> str:
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


def _findings(results: Sequence[CheckResult]) -> Iterator[str]:
    found = [(result, finding) for result in results for finding in result.findings]
    if not found:
        return
    yield html_page.heading("What is wrong")
    for result, finding in found:
        lead = "FAIL" if finding.level == "fail" else "WARN"
        words = f"{result.code} {finding.subject}: {finding.message}"
        yield html_page.listed([(lead, finding.level, words)])
        if finding.remedy is not None:
            yield html_page.paragraph(finding.remedy.text)
            for command in finding.remedy.commands:
                yield html_page.command(command)


def _plots(soak: Soak) -> Iterator[str]:
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
            yield html_page.plot(lines(name, title, unit, curves, bands=bands))


def _mismatches(soak: Soak) -> Iterator[str]:
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
        yield html_page.heading("Wrong results")
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
        how = f"{gpu.call} ({gpu.mode})" if gpu.call else ""
        library = f", {gpu.library} {gpu.library_version}" if gpu.library else ""
        yield gpu_word(gpu), how + library
        if gpu.no_samples:
            yield f"{gpu_word(gpu)}, no samples", gpu.no_samples
