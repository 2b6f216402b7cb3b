"""A machine's report as one HTML page that needs no network."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..checks.registry import area_title
from ..facts.base import Probe
from ..facts.snapshot import Snapshot
from ..findings.model import ELSEWHERE
from . import acceleration, html, tensorcores
from .areas import area_outcome, facts_and_counts
from .devices import devices
from .html import Masthead, PageSection
from .model import Report, by_area, tally, verdict, was_left_out
from .page_sections import OUTCOME_WORDS, page_section, problem_sections
from .plain import code_ranges, gist, together
from .results import ReportedResult
from .sections import ReportSection

_DEVICES = 128


def render(report: Report, snapshot: Snapshot, *, name: str = "", back: str = "") -> str:
    """The page. name: the machine's, where its fleet has one. back: a link to the fleet's page."""
    masthead = _masthead(report, snapshot, name, back)
    sections = (tensorcores.section(report, snapshot), acceleration.section(report, snapshot))
    return html.page(
        f"{masthead.word}: {masthead.title}, envcheck",
        masthead,
        [
            *problem_sections(report.results, snapshot, report.root),
            _machine(snapshot, report),
            *(page_section(one) for one in sections if one is not None),
            *_measured(snapshot),
            _checks(report, snapshot),
        ],
        foot=f"envcheck {report.envcheck}; envcheck explain CODE describes a check",
        styles=["machine.css"],
        generator=html.OF_A_FLEET if back else "envcheck",
    )


def _masthead(report: Report, snapshot: Snapshot, name: str, back: str) -> Masthead:
    machine, target, found = report.machine, report.target, verdict(report, snapshot)
    hostname = machine.hostname or ""
    word = found.lead or "; ".join(found.items)
    return Masthead(
        about_what="machine report",
        title=name or (hostname if not hostname.startswith("<") else "") or "This machine",
        kind=found.sign,
        word=word[:1].upper() + word[1:],
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


def _machine(snapshot: Snapshot, report: Report) -> PageSection:
    """The devices by NUMA node."""
    found, gpus_known = devices(snapshot, report.results)
    found = sorted(found[:_DEVICES], key=lambda one: -1 if one.node is None else one.node)
    summary = "" if any(one.title.startswith("GPU") for one in found) else "It has no NVIDIA GPU."
    if not gpus_known:
        summary = "Its GPUs are not known."
    data = {"devices": found, "summary": summary, "words": OUTCOME_WORDS}
    return PageSection("machine", "The machine", "devices.html", data)


def _measured(snapshot: Snapshot) -> Iterator[PageSection]:
    """A bench and a soak, or why there is nothing to show of them."""
    from ..bench.results import results
    from . import bench_page, soak

    probe = None if snapshot.target is None else snapshot.target.bench
    found = results(snapshot) if probe is not None else None
    if found is not None:
        yield from bench_page.sections(found, snapshot)
    elif probe is not None:
        yield _nothing("bench", "Bench", probe)
    soaked = snapshot.machine.soak
    if soaked is not None and soaked.facts is not None:
        yield page_section(soak.section(soaked.facts))
    elif soaked is not None:
        yield _nothing("soak", "Soak", soaked)


def _nothing(name: str, title: str, probe: Probe[Any]) -> PageSection:
    about = f"nothing was measured: {probe.reason or probe.outcome}"
    return page_section(ReportSection(name, title, about, []))


def _checks(report: Report, snapshot: Snapshot) -> PageSection:
    areas = []
    for area, results in by_area(report.results).items():
        unasked = [one for one in results if was_left_out(one) or one.reason in ELSEWHERE]
        aside = together((one.reason, one.code) for one in unasked)
        areas.append(
            {
                "outcome": area_outcome(results),
                "title": area_title(area),
                "about": facts_and_counts(area, results, report, snapshot),
                "results": [(one, _seen(one)) for one in results if one not in unasked],
                "aside": [(why, code_ranges(codes)) for why, codes in aside.items()],
            }
        )
    data = {"summary": tally(report.counts), "areas": areas, "words": OUTCOME_WORDS}
    return PageSection("checks", "All checks", "checks.html", data, str(len(report.results)))


def _seen(result: ReportedResult) -> str:
    because = f"because of {result.consequence_of}: " if result.consequence_of else ""
    return result.detail if result.outcome == "pass" else because + gist(result)
