"""`envcheck fleet doctor` on a directory of Snapshots, as a user has it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from cli import envcheck, refused

SILENT = "envcheck: {}: there is no Snapshot in it (NAME.json)"


@pytest.fixture(scope="module")
def simulated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fleet") / "all"
    assert envcheck("demo", "fleet", "-q", "--save", folder).returncode == 0
    return folder


@pytest.fixture
def three(simulated: Path, tmp_path: Path) -> Path:
    """Without a roster: gpu01 is well, gpu03 is not, gpu29 has warnings."""
    folder = tmp_path / "three"
    folder.mkdir()
    for name in ("gpu01", "gpu03", "gpu29"):
        shutil.copy(simulated / f"{name}.json", folder)
    return folder


def test_exit_codes(three: Path) -> None:
    def code(*options: str) -> int:
        return envcheck("fleet", "doctor", three, *options).returncode

    assert code() == 1
    assert code("--exit-zero") == 0
    (three / "gpu03.json").unlink()
    assert code() == 0
    assert code("--fail-on", "warn") == 1
    (three / "gpu29.json").write_text("Welcome to gpu29!\n")
    assert code() == 4
    (three / "gpu01.json").unlink()
    assert code() == 4, "nobody answered"


def test_doctor_without_machines_to_ask_judges_what_is_there(three: Path) -> None:
    os.rename(three, three.parent / "fleet")  # noqa: PTH104
    (three.parent / "fleet" / "gpu03.json").unlink()
    assert envcheck("fleet", "doctor", cwd=three.parent).returncode == 0


def test_wrong_input_is_one_sentence(three: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert refused(envcheck("fleet", "doctor", empty)) == SILENT.format(empty)
    missing = refused(envcheck("fleet", "doctor", tmp_path / "missing"))
    assert "there is no such directory" in missing
    assert "this is a file" in refused(envcheck("fleet", "doctor", three / "gpu01.json"))
    nobody = envcheck("fleet", "doctor", tmp_path / "missing")
    assert b"fleet doctor -i INVENTORY" in nobody.stderr
    assert "this is a directory" in refused(envcheck("fleet", "doctor", three, "--output", three))
    profile = tmp_path / "broken.toml"
    profile.write_text("[[[")
    assert "broken.toml" in refused(envcheck("fleet", "doctor", three, "--expect", profile))
