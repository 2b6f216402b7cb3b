"""The micro-kernels on a real GPU (opt-in: pytest -m gpu).

The target is the Python in ENVCHECK_TARGET, else the one that runs the tests: L2 covers its frameworks.
With ENVCHECK_RUN=FOLDER the run that tests/gpu/first.sh has kept there is judged, and not another one.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from machine import envcheck, on_a_gpu

from envcheck.facts.snapshot import Snapshot, dump, load
from envcheck.tensorcores.judge import judge
from envcheck.tensorcores.mode_verdict import ModeVerdict

pytestmark = on_a_gpu

TARGET = os.environ.get("ENVCHECK_TARGET", sys.executable)
HOPPER = ("fp16", "bf16", "tf32", "int8", "fp8")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Snapshot, dict[str, Any]]:
    if kept := os.environ.get("ENVCHECK_RUN"):
        folder = Path(kept)
        report = json.loads((folder / "all.report.json").read_bytes())
        return load((folder / "all.json").read_bytes()), report
    saved = tmp_path_factory.mktemp("gpu") / "snapshot.json"
    arguments = ("--target", TARGET, "--format", "json", "--exit-zero", "--save", saved)
    report = envcheck("doctor", *arguments).stdout
    return load(saved.read_bytes()), json.loads(report)


@pytest.fixture(scope="module")
def judged(run: tuple[Snapshot, dict[str, Any]]) -> list[ModeVerdict]:
    return judge(run[0])


def of_level(judged: list[ModeVerdict], level: str) -> list[ModeVerdict]:
    found = [j for j in judged if j.level == level]
    assert found, f"nothing ran at {level}"
    return found


@pytest.mark.parametrize("level", ["L0", "L1"])
def test_every_mode_of_the_chip_is_proven(judged: list[ModeVerdict], level: str) -> None:
    modes = {j.mode: j for j in of_level(judged, level) if not j.control}
    wrong = {m: j for m, j in modes.items() if j.verdict not in ("proven", "not applicable")}
    assert not wrong, wrong


def test_on_hopper_no_mode_is_left_out(run: Any, judged: list[ModeVerdict]) -> None:
    runs = run[0].machine.micro_kernels.facts.runs
    if runs[0].compute_capability != "9.0":
        pytest.skip(f"compute capability {runs[0].compute_capability}")
    for level in ("L0", "L1"):
        proven = {j.mode for j in of_level(judged, level) if j.verdict == "proven"}
        assert proven >= set(HOPPER), (level, set(HOPPER) - proven)


@pytest.mark.parametrize("level", ["L0", "L1", "L2"])
def test_every_control_comes_out_not_engaged(judged: list[ModeVerdict], level: str) -> None:
    controls = [j for j in of_level(judged, level) if j.control]
    assert controls and {j.verdict for j in controls} == {"not engaged"}, controls


def test_frameworks_prove_tf32_and_half_precision(judged: list[ModeVerdict]) -> None:
    chosen = [j for j in of_level(judged, "L2") if j.setting in ("switch-on", "half")]
    wrong = [j for j in chosen if j.verdict != "proven"]
    assert chosen and not wrong, wrong


def test_the_snapshot_replays_to_the_same_report(run: Any, tmp_path: Path) -> None:
    saved = tmp_path / "snapshot.json"
    saved.write_bytes(dump(run[0]))
    again = envcheck("doctor", "--from", str(saved), "--format", "json", "--exit-zero")
    assert json.loads(again.stdout) == run[1]


def test_the_same_verdicts_ten_times(judged: list[ModeVerdict]) -> None:
    first = {(j.level, j.mode): j.verdict for j in of_level(judged, "L0")}
    for _ in range(10):
        arguments = ("--format", "json", "--exit-zero", "--kernels", "L0", "--only", "tensorcores")
        cores = json.loads(envcheck("doctor", *arguments).stdout)["tensor_cores"]
        assert {(j["level"], j["mode"]): j["verdict"] for j in cores} == first
