"""DALI for real, on the CPU, from its wheel: engaged, with PIL and without; and where it cannot run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import probing
import pytest
from real_targets import real_target
from system_records import Reported, command
from world.contents import Library
from world.libraries import built

from envcheck.collector.runtime import process

pytestmark = pytest.mark.slow


def reported(python: Path, folder: Path, framework: str = "", path: Path | None = None) -> Reported:
    params = {
        "root": str(probing.REPOSITORY),
        "framework": framework,
        "seconds": 20,
        "device": "cpu",
    }
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


# In place of nvidia-dali-tf-plugin, which is compiled for minutes: its library comes from here, TensorFlow
# itself loads it.
PLUGIN = """
import os
import types

import tensorflow

def dali():
    "A stand-in of the operator."

def load_dali_tf_plugin():
    tensorflow.load_op_library(os.path.join(os.path.dirname(__file__), "libdali_tf_current.so"))
    return types.SimpleNamespace(dali=dali, dali_dataset=dali)
"""


@pytest.mark.parametrize(
    "library", [Library("empty"), Library("versioned", ("NEEDS=of",))], ids=["whole", "misses"]
)
def test_a_plugin_loads_into_tensorflow_or_misses_a_symbol(
    tmp_path: Path, library: Library
) -> None:
    """Real TensorFlow and DALI; of the plugin a stand-in."""
    folder = tmp_path / "path"
    plugin = folder / "nvidia/dali_tf_plugin"
    plugin.mkdir(parents=True)
    extends = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
    (folder / "nvidia/__init__.py").write_text(extends)
    (plugin / "__init__.py").write_text("")
    (plugin / "dali_tf_plugin.py").write_text(PLUGIN)
    (plugin / "libdali_tf_current.so").symlink_to(built(library))
    for package in next(real_target("dali").glob("lib/python*/site-packages")).iterdir():
        if package.name in ("makefun", "nvtx", "optree", "libcst"):
            (folder / package.name).symlink_to(package)
        elif package.name == "nvidia":
            for part in package.iterdir():
                if part.is_dir():
                    (folder / "nvidia" / part.name).symlink_to(part)
    result = reported(real_target("tensorflow-2.15") / "bin/python", tmp_path, "tensorflow", folder)
    (trial,) = result.trials
    if library.defines:
        assert trial["outcome"] == "error"
        assert "undefined symbol: of" in trial["reason"]
    else:
        assert trial["outcome"] == "ok", trial
        assert trial["evidence"]["libraries"] == ["libdali_tf_current.so"]
