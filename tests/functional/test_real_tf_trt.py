"""TF-TRT in real TensorFlows without a GPU: what they say of TensorRT, and stand-ins that build engines."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import system_alone
from cli import envcheck
from processes import PATIENCE
from real_targets import real_target
from standin_tf_trt import IN_TENSORFLOW, library

from envcheck.facts.acceleration import SystemRun

pytestmark = pytest.mark.slow

BOTH = pytest.mark.parametrize("name", ["tensorflow-1.15", "tensorflow-2.15"])


def on_standin(name: str, what: str, folder: Path) -> SystemRun:
    python = real_target(name) / "bin" / "python"
    return system_alone.run(python, "tf_trt", folder, "gpu", IN_TENSORFLOW, STANDIN_TRT=what)


def on_library(folder: Path, version: int | None) -> SystemRun:
    """With a TensorFlow that was built with TensorRT 8.6.1."""
    python = real_target("tensorflow-2.15-cuda") / "bin" / "python"
    (folder / "tmp").mkdir()
    there = str(library(folder, version))
    return system_alone.run(python, "tf_trt", folder / "tmp", "gpu", LD_LIBRARY_PATH=there)


@BOTH
def test_engaged_on_a_stand_in(name: str, tmp_path: Path) -> None:
    run = on_standin(name, "engaged", tmp_path)
    by_name = {one.name: one.evidence for one in run.trials}
    assert by_name["graph"]["operations"] == 0
    for precision in ("FP32", "FP16"):
        assert by_name[precision]["operations"] == by_name[precision]["engines"] == 1, run.trials
    answer = system_alone.judged("ACC-010", run)
    assert answer.outcome == "pass" and "FP16 (1 engine" in answer.detail


@BOTH
def test_a_converter_that_ends_the_process_on_a_stand_in(name: str, tmp_path: Path) -> None:
    run = on_standin(name, "crash", tmp_path)
    assert run.outcome == "crashed"
    answer = system_alone.judged("ACC-010", run)
    assert "(FP32): its process died by signal 6 (SIGABRT)" in answer.findings[0].headline


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("nothing", "no part of the graph was converted"),
        ("wrong", "computes something else (FP32, FP16)"),
    ],
)
def test_each_other_trouble_on_a_stand_in(what: str, words: str, tmp_path: Path) -> None:
    answer = system_alone.judged("ACC-010", on_standin("tensorflow-2.15", what, tmp_path))
    (finding,) = answer.findings
    assert words in finding.headline


@pytest.mark.parametrize("name", ["tensorflow-1.15", "tensorflow-2.15", "tensorflow-newest"])
def test_a_build_without_tensorrt_is_not_applicable(name: str) -> None:
    target = real_target(name)
    arguments = ["doctor", "--target", target, "--only", "tf-trt", "--format", "json"]
    report = json.loads(envcheck(*arguments, timeout=PATIENCE).stdout)
    (result,) = [one for one in report["results"] if one["code"] == "ACC-010"]
    assert result["outcome"] == "skipped"
    assert result["reason"].endswith("this tensorflow is built without TensorRT")


def test_a_build_with_tensorrt_that_is_not_installed(tmp_path: Path) -> None:
    python = real_target("tensorflow-2.15-cuda") / "bin" / "python"
    run = system_alone.run(python, "tf_trt", tmp_path, "gpu")
    assert run.outcome == "not-applicable"
    assert run.reason == "TensorRT 8.6.1, which it is linked with, is not found"
    assert system_alone.judged("ACC-010", run).outcome == "skipped"


def test_a_tensorrt_that_fits_needs_a_gpu(tmp_path: Path) -> None:
    run = on_library(tmp_path, 8601)
    assert [one.outcome for one in run.trials] == ["ok"] * 3 + ["error"] * 2
    assert all("not a GPU" in one.reason for one in run.trials[3:])
    answer = system_alone.judged("ACC-010", run)
    assert (answer.outcome, answer.findings) == ("could-not-run", [])


def test_a_tensorrt_that_ends_the_process(tmp_path: Path) -> None:
    run = on_library(tmp_path, None)
    assert run.outcome == "crashed"
    (finding,) = system_alone.judged("ACC-010", run).findings
    assert "getInferLibVersion symbol not found" in finding.message
