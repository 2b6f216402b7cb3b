"""Areas in a line each: the worst outcome, facts, how many checks; or those with one outcome together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from ..checks.registry import area_title
from ..facts.base import known
from ..facts.snapshot import Document, Snapshot
from ..facts.view import NO_TARGET, is_container
from ..findings.model import ELSEWHERE, NO_KERNELS, Outcome
from .machine import facts, frameworks
from .model import Report, by_area, count, tally, was_left_out, worst
from .plain import code_ranges, roots, together
from .results import ReportedResult

_ROOT = "only root may read its facts"
_TARGET = "Target"  # the areas of a target where none was looked at
# By their SONAMEs, in the order in which they matter.
_LIBRARIES = {
    "libcudart": "CUDA",
    "libcudnn": "cuDNN",
    "libcublas": "cuBLAS",
    "libnccl": "NCCL",
    "libnvinfer": "TensorRT",
}
# Why areas are skipped in most reports.
_USUAL = (NO_TARGET, NO_KERNELS, "no container engine is installed", "not in this snapshot")
# Of no concern to a machine that has none of it.
_OPTIONAL = ("plugins", "network", "expected")


class AreaLine(NamedTuple):
    """why: of a skipped area."""

    name: str
    outcome: Outcome
    why: str
    area: str
    results: list[ReportedResult]


def statuses(report: Report, snapshot: Snapshot) -> Iterator[tuple[Outcome, str, list[str]]]:
    """(outcome, text, names) of areas with the same outcome and text."""

    def text(line: AreaLine) -> str:
        codes = [result.code for result in line.results if result.outcome == line.outcome]
        return line.why or ("" if line.outcome == "pass" else code_ranges(codes))

    lines = area_lines(report, snapshot)
    found = together(((line.outcome, text(line)), line.name) for line in lines)
    return ((outcome, words, names) for (outcome, words), names in found.items())


def short_statuses(report: Report, snapshot: Snapshot) -> list[tuple[Outcome, str, list[str]]]:
    """The same of what passed, and then of what was skipped; what was not looked at, in one line. The others
    are a report's problems."""
    found = [one for one in statuses(report, snapshot) if one[0] in ("pass", "skipped")]
    usual = [one for one in found if one[1].endswith(_USUAL)]
    if len(usual) > 1:
        names = [name for _, _, every in usual for name in every]
        found = [one for one in found if one not in usual]
        found.append(("skipped", "not looked at (-v says why)", names))
    return sorted(found, key=lambda one: one[0] != "pass")


def facts_and_counts(
    area: str, results: list[ReportedResult], report: Report, snapshot: Snapshot
) -> str:
    """ "CUDA 12.9, cuDNN 9.10; 8 checks passed" """
    target = snapshot.target if area == "libraries" else None
    found = "" if target is None else ", ".join(_libraries(target))
    counts = tally(msgspec.structs.replace(count(results), consequences=0))
    return "; ".join(filter(None, (found, counts)))


def _libraries(target: Document) -> list[str]:
    """Versions as the frameworks mapped them, else as dlopen found them."""
    loader = facts(target.loader)
    loaded = [one for framework in frameworks(target) for one in framework.libraries]
    loaded += [] if loader is None else loader.libraries
    versions: dict[str, str] = {}
    for one in loaded:
        if version := known(one.version):
            versions.setdefault(one.name, version)
    return [f"{name} {versions[key]}" for key, name in _LIBRARIES.items() if key in versions]


def skip_reasons(report: Report) -> dict[str, list[str]]:
    """{reason: codes}, the commonest first; consequences are with their failures."""
    reasons = together(
        (result.reason, result.code)
        for result in report.results
        if result.outcome == "skipped" and not result.consequence_of
        if result.reason not in ELSEWHERE
    )
    return dict(sorted(reasons.items(), key=lambda item: -len(item[1])))


def area_lines(report: Report, snapshot: Snapshot) -> list[AreaLine]:
    """The areas that were asked for."""
    ends = roots(report.results)
    areas = by_area(
        result
        for result in report.results
        if not was_left_out(result) and result.reason not in ELSEWHERE
    )
    if snapshot.target is None:
        areas = _without_target(areas)
    elif not is_container(snapshot.target):
        areas.pop("boundary", None)
    for name in _OPTIONAL:
        if area_outcome(areas.get(name, [])) == "skipped":
            areas.pop(name, None)
    lines = []
    for area, results in areas.items():
        outcome = area_outcome(results)
        why = _why_skipped(results, ends) if outcome == "skipped" else ""
        lines.append(AreaLine(area_title(area), outcome, why, area, results))
    return lines


def _without_target(areas: dict[str, list[ReportedResult]]) -> dict[str, list[ReportedResult]]:
    """The areas of a target that was not looked at as one; envcheck's own environment only with a finding."""
    reasons = {area: {one.reason for one in results} for area, results in areas.items()}
    target = {area: areas[area] for area, found in reasons.items() if found == {NO_TARGET}}
    if len(target) < 2:
        return areas
    rest = {area: results for area, results in areas.items() if area not in target}
    if area_outcome(rest.get("environment", [])) in ("pass", "skipped"):
        rest.pop("environment", None)
    return rest | {_TARGET: [result for one in target.values() for result in one]}


def area_outcome(results: list[ReportedResult]) -> Outcome:
    """The area's worst outcome; where something follows from a failure elsewhere, it is not OK."""
    found = worst(results)
    follows = any(result.consequence_of for result in results)
    return "skipped" if found == "pass" and follows else found


def _why_skipped(results: list[ReportedResult], ends: dict[str, str]) -> str:
    """The failure that an area follows from, else its commonest reason."""
    causes = [ends.get(one.code) or one.consequence_of for one in results if one.consequence_of]
    if causes:
        return f"skipped because of {', '.join(dict.fromkeys(causes))}"
    reasons = Counter(
        _ROOT if one.unjudged and all(gap.needs_root for gap in one.unjudged) else one.reason
        for one in results
        if one.reason
    )
    return reasons.most_common(1)[0][0] if reasons else tally(count(results))
