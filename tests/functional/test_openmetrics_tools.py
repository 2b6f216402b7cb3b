"""Metrics, read by OpenMetrics' reference parser, by Prometheus' own, and by promtool."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from cli import envcheck
from processes import ran

from envcheck.cli.demo import NAMES

DOCS = Path(__file__).parents[2] / "docs" / "monitoring"


@pytest.fixture(params=[*sorted({*NAMES} - {"bench"}), "fleet"])
def text(request: pytest.FixtureRequest) -> str:
    done = envcheck("demo", request.param, "--format", "openmetrics")
    assert done.returncode == 0 and not done.stderr
    return done.stdout.decode()


def test_the_reference_parser_takes_it(text: str) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["envcheck_state"].samples and families["envcheck_state"].documentation


def promtool(*words: str | Path, given: str = "") -> subprocess.CompletedProcess[str]:
    program = shutil.which("promtool")
    if program is None:
        pytest.skip("no promtool here")
    return ran([program, *words], input=given, text=True)


def test_promtool_finds_nothing(text: str) -> None:
    done = promtool("check", "metrics", given=text)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    "words",
    [
        ("check", "rules", DOCS / "alerts.yml"),
        ("test", "rules", Path(__file__).with_name("alerts_test.yml")),
    ],
)
def test_the_alerts_fire_when_they_should(words: tuple[str | Path, ...]) -> None:
    done = promtool(*words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_query_of_the_dashboard_is_one(tmp_path: Path) -> None:
    panels = json.loads((DOCS / "dashboard.json").read_text())["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    rules = [{"record": f"a:{n}", "expr": query} for n, query in enumerate(queries)]
    file = tmp_path / "rules.yml"  # JSON is YAML
    file.write_text(json.dumps({"groups": [{"name": "panels", "rules": rules}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0 and len(queries) >= len(panels), done.stdout + done.stderr
