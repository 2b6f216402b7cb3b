"""The simulated machines that come with the package, and `envcheck demo`, which shows them."""

from __future__ import annotations

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
