"""Which libraries each report imports: rich for people, jinja2 for pages, prometheus-client for metrics."""

from __future__ import annotations

import subprocess
import sys

import pytest
from processes import PATIENCE

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
        ("summary", ""),
        ("openmetrics", "prometheus_client"),
        ("machine_page", "jinja2"),
        ("terminal", "rich"),
    ],
)
def test_a_report_imports_what_it_needs(module: str, libraries: str) -> None:
    arguments = [sys.executable, "-c", QUESTION, f"envcheck.reports.{module}"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert (done.stderr, done.stdout.strip()) == ("", libraries)
