"""What the command line says of itself: help, completion, and Ctrl-C while it starts."""

from __future__ import annotations

import argparse
import importlib
import re
import signal
from types import ModuleType

import pytest

from envcheck.checks.registry import all_checks, areas
from envcheck.cli.commands import COMMANDS, HEADINGS
from envcheck.cli.main import build_parser, run
from envcheck.cli.parser import Parser
from envcheck.exit_codes import ExitCode


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


@pytest.mark.parametrize(
    ("command", "most"),
    [
        ("doctor", 32),
        ("install", 35),
        *((c, 35) for c in COMMANDS if c not in ("doctor", "install")),
    ],
)
def test_help_is_short_and_the_rest_is_in_help_all(
    command: str, most: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    short, whole = told(capsys, command, "--help"), told(capsys, command, "--help-all")
    assert len(short.splitlines()) <= most
    assert short.startswith(f"usage: envcheck {command} ")
    assert not re.search(r"\[--?[a-z]", short.splitlines()[0]), "one line, not each option"
    assert max(map(len, whole.splitlines())) <= 80
    options = {
        option.partition("=")[0]
        for option in parser_of(command)._option_string_actions
        if option != "--help-all"
    }
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", whole))
    assert ("--help-all" in short) is (short != whole), "where there is more, it is said"
    assert "--help-all" not in whole


def test_the_main_help_has_two_headings_and_all_exit_codes(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = told(capsys, "--help")
    assert max(map(len, text.splitlines())) <= 80
    blocks = dict(block.split(":\n", 1) for block in text.split("\n\n") if ":\n" in block)
    listed = [re.findall(r"^  ([a-z]+)  ", blocks[heading], re.MULTILINE) for heading in HEADINGS]
    assert listed == [list(commands) for commands in HEADINGS.values()]
    assert len(text.splitlines()) <= 40
    whole = told(capsys, "--help-all")
    codes = set(map(int, re.findall(r"\b\d+\b", whole.partition("exit codes:\n")[2])))
    assert codes == {int(code) for code in ExitCode}


def parser_of(command: str) -> Parser:
    main = build_parser([command])
    commands = next(a for a in main._actions if isinstance(a, argparse._SubParsersAction))
    found = commands.choices[command]
    assert isinstance(found, Parser)
    return found


class STYLE:
    colour = True


def test_the_examples_in_the_help_are_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.exists", lambda _path: True)  # what they mount
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
    assert all(re.search(rf"\b{area}\b", script) for area in areas())


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


@pytest.mark.parametrize(
    ("option", "value"),
    [("-p", "abc"), ("--device", "nope"), ("--shm-size", "x"), ("-v", "/x"), ("-e", "=1")],
)
def test_a_bad_value_is_told_whatever_is_installed(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", option, value, "true"]) == ExitCode.NOT_STARTED
    assert f" {value!r}: " in capsys.readouterr().err
