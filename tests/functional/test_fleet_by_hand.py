"""The manual's line for ssh: Snapshots into a directory, which `envcheck fleet doctor` then judges."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from cli import envcheck
from processes import PATIENCE

from envcheck.fleet.folder import FleetFolder

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet-kubernetes.md"


def test_the_line_for_ssh_fills_a_directory(tmp_path: Path) -> None:
    (line,) = [line for line in PAGE.read_text().splitlines() if "xargs" in line]
    places = tmp_path / "bin"
    places.mkdir()
    (places / "ssh").write_text('#!/bin/sh\nshift\nexec "$@"\n')
    (places / "python3").symlink_to(sys.executable)
    (places / "ssh").chmod(0o755)
    assert envcheck("collector", "--output", "envcheck-collector.py", cwd=tmp_path).returncode == 0
    (tmp_path / "snapshots").mkdir()
    path = f"{places}:{os.environ['PATH']}"
    subprocess.run(
        ["sh", "-ec", line],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        timeout=PATIENCE,
        check=True,
    )
    folder = FleetFolder(tmp_path / "snapshots")
    assert [member.name for member in folder.members()] == ["gpu01", "gpu02"]
    done = envcheck("fleet", "doctor", folder.path, "--exit-zero")
    assert done.returncode == 0 and b"2 machines" in done.stdout, done.stdout.decode()
