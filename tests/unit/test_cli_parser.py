"""What the command line says of itself: help, completion, and Ctrl-C while it starts."""

from __future__ import annotations

import argparse
import importlib
import re
import signal
from types import ModuleType

import pytest

from envcheck.cli.commands import COMMANDS
from envcheck.cli.main import build_parser, run
from envcheck.cli.parser import Parser
from envcheck.exit_codes import ExitCode


def printed(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    with pytest.raises(SystemExit) as stop:
        run(argv)
    assert stop.value.code == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("command", COMMANDS)
def test_help_fits_80_columns_and_help_is_a_command(
    command: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    text = printed(capsys, command, "--help")
    assert max(map(len, text.splitlines())) <= 80
    assert f"envcheck {command}" in text.partition("\n\n")[2], "an example beside the usage"
    assert printed(capsys, "help", command) == text


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_usage_in_one_line_and_every_option(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = printed(capsys, command, "--help")
    assert text.startswith(f"usage: envcheck {command} ")
    assert not re.search(r"\[--?[a-z]", text.splitlines()[0]), "one line, not each option"
    options = {name.partition("=")[0] for name in parser_of(command)._option_string_actions}
    assert options <= set(re.findall(r"--?[a-z][a-z-]*", text))


def parser_of(command: str) -> Parser:
    main = build_parser([command])
    commands = next(a for a in main._actions if isinstance(a, argparse._SubParsersAction))
    found = commands.choices[command]
    assert isinstance(found, Parser)
    return found


def test_the_examples_in_the_help_are_commands(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.path.exists", lambda _path: True)  # what they mount
    examples = []
    for command in COMMANDS:
        epilog = printed(capsys, command, "--help")
        examples += re.findall(r"^  (envcheck [^>\n]*?)(?:  | >|$)", epilog, re.MULTILINE)
    assert len(examples) > 10
    for example in examples:
        argv = example.split()[1:]
        build_parser(argv).parse_args(argv)


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


@pytest.mark.parametrize(("option", "value"), [("-v", "/x"), ("-e", "=1")])
def test_a_bad_value_is_reported_whatever_is_installed(
    option: str, value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["run", option, value, "true"]) == ExitCode.NOT_STARTED
    assert f" {value!r}: " in capsys.readouterr().err
