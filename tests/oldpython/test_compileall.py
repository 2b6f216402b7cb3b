"""The collector's sources under real old Pythons: linters and type checkers no longer know 3.6."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from pythons import need

PACKAGE = Path(__file__).resolve().parents[2] / "envcheck"


@pytest.mark.parametrize("minor", [6, 7, 8, 9])
def test_the_collector_compiles_on(minor: int, tmp_path: Path) -> None:
    python = need(minor)
    sources = tmp_path / "collector"
    sources.symlink_to(PACKAGE / "collector")
    script = (
        "import os, sys\n"
        "for folder, _, names in os.walk(sys.argv[1] + '/'):\n"
        "    for name in names:\n"
        "        if name.endswith('.py'):\n"
        "            path = os.path.join(folder, name)\n"
        "            compile(open(path, encoding='utf-8').read(), path, 'exec')\n"
        "            print(path)\n"
    )
    result = subprocess.run(
        [python, "-W", "error", "-c", script, str(sources)],
        capture_output=True,
        text=True,
        env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert len(result.stdout.splitlines()) > 30
