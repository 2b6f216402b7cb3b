"""A machine's report as one HTML page that needs no network."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from ..checks.registry import area_title
from ..facts.base import known
from ..facts.snapshot import Snapshot
from ..findings.model import ELSEWHERE
from ..tensorcores.mode_verdict import ModeVerdict
from . import acceleration, html
from .areas import area_outcome
from .facts_tree import facts_tree
from .headlines import gpu_indices, phrase
from .html import Masthead, PageSection
from .machine import facts
from .model import Report, by_area, count, tally, verdict, was_left_out
from .picture import picture
from .plain import WORDS, blocked, code_ranges, gaps, gist, grouped, roots, worst_first
from .results import ReportedResult
from .summary import area_facts
from .tensorcore_rows import (
    SILENT,
    computed_by,
    folded,
    label,
    level_of,
    needs_words,
    number,
    proven,
    ratio_of,
    share_of,
    style_of,
)
from .topology import MachineDevice, Topology, topology
from .verdict import OverallVerdict

_WORDS = {**WORDS, "skipped": "skipped"}
_FACTS = 6  # of an area
_EVIDENCE, _PROBLEMS = 12, 60
_DEVICES, _PAIRS = 128, 16
_GPUS, _ROWS = 16, 60  # of Tensor Cores
_TABLES = 4  # of a bench: its own page has all of them


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: the machine's, where its fleet has one. back: a link to the fleet's page."""
    found = verdict(report, snapshot)
    hostname = report.machine.hostname or ""
    title = name or (hostname if not hostname.startswith("<") else "") or "This machine"
    sections = [
        *_problems(report, snapshot),
        _machine(snapshot, topology(snapshot, report.results)),
        *_tensor_cores(report),
        *_systems(report),
        *_bench(snapshot),
        *_soak(snapshot, report),
        _checks(report, snapshot),
        facts_tree(snapshot),
    ]
    return html.page(
        f"{_word(found)}: {title}, envcheck",
        _masthead(report, found, title, back),
        sections,
        foot=f"envcheck {report.envcheck}; envcheck explain CODE describes a check",
        styles=["machine.css"],
        generator=html.OF_A_FLEET if back else "envcheck",
    )


def _word(found: OverallVerdict) -> str:
    word = found.lead or "; ".join(found.items)
    return word[:1].upper() + word[1:]


def _masthead(report: Report, found: OverallVerdict, title: str, back: str) -> Masthead:
    machine, target = report.machine, report.target
    return Masthead(
        about_what="machine report",
        title=title,
        kind=found.sign,
        word=_word(found),
        items=found.items if found.lead else [],
        about=machine.summary or "nothing is known of it",
        back=(back, "All machines") if back else ("", ""),
        simulated=report.simulated,
        facts=[
            ("Collected", machine.collected_at.replace("T", " ").replace("Z", " UTC")),
            ("Kernel", machine.kernel or ""),
            ("Container", machine.container or ""),
            ("Target", target.summary if target is not None else ""),
        ],
    )


def _problems(report: Report, snapshot: Snapshot) -> Iterator[PageSection]:
    """What is wrong, and what could not be checked; no section where neither is."""
    following = defaultdict(list)
    for code, root in roots(report.results).items():
        following[root].append(code)
    found = worst_first(report.results)
    unable = blocked(report.results)
    if not found and not unable:
        return
    gpus = gpu_indices(snapshot) if found else {}
    problems: list[dict[str, Any]] = []
    for result in found[:_PROBLEMS]:
        for place, group in enumerate(grouped(result.findings), 1):
            words = phrase(group.headline, group.subjects, gpus) if group.headline else result.title
            problem = {
                "id": f"problem-{result.code}" + (f"-{place}" if place > 1 else ""),
                "code": result.code,
                "title": words,
                "group": group,
                "follows": code_ranges(following[result.code]) if place == 1 else "",
                "gaps": gaps(result) if place == 1 else [],
            }
            problems.append(problem)
    failed = any(result.outcome == "fail" for result in found)
    title = "Problems" if failed else "Warnings" if found else "Not checked"
    data = {
        "problems": problems,
        "more": max(0, len(found) - _PROBLEMS),
        "evidence": _EVIDENCE,
        "blocked": [(code_ranges(codes), reason) for reason, codes in unable.items()],
        "root": report.root,
        "words": _WORDS,
    }
    yield PageSection(
        "problems", title, "machine/problems.html", data, str(len(problems)) if problems else ""
    )


def _machine(snapshot: Snapshot, found: Topology) -> PageSection:
    devices = [*found.gpus, *found.switches, *found.nics][:_DEVICES]
    names, rows, same = _ways(snapshot, found)
    data = {
        "picture": picture(found),
        "columns": _device_columns(devices),
        "devices": devices,
        "words": _WORDS,
        "same": same,
        "names": names,
        "ways": rows,
    }
    return PageSection("machine", "The machine", "machine/machine.html", data)


def _device_columns(devices: Iterable[MachineDevice]) -> list[tuple[str, list[str]]]:
    """Those in which anything stands; the template adds the state."""
    columns: dict[str, list[str]] = defaultdict(list)
    for one in devices:
        most = f" (of {one.link.most})" if one.link.most else ""
        columns["Device"].append(f"{one.title} {one.name}".strip())
        columns["PCI address"].append(one.address)
        columns["NUMA node"].append("" if one.node is None else str(one.node))
        columns["Link"].append(one.link.now + most)
        columns["NVLinks"].append("" if one.nvlinks is None else "{} of {}".format(*one.nvlinks))
        mig = "" if one.instances is None else str(len(one.instances) or "on, none")
        columns["MIG"].append(mig)
        columns["Reported"].append(", ".join(one.notes))
    return [(name, cells) for name, cells in columns.items() if any(cells)]


def _ways(
    snapshot: Snapshot, found: Topology
) -> tuple[list[tuple[str, str]], list[list[str]], str]:
    """How GPUs reach each other, as nvidia-smi topo shows it: (columns, rows, the way that all have)."""
    nvml = facts(snapshot.machine.nvml)
    names = {one.address: one.title for one in found.gpus if one.address}
    ways: dict[tuple[str, str], str] = {}
    for pair in (known(nvml.pairs) if nvml is not None else None) or []:
        if pair.first in names and pair.second in names:
            access = known(pair.p2p_read) or "ok"
            word = known(pair.level) or "?"
            word += "" if access == "ok" else f", no peer access: {access}"
            ways[(pair.first, pair.second)] = ways[(pair.second, pair.first)] = word
    if len(kinds := Counter(ways.values())) < 2:
        return [], [], next(iter(kinds), "")
    shown = list(names)[:_PAIRS]
    rows = [[names[one], *(ways.get((one, other), "–") for other in shown)] for one in shown]
    heads = [("From, to", ""), *((names[one], "") for one in shown)]
    return heads, rows, ""


def _tensor_cores(report: Report) -> Iterator[PageSection]:
    if not report.tensor_cores:
        return
    groups = folded(report.tensor_cores)
    shown = []
    for group in groups[:_GPUS]:
        levels = [_level(list(rows)) for _, rows in groupby(group.rows[:_ROWS], key=level_of)]
        more = max(0, len(group.rows) - _ROWS)
        shown.append({"title": group.title, "count": group.count, "levels": levels, "more": more})
    data = {
        "proven": proven(report.tensor_cores),
        "groups": shown,
        "more": max(0, len(groups) - _GPUS),
    }
    yield PageSection("tensor-cores", "Tensor Cores", "machine/tensor_cores.html", data)


def _level(rows: list[ModeVerdict]) -> dict[str, Any]:
    """The rows of one level as cells; then why modes did not run, are not proven, or are slow."""
    notes: dict[tuple[str, str, str], dict[str, None]] = {}
    for row in rows:
        why = row.cause or row.reason
        if row.verdict in SILENT or (needs_words(row) and why):
            key = (row.verdict, style_of(row), why)
            notes.setdefault(key, {})[label(row)] = None
        if row.slow:
            notes.setdefault(("below the peak", "warn", row.slow), {})[label(row)] = None
    return {
        "title": f"{rows[0].level}: {computed_by(rows[0])}",
        "rows": [
            {
                "row": row,
                "label": label(row),
                "kind": style_of(row),
                "rate": number(row.tflops),
                "share": share_of(row),
                "ratio": ratio_of(row),
            }
            for row in rows
            if row.verdict not in SILENT
        ],
        "notes": [
            (f"{', '.join(labels)}: {word}", kind, f"– {why}" if why else "")
            for (word, kind, why), labels in notes.items()
        ],
    }


def _systems(report: Report) -> Iterator[PageSection]:
    """A line a system; skipped ones with the same reason share one. No section where none was asked for."""
    results = acceleration.asked(report)
    skipped: dict[tuple[str, str], list[str]] = {}
    for result in results:
        if result.outcome == "skipped":
            key = (acceleration.state(result), acceleration.why(result))
            skipped.setdefault(key, []).append(result.title)
    data = {
        "summary": acceleration.summary(results),
        "rows": [
            (result, acceleration.state(result), acceleration.why(result))
            for result in results
            if result.outcome != "skipped"
        ],
        "skipped": [
            (f"{word}:", "skipped", f"{', '.join(titles)}{f' ({why})' if why else ''}")
            for (word, why), titles in skipped.items()
        ],
    }
    if results:
        yield PageSection("acceleration", "Acceleration systems", "machine/systems.html", data)


def _bench(snapshot: Snapshot) -> Iterator[PageSection]:
    document = snapshot.target
    if document is None or document.bench is None:
        return
    from ..bench.results import results
    from . import bench_page

    found = results(snapshot)
    if found is None:
        about = f"Nothing was measured: {document.bench.reason or document.bench.outcome}"
        yield PageSection("bench", "Bench", "paragraph.html", {"text": about})
        return
    about = f"{len(found.rows)} rows, begun {found.bench.began}"
    parts = bench_page.parts(found, snapshot, found.bench.left_out, most=_TABLES)
    yield PageSection("bench", "Bench", "paragraph.html", {"text": about}, parts=parts)


def _soak(snapshot: Snapshot, report: Report) -> Iterator[PageSection]:
    probe = snapshot.machine.soak
    if probe is None:
        return
    if probe.facts is None:
        about = f"Nothing was measured: {probe.reason or probe.outcome}"
        yield PageSection("soak", "Soak", "paragraph.html", {"text": about})
        return
    from . import soak_page

    results = [result for result in report.results if result.area == "soak"]
    yield soak_page.section(probe.facts, results)


def _checks(report: Report, snapshot: Snapshot) -> PageSection:
    areas = []
    for area, results in by_area(report.results).items():
        known_facts = area_facts(area, snapshot, report.tensor_cores)[:_FACTS]
        about = "; ".join(filter(None, (", ".join(known_facts), tally(count(results)))))
        aside: dict[str, list[str]] = {}
        for result in results:
            if _is_aside(result):
                aside.setdefault(result.reason, []).append(result.code)
        rows = [(result, _seen(result)) for result in results if not _is_aside(result)]
        notes = [f"{code_ranges(codes)}: {reason}" for reason, codes in aside.items()]
        areas.append((area_outcome(results), area_title(area), about, rows, notes))
    data = {"areas": areas, "tally": tally(report.counts), "words": _WORDS}
    return PageSection(
        "checks", "All checks", "machine/checks.html", data, str(len(report.results))
    )


def _is_aside(result: ReportedResult) -> bool:
    return was_left_out(result) or result.reason in ELSEWHERE


def _seen(result: ReportedResult) -> str:
    because = f"because of {result.consequence_of}: " if result.consequence_of else ""
    return result.detail if result.outcome == "pass" else because + gist(result)
