"""Packages of another environment on sys.path are named as the cause; nothing here is judged by them."""

from __future__ import annotations

from typing import Any

import pytest
from targets import dist, good_snapshot, interpreter, judge, not_imported, packages

from envcheck.checks.engine import diagnose
from envcheck.facts.snapshot import Snapshot
from envcheck.facts.target import Environment
from envcheck.findings.model import CheckResult

HOME = "<home-1>/tf1"
OWN = f"{HOME}/lib/python3.7/site-packages"
ELEVEN = "<home-1>/venv311/lib/python3.11/site-packages"
SAME = "<home-1>/venv37/lib/python3.7/site-packages"
WORDS = "ImportError: No module named '_pywrap_tensorflow_internal'"


def borrowing(location: str, kind: str = "virtualenv", by_path: bool = True) -> Snapshot:
    """TensorFlow 1.15.5 of a Python 3.7, and before it two TensorFlows of another environment."""
    borrowed = [
        dist("tensorflow", "2.20.0", location=location),
        dist("tensorflow-cpu", "2.19.1", location=location),
        dist("numpy", "2.1.3", location=location),
    ]
    own = [
        dist("tensorflow", "1.15.5", location=OWN, shadowed=True),
        dist("numpy", "1.21.6", location=OWN, shadowed=True),
    ]
    probes: dict[str, Any] = {
        "environment": Environment(variables={"PYTHONPATH": location} if by_path else {}),
        "interpreter": interpreter(version="3.7.17", prefix=HOME, kind=kind),
        "packages": packages(*borrowed, *own),
        "tensorflow": not_imported(words=WORDS),
    }
    return good_snapshot(**probes)


def results(snapshot: Snapshot) -> dict[str, CheckResult]:
    return {result.code: result for result in diagnose(snapshot).results}


def commands(snapshot: Snapshot) -> list[str]:
    return [
        command
        for result in diagnose(snapshot).results
        if not result.consequence_of
        for finding in result.findings
        if finding.remedy is not None
        for command in finding.remedy.commands
    ]


@pytest.mark.parametrize("kind", ["virtualenv", "conda", "interpreter"])
@pytest.mark.parametrize("by_path", [True, False])
def test_another_pythons_packages_are_the_cause(kind: str, by_path: bool) -> None:
    snapshot = borrowing(ELEVEN, kind, by_path)
    found = results(snapshot)
    assert found["ENV-011"].outcome == "fail"
    (finding,) = found["ENV-011"].findings
    assert "another Python" in finding.message and "3.7" in finding.message
    assert found["FRM-001"].consequence_of == "ENV-011"
    printed = commands(snapshot)
    assert not [command for command in printed if "uninstall" in command or "install" in command]
    assert not by_path or "unset PYTHONPATH" in printed


def test_another_environment_of_the_same_python_is_a_warning() -> None:
    assert results(borrowing(SAME))["ENV-011"].outcome == "warn"


@pytest.mark.parametrize("code", ["PKG-001", "PKG-003", "CFG-001"])
def test_a_choice_of_checks_changes_no_verdict(code: str) -> None:
    snapshot = borrowing(ELEVEN)
    alone = {r.code: r for r in diagnose(snapshot, only=[code]).results}[code]
    whole = results(snapshot)[code]
    assert alone.detail == whole.detail and [f.message for f in alone.findings] == [
        f.message for f in whole.findings
    ]


def test_uvs_environments_are_changed_by_uv() -> None:
    several = [
        dist("tensorflow", "2.15.1", installer="uv"),
        dist("tensorflow-cpu", "2.16.1", installer="uv"),
    ]
    (finding,) = judge(good_snapshot(packages=packages(*several)), "PKG-003", "packages").findings
    assert finding.remedy is not None
    (command,) = finding.remedy.commands
    first, uninstall, last = command.split(" && ")
    assert first.startswith("uv pip install --python ") and last.startswith("uv pip install ")
    assert uninstall.startswith("uv pip uninstall --python ") and "-m pip" not in command
