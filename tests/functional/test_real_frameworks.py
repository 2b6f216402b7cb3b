"""The doctor on real frameworks from the configured package index (opt-in: pytest -m slow)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli import envcheck
from pythons import need

pytestmark = pytest.mark.slow


def install(folder: Path, python: str, *requirements: str) -> Path:
    """A virtual environment with these packages, from whatever index pip is configured with."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", *requirements]
    subprocess.run(pip, check=True, env=dict(os.environ))
    return folder


def diagnose(target: Path) -> dict[str, dict[str, Any]]:
    result = envcheck("doctor", "--target", target, "--format", "json")
    return {r["code"]: r for r in json.loads(result.stdout)["results"]}


@pytest.fixture(scope="module")
def tensorflow_1(tmp_path_factory: pytest.TempPathFactory) -> Path:
    python = need(7)
    folder = tmp_path_factory.mktemp("tf1") / "env"
    return install(folder, python, "tensorflow==1.15.5", "protobuf<3.21", "numpy<1.19")


def test_tensorflow_1_15_imports(tensorflow_1: Path) -> None:
    results = diagnose(tensorflow_1)
    assert results["FRM-001"]["outcome"] == "pass"
    assert "1.15.5" in results["FRM-001"]["detail"]


def test_protobuf_that_is_too_new_is_the_cause_of_a_failed_import(tensorflow_1: Path) -> None:
    install(tensorflow_1, str(tensorflow_1 / "bin" / "python"), "protobuf==4.24.4")
    results = diagnose(tensorflow_1)
    assert results["FRM-001"]["outcome"] == "fail"


def test_tensorflow_2_says_what_it_was_built_with(tmp_path: Path) -> None:
    target = install(tmp_path / "env", sys.executable, "tensorflow==2.19.1")
    result = envcheck("collect", "--target", target)
    facts = json.loads(result.stdout)["target"]["tensorflow"]["facts"]
    assert (facts["imported"], facts["version"]) == (True, "2.19.1")
    assert (facts["built_cuda"], facts["built_cudnn"]) == ("12.5.1", "9")
    assert "sm_80" in facts["built_capabilities"] and "compute_90" in facts["built_capabilities"]
    assert facts["gpus"] == [] or facts["gpus"][0]["name"]
