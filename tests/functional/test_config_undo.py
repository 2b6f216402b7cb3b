"""The commands that CFG-001 prints, run on a real file: they take out what they name, and no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from processes import PATIENCE, ran
from targets import config, good_snapshot, interpreter, judge

from envcheck.facts.target import ConfigFile, ConfigSetting
from envcheck.findings.model import Finding

NGC = "https://pypi.ngc.nvidia.com"
WRITTEN = f"""[global]
index-url = https://mirror.example/simple
extra-index-url =
    {NGC}
trusted-host = pypi.ngc.nvidia.com
timeout = 60
no-cache-dir = true
[install]
compile = no
"""


def settings_of(**values: str) -> list[ConfigSetting]:
    return [
        ConfigSetting(section="global", key=key.replace("_", "-"), value=value)
        for key, value in values.items()
    ]


def run(finding: Finding, environment: dict[str, str]) -> None:
    assert finding.remedy is not None
    for command in finding.remedy.commands:
        subprocess.run(["bash", "-c", command], check=True, env=environment, timeout=PATIENCE)


def pyindex_finding(path: Path) -> Finding:
    file = ConfigFile(
        tool="pip",
        level="user",
        path=str(path),
        settings=settings_of(
            index_url="https://mirror.example/simple",
            extra_index_url=NGC,
            trusted_host="pypi.ngc.nvidia.com",
            timeout="60",
            no_cache_dir="true",
        ),
    )
    snap = good_snapshot(
        packaging_config=config(file, traces=[str(path)]),
        interpreter=interpreter(executable=sys.executable),
    )
    (finding,) = judge(snap, "CFG-001", "config").findings
    return finding


def test_pip_itself_edits_the_users_file(tmp_path: Path) -> None:
    pip = ran([sys.executable, "-m", "pip", "--version"])
    if pip.returncode != 0:
        pytest.skip("this interpreter has no pip")
    path = tmp_path / ".config" / "pip" / "pip.conf"
    path.parent.mkdir(parents=True)
    path.write_text(WRITTEN)
    run(pyindex_finding(path), {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
    left = path.read_text()
    assert "mirror.example" in left and "timeout" in left and "compile" in left
    assert "nvidia" not in left and "no-cache-dir" not in left
