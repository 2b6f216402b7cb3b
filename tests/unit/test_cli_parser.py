"""What the command line says of itself: help, completion, and Ctrl-C while it starts."""

from __future__ import annotations

import importlib
import re
import signal
from types import ModuleType

import pytest

from envcheck.checks.registry import AREAS, all_checks
from envcheck.cli.main import COMMANDS, build_parser, run


def told(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        run(argv)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns_and_help_is_a_command(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = told(capsys, command, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert f"envcheck {command}" in text.partition("\n\n")[2], "an example beside the usage"
    assert told(capsys, "help", command) == text


def test_help_is_the_same_in_colour(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    plain = told(capsys, "doctor", "--help")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr("envcheck.cli.parser.style_of", lambda stream: STYLE)
    monkeypatch.setenv("FORCE_COLOR", "1")
    coloured = told(capsys, "doctor", "--help")
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == plain


class STYLE:
    colour = True


def test_the_examples_in_the_help_are_commands(capsys: pytest.CaptureFixture[str]) -> None:
    examples = []
    for command in COMMANDS:
        epilog = told(capsys, command, "--help")
        examples += re.findall(r"^  (envcheck [^>\n]*?)(?:  | >|$)", epilog, re.MULTILINE)
    assert len(examples) > 10
    for example in examples:
        argv = example.split()[1:]
        build_parser(argv).parse_args(argv)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish", "tcsh"])
def test_completion_knows_codes_and_areas(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(check.code in script for check in all_checks())
    assert all(re.search(rf"\b{area}\b", script) for area in AREAS)


def test_control_c_waits_for_an_import(monkeypatch: pytest.MonkeyPatch) -> None:
    """msgspec, interrupted while it is imported, would crash the process later."""
    loaded: list[str] = []
    real = importlib.import_module

    def slow(name: str, package: str | None = None) -> ModuleType:
        signal.raise_signal(signal.SIGINT)  # to this thread: xdist has others
        module = real(name, package)
        loaded.append(name)
        return module

    monkeypatch.setattr(importlib, "import_module", slow)
    with pytest.raises(KeyboardInterrupt):
        build_parser(["schema"])
    assert loaded == [".schema"]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
