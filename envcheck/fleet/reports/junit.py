"""A fleet's result as JUnit XML, which continuous-integration servers show: a suite a machine."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from ...reports.junit import add_properties, document
from ..model import FleetResult, JudgedMachine, MachineProblem
from . import words


def render(result: FleetResult, *, warnings_fail: bool = False) -> str:
    """Deterministic XML text, without a clock.

    A failing check is a <failure>; a machine that did not answer, or could not be looked at, is an <error>. A
    warning and outliers pass unless ``warnings_fail`` (--fail-on warn).
    """
    outliers: dict[str, list[tuple[str, str]]] = {}
    for attribute in result.attribute_outliers:
        told = (f"as its peers: {attribute.words}", words.attribute_outlier(attribute))
        outliers.setdefault(attribute.machine, []).append(told)
    for rate in result.rate_outliers:
        told = (f"as fast as its peers: {rate.words}", words.rate_outlier(rate, 99))
        outliers.setdefault(rate.machine, []).append(told)
    made_up = words.simulated(result)
    name = "envcheck fleet" + (f" (simulated: {made_up})" if made_up else "")
    suites = [_suite(one, outliers.get(one.name, []), warnings_fail) for one in result.machines]
    root = ET.Element("testsuites", {"name": name})
    for number in ("tests", "failures", "errors"):
        root.set(number, str(sum(int(suite.get(number, "0")) for suite in suites)))
    root.extend(suites)
    return document(root)


def _suite(machine: JudgedMachine, outliers: list[tuple[str, str]], strict: bool) -> ET.Element:
    by_code: dict[str, list[MachineProblem]] = {}
    for problem in machine.problems:
        by_code.setdefault(problem.code, []).append(problem)
    cases = [_check(machine, found, strict) for found in by_code.values()]
    cases += [_odd(machine, name, told, strict) for name, told in outliers]
    if machine.state == "unanswered":
        cases.append(_error(machine, "answers", machine.answer, machine.reason))
    elif machine.state == "could-not-look":
        cases.append(_error(machine, "can be looked at", machine.state, machine.verdict))
    elif not cases:
        cases.append(_case(machine, "is healthy"))
    suite = ET.Element("testsuite", {"name": machine.name, "tests": str(len(cases))})
    for number, tag in (("failures", "failure"), ("errors", "error")):
        suite.set(number, str(sum(case.find(tag) is not None for case in cases)))
    suite.set("skipped", "0")
    if machine.collected_at:
        suite.set("timestamp", machine.collected_at)
    add_properties(suite, (("machine", machine.summary), *machine.groups))
    suite.extend(cases)
    return suite


def _case(machine: JudgedMachine, name: str) -> ET.Element:
    return ET.Element("testcase", {"classname": machine.name, "name": name})


def _check(machine: JudgedMachine, found: list[MachineProblem], strict: bool) -> ET.Element:
    """A check, and all that it found on this machine."""
    case = _case(machine, f"{found[0].code} {found[0].title}")
    body: list[str] = []
    causes = dict.fromkeys(problem.cause for problem in found)
    add_properties(case, (("cause", cause) for cause in causes))
    for problem in found:
        body += [problem.message, ", ".join(problem.devices), problem.remedy, *problem.commands]
    fails = strict or any(problem.level == "fail" for problem in found)
    _tell(case, found[0].code, found[0].message, "\n".join(filter(None, body)), fails)
    return case


def _odd(machine: JudgedMachine, name: str, told: str, strict: bool) -> ET.Element:
    case = _case(machine, name)
    _tell(case, "outliers", told, told, strict)
    return case


def _tell(case: ET.Element, kind: str, message: str, body: str, fails: bool) -> None:
    if fails:
        ET.SubElement(case, "failure", {"message": message, "type": kind}).text = body
    else:
        ET.SubElement(case, "system-out").text = body


def _error(machine: JudgedMachine, name: str, kind: str, message: str) -> ET.Element:
    case = _case(machine, name)
    ET.SubElement(case, "error", {"message": message or kind, "type": kind}).text = message
    return case
