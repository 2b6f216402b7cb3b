"""Which libraries each report imports: rich for people, jinja2 for pages, prometheus-client for metrics."""

from __future__ import annotations

import sys

import pytest
from processes import ran

QUESTION = """
import importlib, sys
importlib.import_module(sys.argv[1])
libraries = {name.partition(".")[0] for name in sys.modules}
print(*sorted(libraries & {"rich", "jinja2", "prometheus_client"}))
"""


@pytest.mark.parametrize(
    ("module", "libraries"),
    [
        ("model", ""),
        ("junit", ""),
        ("markdown", ""),
        ("progress", ""),
        ("openmetrics", "prometheus_client"),
        ("machine_page", "jinja2"),
        ("terminal", "rich"),
    ],
)
def test_a_report_imports_what_it_needs(module: str, libraries: str) -> None:
    arguments = [sys.executable, "-c", QUESTION, f"envcheck.reports.{module}"]
    done = ran(arguments, text=True)
    assert (done.stderr, done.stdout.strip()) == ("", libraries)


QUICK = """
import contextlib, os, sys
from envcheck.cli.main import run
with open(os.devnull, "w") as null, contextlib.redirect_stdout(null):
    run(["doctor", "--level", "quick", "--output", os.devnull])
print(*sys.modules)
"""


def test_a_quick_doctor_imports_nothing_of_what_does_not_run() -> None:
    arguments = [sys.executable, "-c", QUICK]
    done = ran(arguments, text=True)
    loaded = set(done.stdout.split())
    unneeded = ("attributes", "bench", "plugins.apart", "tensorcores.judge", "fleet")
    assert "envcheck.checks.pci.devices" in loaded, done.stderr
    assert not loaded & {f"envcheck.{name}" for name in unneeded}
    for area in ("acceleration", "bench", "expected", "memory", "soak", "tensorcores"):
        assert not [name for name in loaded if name.startswith(f"envcheck.checks.{area}.")]
    assert not loaded & {"jinja2", "jsonschema", "prometheus_client", "importlib.metadata"}
