"""Checks of other packages: found by entry point, in areas of their own, and never lost in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from build import snapshot
from pythons import put_distribution

from envcheck import plugins
from envcheck.checks import engine, registry
from envcheck.findings.model import CheckResult
from envcheck.reports.model import build
from envcheck.reports.terminal import render

GOOD = """
from envcheck.checks.registry import Area, check
from envcheck.findings.causes import Cause

AREA = Area(name="fans", title="Fans", position=200)
STILL = Cause("still", "fail", "a fan stands still", "Fan {fan} stands still.", "Replace the fan.")


@check("FAN-001", title="Fans turn", causes=[STILL], about="Dust.", sources=["ACME"])
def fans_turn(view):
    yield STILL.found(fan=2)
"""
NO_AREA = GOOD.replace("AREA = ", "OTHER = ")
OUR_CODE = GOOD.replace("FAN-001", "HOST-001")
OUR_PREFIX = GOOD.replace("FAN-001", "GPU-900")
OUR_AREA = GOOD.replace('name="fans"', 'name="gpu"')
NO_CODE = GOOD.replace("FAN-001", "fan one")
CRASHES = "raise RuntimeError('no\\nlicence \\x1b[31m')"
EXITS = "raise SystemExit(3)"
EMPTY = "x = 1"
CALLED = GOOD.replace("@check", "def register():\n  @check").replace("\ndef fans", "\n  def fans")
HALF = GOOD + GOOD.replace("FAN-001", "PCI-001")

Install = Callable[..., None]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """install(source, entry="acme_fans", group="envcheck.checks"): a distribution on sys.path."""

    def put(source: str, entry: str = "acme_fans", group: str = "envcheck.checks") -> None:
        (tmp_path / "acme_fans.py").write_text(source)
        entry_points = f"[{group}]\nfans = {entry}\n"
        put_distribution(tmp_path, "acme-fans", "1.2", entry_points=entry_points)
        monkeypatch.syspath_prepend(str(tmp_path))
        forget()

    def forget() -> None:
        for cached in (
            registry._load_plugins,
            registry.areas,
            registry.all_checks,
            registry.checks_without,
            plugins.entry_points,
            plugins._is_any_installed,
        ):
            cached.cache_clear()

    registry.all_checks()
    monkeypatch.setattr(registry, "_areas", dict(registry._areas))
    monkeypatch.setattr(registry, "_checks", dict(registry._checks))
    monkeypatch.setattr(plugins, "_problems", set())
    yield put
    sys.modules.pop("acme_fans", None)
    forget()


def results() -> dict[str, CheckResult]:
    return {result.code: result for result in engine.diagnose(snapshot()).results}


def problem() -> str:
    result = results()["PLG-001"]
    assert result.outcome == "could-not-run"
    (finding,) = result.findings
    return finding.message


def test_nothing_is_installed() -> None:
    assert results()["PLG-001"].reason == "no plug-in is installed"


@pytest.mark.parametrize(("source", "entry"), [(GOOD, "acme_fans"), (CALLED, "acme_fans:register")])
def test_an_area_of_its_own(install: Install, source: str, entry: str) -> None:
    install(source, entry)
    found = results()
    assert found["FAN-001"].outcome == "fail" and found["FAN-001"].area == "fans"
    assert found["PLG-001"].detail == "1 in use"
    assert list(registry.areas()).index("fans") > list(registry.areas()).index("tensorcores")
    page = render(build(snapshot(), engine.diagnose(snapshot())), snapshot())
    assert "FAIL FAN-001 Fan 2 stands still." in page


def test_a_check_added_to_an_area_of_ours(install: Install) -> None:
    source = GOOD.replace("AREA = Area(", "from envcheck.checks.gpu import AREA\nOTHER = Area(")
    install(source)
    assert results()["FAN-001"].area == "gpu"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (NO_AREA, "neither acme_fans nor a package around it has an AREA"),
        (OUR_CODE, "HOST-001 is registered twice"),
        (OUR_PREFIX, "GPU-900: codes that begin with GPU- are envcheck's own"),
        (OUR_AREA, "the area gpu is registered twice"),
        (NO_CODE, "'fan one' is not a code such as FAN-001"),
        (CRASHES, "RuntimeError: no licence"),
        (EXITS, "SystemExit: 3"),
        (EMPTY, "it registers no check"),
        (HALF, "PCI-001 is registered twice"),
        ("def broken(:", "SyntaxError"),
        ("import acme_of_nowhere", "ModuleNotFoundError: No module named 'acme_of_nowhere'"),
    ],
)
def test_what_cannot_be_used_is_a_finding(install: Install, source: str, reason: str) -> None:
    ours = [check.code for check in registry.all_checks()]
    install(source)
    assert problem().startswith("The plug-in fans (envcheck.checks) of acme-fans cannot be used: ")
    assert reason in problem() and "\n" not in problem()
    assert [check.code for check in registry.all_checks()] == ours
    assert "fans" not in registry.areas()


@pytest.mark.parametrize("group", plugins.GROUPS)
def test_a_plug_in_of_any_group_that_cannot_be_loaded(install: Install, group: str) -> None:
    install(CRASHES, "acme_of_nowhere", group)
    result = results()["PLG-001"]
    assert result.outcome == ("could-not-run" if group == "envcheck.checks" else "warn")
    assert f"({group})" in result.findings[0].message
