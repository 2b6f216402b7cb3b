"""Metrics, read by OpenMetrics' reference parser, by Prometheus' own, and by promtool."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from cli import envcheck
from processes import PATIENCE

from envcheck.cli.demo import NAMES


@pytest.fixture(params=sorted({*NAMES} - {"bench"}))
def text(request: pytest.FixtureRequest) -> str:
    done = envcheck("demo", request.param, "--format", "openmetrics")
    assert done.returncode == 0 and not done.stderr
    return done.stdout.decode()


def test_the_reference_parser_takes_it(text: str) -> None:
    from prometheus_client.openmetrics.parser import text_string_to_metric_families

    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert families["envcheck_check"].samples and families["envcheck_check"].documentation


def test_promtool_finds_nothing(text: str) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("no promtool here")
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
