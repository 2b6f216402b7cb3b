"""The collector as one file, on every Python of this machine."""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import pytest
from cli import envcheck, environment
from processes import ran
from pythons import heavy, need

from envcheck.facts.snapshot import Snapshot, load


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("collector")
    for name in ("envcheck-collector.pyz", "envcheck-collector.py"):
        result = envcheck("collector", "--output", folder / name)
        assert result.returncode == 0, result.stderr
    return folder


def collected(argv: list[str], folder: Path, script: bytes | None = None) -> Snapshot:
    scratch = folder / "scratch"
    scratch.mkdir(exist_ok=True)
    result = ran(
        argv, input=script if script is not None else b"", env=environment(TMPDIR=str(scratch))
    )
    assert result.returncode == 0, result.stderr.decode()
    assert list(scratch.iterdir()) == [], "it left something behind"
    return load(result.stdout)


def probes_ran(snapshot: Snapshot) -> None:
    for name in ("host", "pci", "kernel", "nvml", "nvidia_smi", "cuda", "containers", "network"):
        probe = getattr(snapshot.machine, name)
        assert probe.outcome == "ok", f"{name}: {probe.reason}\n{probe.evidence}"


@pytest.mark.parametrize(
    "minor", [6, *heavy(*range(7, sys.version_info.minor)), sys.version_info.minor]
)
def test_the_zip_runs_on(minor: int, files: Path) -> None:
    python = need(minor)
    snapshot = collected([python, str(files / "envcheck-collector.pyz")], files)
    assert snapshot.redacted
    assert snapshot.machine.collector.python.startswith(f"3.{minor}.")
    probes_ran(snapshot)
    nvml = snapshot.machine.nvml
    assert nvml is not None and nvml.facts is not None
    assert isinstance(nvml.facts.init_code, int), "pynvml was not inside"


@pytest.mark.parametrize("minor", [6, sys.version_info.minor])
def test_the_script_runs_from_standard_input_on(minor: int, files: Path) -> None:
    python = need(minor)
    script = (files / "envcheck-collector.py").read_bytes()
    probes_ran(collected([python, "-"], files, script))
    target = collected([python, "-", "--target", sys.executable], files, script).target
    assert target is not None and target.packages is not None
    assert target.packages.outcome == "ok"


def test_the_zip_holds_the_licences(files: Path) -> None:
    with zipfile.ZipFile(files / "envcheck-collector.pyz") as archive:
        assert b"Apache License" in archive.read("LICENSE")
        assert b"Redistribution and use" in archive.read("envcheck/collector/vendor/pynvml.py")
        assert all(not n.startswith("envcheck/checks") for n in archive.namelist())


def test_the_same_sources_give_the_same_bytes(files: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.pyz"
    envcheck("collector", "--output", again)
    assert again.read_bytes() == (files / "envcheck-collector.pyz").read_bytes()
    assert os.access(again, os.X_OK)


def test_a_python_that_is_too_old_is_told_so(files: Path) -> None:
    python = need(7, major=2)
    result = ran([python, str(files / "envcheck-collector.py")], text=True)
    assert result.returncode == 2
    assert result.stderr.startswith("envcheck-collector: needs Python 3.6 or newer, this is 2.7")
