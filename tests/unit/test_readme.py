"""README says what the program does: its tables are generated, its commands exist."""

from __future__ import annotations

import re
import shlex

import pytest
from readme import BEGIN, README, renewed

from envcheck.cli.main import COMMANDS, build_parser


def test_the_tables_are_the_programs_own() -> None:
    text = README.read_text()
    assert BEGIN in text
    assert renewed(text) == text, "write them anew: .venv/bin/python tests/readme.py"


def shown_commands() -> list[str]:
    blocks = re.findall(r"```sh\n(.*?)```", README.read_text(), re.DOTALL)
    lines = [line.partition("#")[0].strip() for block in blocks for line in block.splitlines()]
    return [line for line in lines if line.startswith("envcheck ")]


def test_there_are_commands_to_check() -> None:
    assert {line.split()[1] for line in shown_commands()} >= {"doctor", "collect", "collector"}


@pytest.mark.parametrize("line", shown_commands())
def test_a_command_that_readme_shows_is_one(line: str) -> None:
    arguments = shlex.split(line)[1:]
    assert arguments[0] in COMMANDS
    build_parser(arguments).parse_args(arguments)
