"""Commands are printed as they work: by name, by setup.sh, by path, by the interpreter."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from envcheck.invocation import VARIABLE, envcheck_command, in_place


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An envcheck that was started by its path, and is not on PATH."""
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "elsewhere"))
    path = tmp_path / "a venv" / "bin" / "envcheck"
    path.parent.mkdir(parents=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(path), "doctor"])
    return path


def test_where_it_is_not_on_path_its_own_path_is_told_and_quoted(script: Path) -> None:
    assert envcheck_command() == f"'{script}'"


def test_a_name_is_enough_where_path_leads_to_this_one(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"/nowhere{os.pathsep}{script.parent}")
    assert envcheck_command() == "envcheck"


def test_another_envcheck_on_path_is_not_this_one(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "elsewhere" / "envcheck"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\nexit 7\n")
    other.chmod(0o755)
    assert envcheck_command() == f"'{script}'"


def test_setup_sh_says_how_it_was_called(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "sh setup.sh")
    assert in_place("envcheck doctor --target /x") == "sh setup.sh doctor --target /x"


def test_words_that_would_move_a_cursor_are_not_repeated(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "sh \x1b[2Jsetup.sh")
    assert envcheck_command() == f"'{script}'"


def test_as_a_module_it_is_the_interpreter_s(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/somewhere/envcheck/__main__.py"])
    assert envcheck_command() == f"{sys.executable} -m envcheck"


@pytest.mark.parametrize("command", ["nvidia-smi -q", "envcheckers", "sudo envcheck doctor", ""])
def test_other_commands_stay_as_they_are(script: Path, command: str) -> None:
    assert in_place(command) == command
