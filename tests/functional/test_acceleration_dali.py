"""DALI for real, on the CPU, from its wheel: engaged, with PIL and without; and where it cannot run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from real_targets import real_target
from system_records import Reported, command

from envcheck.collector.runtime import process

pytestmark = pytest.mark.slow


def reported(python: Path, folder: Path, path: Path | None = None) -> Reported:
    params = {"framework": "", "seconds": 20, "device": "cpu"}
    given: dict[str, Any] = {} if path is None else {"PYTHONPATH": str(path)}
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    argv = command(python, "dali", params)
    ended = process.run(argv, 120, env={**clean, **given}, cwd=str(folder))
    output = Reported(ended.stdout)
    assert output.done, ended.tail(20)
    assert list(folder.iterdir()) == ([] if path is None else [path])
    return output


def test_the_cpus_pipeline_gives_the_images_pixels(tmp_path: Path) -> None:
    (trial,) = reported(real_target("dali") / "bin/python", tmp_path).trials
    assert trial["outcome"] == "ok", trial
    assert trial["evidence"]["type"] == "TensorListCPU"
    assert trial["evidence"]["png_difference"] == 0
    assert trial["evidence"]["jpeg_difference"] <= 6


def test_a_dali_that_cannot_be_imported_could_not_run(tmp_path: Path) -> None:
    folder = tmp_path / "path"
    (folder / "nvidia/dali").mkdir(parents=True)
    for place in ("nvidia", "nvidia/dali"):
        (folder / place / "__init__.py").write_text("")
    (folder / "nvidia/dali/__init__.py").write_text("raise ImportError('libdali_core.so: none')\n")
    result = reported(real_target("dali") / "bin/python", tmp_path, path=folder)
    assert result.run["outcome"] == "not-run"
    assert result.run["reason"] == "import nvidia.dali: libdali_core.so: none"
