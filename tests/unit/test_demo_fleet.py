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
    odd = {one["machine"] for one in printed["attribute_outliers"] if "because" not in one}
    assert {"gpu08", "gpu25", "gpu33"} <= odd
    assert [one["machine"] for one in printed["rate_outliers"]] == ["gpu12"]
    (shared,) = printed["shared"]
    assert (shared["name"], shared["hosts"]) == ("rack-3", "gpu[17-19,21-24]")


def test_it_is_not_written_over_other_things(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "thesis.txt").write_text("x")
    assert run(["demo", "fleet", "--save", str(tmp_path)]) == 2
    assert "this directory is not empty" in capsys.readouterr().err
    assert run(["demo", "fleet", "--save", str(tmp_path / "thesis.txt")]) == 2
    assert run(["demo", "fleet", "--format", "markdown"]) == 2
    assert "a fleet is shown as text, json" in capsys.readouterr().err
