"""The report as JUnit XML, which continuous-integration servers show: a suite an area."""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree as ET

import msgspec

from .. import safe_text
from ..checks.registry import area_title
from .model import Counts, Report, by_area, count
from .plain import finding_lines, gist
from .results import ReportedResult, fails


def render(report: Report, *, fail_on: str = "fail") -> str:
    """fail is a <failure>, could-not-run an <error>; warnings pass, but for those of `--fail-on`."""
    replace = msgspec.structs.replace
    found = [replace(r, outcome="fail") if fails(r, fail_on) else r for r in report.results]
    report = replace(report, results=found, counts=count(found))
    totals = _numbers(report.counts)
    del totals["skipped"]  # which Jenkins' schema (junit-10.xsd) knows of a suite alone
    made_up = f" (simulated: {report.simulated})" if report.simulated else ""
    root = ET.Element("testsuites", {"name": f"envcheck doctor{made_up}", **totals})
    for area, results in by_area(report.results).items():
        root.append(_suite(report, area, results))
    return document(root)


def document(root: ET.Element) -> str:
    """The file, without characters that XML does not allow, which ElementTree writes as they are."""
    ET.indent(root)
    text = safe_text.lines(ET.tostring(root, encoding="unicode"))
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def add_properties(parent: ET.Element, pairs: Iterable[tuple[str, str]]) -> None:
    """Names and values; empty values are omitted."""
    if shown := [(name, value) for name, value in pairs if value]:
        properties = ET.SubElement(parent, "properties")
        for name, value in shown:
            ET.SubElement(properties, "property", {"name": name, "value": value})


def _suite(report: Report, area: str, results: list[ReportedResult]) -> ET.Element:
    suite = ET.Element("testsuite", {"name": area_title(area), **_numbers(count(results))})
    suite.set("timestamp", report.machine.collected_at)
    target = "" if report.target is None else report.target.summary
    about = {"envcheck": report.envcheck, "machine": report.machine.summary, "target": target}
    add_properties(suite, about.items())
    suite.extend(_case(area, result) for result in results)
    return suite


def _numbers(counts: Counts) -> dict[str, str]:
    numbers = {
        "tests": counts.passed + counts.warn + counts.fail + counts.skipped + counts.could_not_run,
        "failures": counts.fail,
        "errors": counts.could_not_run,
        "skipped": counts.skipped,
    }
    return {name: str(number) for name, number in numbers.items()}


def _case(area: str, result: ReportedResult) -> ET.Element:
    case = ET.Element(
        "testcase", {"classname": f"envcheck.{area}", "name": f"{result.code} {result.title}"}
    )
    causes = dict.fromkeys(finding.cause for finding in result.findings)
    add_properties(case, (("cause", cause) for cause in causes))
    body = "\n".join(finding_lines(result))
    if result.outcome in ("fail", "could-not-run"):
        failed = result.outcome == "fail"
        message = gist(result) if failed else result.reason
        about = {"message": message, "type": result.code}
        ET.SubElement(case, "failure" if failed else "error", about).text = body
    elif result.outcome == "skipped":
        ET.SubElement(case, "skipped", {"message": result.reason})
    elif result.outcome == "warn":
        ET.SubElement(case, "system-out").text = body
    return case
