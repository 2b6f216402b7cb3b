"""JUnit XML: what each outcome becomes, and that any text whatever leaves it well-formed."""

from __future__ import annotations

from xml.etree import ElementTree as ET

from reported import NASTY, eight_gpus, every_outcome, finding, report_of, result

from envcheck import safe_text
from envcheck.facts.evidence import Evidence
from envcheck.findings.model import CheckResult, Remedy, Unjudged
from envcheck.findings.subjects import about
from envcheck.reports import junit


def case_of(check: CheckResult) -> ET.Element:
    case = ET.fromstring(junit.render(report_of(check)).encode()).find("testsuite/testcase")
    assert case is not None
    return case


def child_of(check: CheckResult, tag: str) -> ET.Element:
    case = case_of(check)
    causes = [one.get("value") for one in case.iterfind("properties/property")]
    assert causes == (["made-up"] if check.findings else [])
    (child,) = [child for child in case if child.tag != "properties"]
    assert child.tag == tag
    return child


def test_a_suite_an_area_and_a_case_a_check() -> None:
    root = ET.fromstring(junit.render(report_of(*every_outcome(), facts=eight_gpus())).encode())
    assert [suite.get("name") for suite in root.iter("testsuite")] == [
        "Host", "PCI", "Kernel", "Driver", "GPUs", "Containers", "Framework", "Environment",
    ]  # fmt: skip
    assert [c.get("name") for c in root.iter("testcase")] == [
        f"{check.code} {check.title}" for check in every_outcome()
    ]
    counts = {"tests": "13", "failures": "2", "errors": "1"}  # "skipped": Jenkins refuses it here
    assert root.attrib == {"name": "envcheck doctor", **counts}
    assert sum(int(suite.get("skipped", "")) for suite in root) == 5
    driver = root.find("testsuite[@name='Driver']")
    assert driver is not None and driver.get("tests") == "3" and driver.get("failures") == "1"
    properties = {p.get("name"): p.get("value") for p in driver.iter("property")}
    assert properties["target"] == "path:/home/<user-1>/tf, Python 3.8.18, tensorflow 1.15.5"


def test_warnings_fail_where_the_user_wants_it() -> None:
    report = report_of(result("HOST-002", "host", "warn", findings=[finding("Small.", "warn")]))
    assert ET.fromstring(junit.render(report).encode()).get("failures") == "0"
    assert ET.fromstring(junit.render(report, fail_on="degraded").encode()).get("failures") == "0"
    root = ET.fromstring(junit.render(report, fail_on="warn").encode())
    assert root.get("failures") == root[0].get("failures") == "1"
    failure = root.find("testsuite/testcase/failure")
    assert failure is not None and failure.get("message") == "Small."


def test_a_failure_carries_evidence_and_remedy() -> None:
    problem = finding(
        "The driver is too old.",
        subject="GPU 1",
        evidence=[Evidence("machine.nvml.driver_version", "418.1", "NVML")],
        remedy=Remedy("Update it.", ["sudo apt-get update", "sudo apt-get install x"]),
    )
    lost = Unjudged("could-not-run", "the GPU did not answer", about("file", "GPU 3"))
    failure = child_of(
        result("DRV-005", "driver", "fail", findings=[problem], unjudged=[lost]), "failure"
    )
    assert (failure.get("message"), failure.get("type")) == ("The driver is too old.", "DRV-005")
    assert (failure.text or "").splitlines() == [
        "The driver is too old.",
        "  where: GPU 1",
        "  machine.nvml.driver_version = 418.1 (NVML)",
        "  Update it.",
        "sudo apt-get update",
        "sudo apt-get install x",
        "could not look: GPU 3: the GPU did not answer",
    ]


def test_what_xml_cannot_hold_or_nobody_can_see_is_escaped_and_the_rest_stays() -> None:
    failure = child_of(result("X-1", "host", "fail", findings=[finding(NASTY)]), "failure")
    assert failure.text == safe_text.lines(NASTY)
    for illegal in ("\x00", "\x0b", "\ud800", "\ufffe", "\uffff"):
        failure = child_of(
            result("X-1", "host", "fail", findings=[finding(f"a{illegal}<&]]>b")]), "failure"
        )
        assert failure.text == f"a{safe_text.lines(illegal)}<&]]>b"
