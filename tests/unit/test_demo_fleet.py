"""`envcheck demo fleet`: a simulated fleet, made of the other demos."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from envcheck.cli.main import run


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("simulated") / "fleet"
    assert run(["demo", "fleet", "--quiet", "--save", str(folder)]) == 0
    return folder


def test_it_shows_what_was_put_in(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["fleet", "doctor", str(saved), "--format", "json"]) == 1
    printed = json.loads(capsys.readouterr().out)
    assert printed["counts"]["machines"] == 40 and printed["counts"]["unanswered"] == 3
    groups = {group["code"]: len(group["machines"]) for group in printed["groups"]}
    assert groups == {"DRV-002": 6, "GPU-008": 7, "PCI-005": 1, "GPU-013": 1}
    odd = {(one["machine"], one["key"], len(one.get("devices", "")))
           for one in printed["attribute_outliers"]}  # fmt: skip
    assert odd == {
        ("gpu08", "gpus.vbios", 8),
        ("gpu25", "machine.memory_gib", 0),
        ("gpu29", "gpus.nvlinks", 1),
        ("gpu29", "gpus.pcie_lanes", 1),
        ("gpu33", "machine.kernel", 0),
    }
    slow = [(one["machine"], one["devices"]) for one in printed["rate_outliers"]]
    assert slow == [("gpu12", ["GPU 6"])] and printed["splits"] == []
    (shared,) = printed["shared"]
    assert (shared["kind"], shared["name"], shared["code"]) == ("group", "rack-3", "GPU-008")
    assert shared["hosts"] == "gpu[17-19,21-24]"
    silent = {name for one in printed["unanswered"] for name in one["machines"]}
    assert silent == {"gpu06", "gpu26", "gpu40"}


def test_it_is_not_written_over_other_things(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    assert run(["demo", "fleet", "--save", str(tmp_path)]) == 2
    assert "this directory is not empty" in capsys.readouterr().err
    assert run(["demo", "fleet", "--save", str(tmp_path / "thesis.txt")]) == 2
    assert run(["demo", "fleet", "--format", "markdown"]) == 2
    assert "a fleet is shown as text, json" in capsys.readouterr().err
