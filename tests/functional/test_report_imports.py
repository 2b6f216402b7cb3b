"""Who only wants JSON does not wait for rich to be imported."""

from __future__ import annotations

import subprocess
import sys

import pytest
from processes import PATIENCE

QUESTION = """
import importlib, sys
importlib.import_module(sys.argv[1])
sys.exit(any(name.partition(".")[0] == "rich" for name in sys.modules))
"""


@pytest.mark.parametrize(
    ("module", "imports_rich"),
    [
        ("model", False),
        ("junit", False),
        ("markdown", False),
        ("progress", False),
        ("summary", False),
        ("terminal", True),
    ],
)
def test_only_reports_for_people_import_rich(module: str, imports_rich: bool) -> None:
    arguments = [sys.executable, "-c", QUESTION, f"envcheck.reports.{module}"]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.stderr == ""
    assert done.returncode == int(imports_rich)
