"""`envcheck fleet report` and `doctor`, as a user has them."""

from __future__ import annotations

import json
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
        return envcheck("fleet", "report", three, *options).returncode

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
    shown = envcheck("fleet", "doctor", three, "-v")
    assert shown.returncode == 1
    assert shown.stdout == envcheck("fleet", "report", three, "-v").stdout
    os.rename(three, three.parent / "fleet")  # noqa: PTH104
    (three.parent / "fleet" / "gpu03.json").unlink()
    assert envcheck("fleet", "doctor", cwd=three.parent).returncode == 0


def test_wrong_input_is_one_sentence(three: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for command in ("report", "doctor"):
        assert refused(envcheck("fleet", command, empty)) == SILENT.format(empty)
        missing = refused(envcheck("fleet", command, tmp_path / "missing"))
        assert "there is no such directory" in missing
        file = refused(envcheck("fleet", command, three / "gpu01.json"))
        assert "this is a file" in file
    nobody = envcheck("fleet", "doctor", tmp_path / "missing")
    assert b"fleet doctor -i INVENTORY" in nobody.stderr
    assert "this is a directory" in refused(envcheck("fleet", "report", three, "--output", three))
    assert "--repeat goes with -i" in refused(envcheck("fleet", "doctor", three, "--repeat", "2"))
    profile = tmp_path / "broken.toml"
    profile.write_text("[[[")
    assert "broken.toml" in refused(envcheck("fleet", "report", three, "--expect", profile))


def test_since_lists_what_changed(three: Path, simulated: Path, tmp_path: Path) -> None:
    def since() -> list[dict[str, object]]:
        shown = envcheck("fleet", "report", three, "--since", before, "--format=json")
        found: list[dict[str, object]] = json.loads(shown.stdout)["since"]
        return found

    before = tmp_path / "before"
    shutil.copytree(three, before)
    assert since() == []
    assert b"Nothing changed." in envcheck("fleet", "report", three, "--since", before).stdout
    shutil.copy(simulated / "gpu03.json", three / "gpu01.json")
    shutil.copy(simulated / "gpu02.json", three / "gpu02.json")
    shutil.copy(simulated / "gpu02.json", three / "gpu03.json")
    (three / "gpu29.json").unlink()
    problem = ["DRV-002 kernel module and driver libraries do not match"]
    assert since() == [
        {"machine": "gpu01", "kind": "broken", "problems": problem},
        {"machine": "gpu29", "kind": "gone"},
        {"machine": "gpu02", "kind": "new"},
        {"machine": "gpu03", "kind": "healthy", "problems": problem},
    ]
    (three / "gpu02.json").write_bytes(b"{")
    shutil.copy(simulated / "gpu02.json", before / "gpu02.json")
    text = envcheck("fleet", "report", three, "--since", before).stdout.decode()
    assert "gpu01 broken: DRV-002 kernel module" in text and "gpu02 unreachable" in text
