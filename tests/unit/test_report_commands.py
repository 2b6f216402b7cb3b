"""--commands: a script to read and to pipe into a shell, whatever the facts hold."""

from __future__ import annotations

import pytest
import whole
from hypothesis import example, given, settings
from hypothesis import strategies as st
from reported import consequence, finding, report_of, result
from test_report_verdict import hot

from envcheck.checks.engine import diagnose
from envcheck.findings.model import Remedy
from envcheck.reports import commands
from envcheck.reports.model import build


def test_each_command_stands_under_what_it_is_for() -> None:
    snapshot = hot(3)
    assert commands.render(build(snapshot, diagnose(snapshot)), snapshot) == (
        "# 1 problem: GPU 3 is throttled by heat\n"
        "\n"
        "# GPU-008 GPU 3 is throttled by heat\n"
        "# Look at fans, airflow, dust and the room's temperature; passively cooled boards need the"
        " server's own fans.\n"
        "nvidia-smi -q -d TEMPERATURE\n"
        "nvidia-smi dmon -s pc\n"
    )


def test_what_is_healthy_gives_a_comment_alone() -> None:
    snapshot = whole.whole()
    text = commands.render(build(snapshot, diagnose(snapshot)), snapshot)
    assert text.endswith("\n# Nothing to do.\n")
    assert all(line.startswith("#") for line in text.splitlines())


def test_what_follows_from_a_failure_is_not_to_be_done_and_the_cause_comes_first() -> None:
    def failed(code: str) -> object:
        return finding(f"{code}.", remedy=Remedy("Do.", [f"echo {code}"]))

    results = [
        result("A-1", "host", "warn", findings=[finding("W.", "warn", remedy=Remedy("", ["w"]))]),
        result("A-2", "host", "fail", findings=[failed("A-2")]),
        result("A-3", "host", "fail", findings=[failed("A-3")]),
        consequence("A-4", "host", "A-3", "It follows."),
    ]
    report = report_of(*results)
    lines = commands.render(report, whole.whole()).splitlines()
    assert [line for line in lines if line and not line.startswith("#")] == [
        "echo A-3",
        "echo A-2",
        "w",
    ]


@example("a\nrm -r x\r\x85\u2028b")
@given(st.text(st.characters(codec=None), max_size=80))
@settings(max_examples=60, deadline=None)
def test_a_comment_stays_one(text: str) -> None:
    found = finding(text, headline=text, subject=text, remedy=Remedy(text, ["true"]))
    failed = result("A-1", "host", "fail", title=text, findings=[found])
    for utf8 in (True, False):
        lines = commands.render(report_of(failed), whole.whole(), utf8=utf8).split("\n")
        bare = [line for line in lines if line and not line.startswith("#")]
        assert bare == ["true"], lines


@pytest.mark.parametrize("elsewhere", [True, False])
def test_our_own_commands_work_where_they_are_printed(elsewhere: bool) -> None:
    found = finding("A.", remedy=Remedy("A.", ["envcheck collect"]))
    report = report_of(result("A-1", "host", "fail", findings=[found]))
    script = commands.render(
        report, whole.whole(), in_place=lambda text: f"/opt/{text}", elsewhere=elsewhere
    )
    assert script.endswith("\nenvcheck collect\n" if elsewhere else "\n/opt/envcheck collect\n")
