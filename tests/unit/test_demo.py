"""The simulated machines and the fleet that come with the package, and `envcheck demo`, which shows them."""

from __future__ import annotations

import json
from pathlib import Path

import demos
import pytest

from envcheck.checks.engine import diagnose
from envcheck.cli.demo import BENCH, NAMES
from envcheck.cli.main import run
from envcheck.facts.snapshot import dump, load

# What each shows: the codes that fail or warn by themselves.
SHOWS = {
    "healthy": [],
    "heat": ["GPU-008"],
    "driver-update": ["DRV-002"],
    "blind-tensorflow": ["LIB-008"],
    "silent-systems": ["ACC-008", "ACC-014"],
    "bench": ["BEN-002"],
    "odd-machine": ["PCI-005", "GPU-013"],
}


def test_the_packaged_files_are_those_that_can_be_named() -> None:
    assert {path.name for path in demos.FOLDER.iterdir()} == {f"{name}.json" for name in NAMES}
    assert tuple(demos.DEMOS) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_a_packaged_file_is_what_the_builders_make(name: str) -> None:
    packaged = (demos.FOLDER / f"{name}.json").read_bytes()
    assert packaged == demos.build(name), "write it anew: .venv/bin/python tests/generate.py"
    assert load(packaged) == load(dump(load(packaged)))


@pytest.mark.parametrize("name", NAMES)
def test_it_shows_what_it_is_there_for(name: str) -> None:
    results = diagnose(load(demos.build(name))).results
    printed = [r.code for r in results if r.outcome in ("fail", "warn", "could-not-run")]
    assert printed == SHOWS[name]


FACES = [
    *((name, face) for name in NAMES for face in ("", "-v", "-q")),
    *((name, face) for name in NAMES if name != BENCH for face in ("--format markdown",)),
]


@pytest.mark.parametrize(("name", "face"), FACES)
def test_its_first_line_says_that_it_is_simulated(
    name: str, face: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["demo", name, *face.split()]) == 0
    first = capsys.readouterr().out.partition("\n")[0].removeprefix("# ")
    assert first == f"Simulated, not real: {demos.DEMOS[name][0]}"
    assert len(first) <= 80


def test_without_a_name_it_lists_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo"]) == 0
    shown = capsys.readouterr().out
    for name, (title, _) in demos.DEMOS.items():
        assert f"  {name:18}{title}\n" in shown


@pytest.mark.parametrize("face", ["--format junit", "--format markdown"])
def test_a_bench_has_faces_of_its_own(face: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "bench", *face.split()]) == 2
    assert "a bench is shown as text, json, html" in capsys.readouterr().err


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
