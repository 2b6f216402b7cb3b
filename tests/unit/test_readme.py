"""README says what the program does: its tables are generated, its commands exist."""

from __future__ import annotations

import re
import shlex

import msgspec
import pytest
import targets
from generate import MARKS, README, marked, renewed
from h100 import empty_machine

from envcheck.checks.engine import diagnose
from envcheck.checks.registry import AREAS, all_checks
from envcheck.cli.main import COMMANDS, build_parser


def test_the_generated_parts_are_the_programs_own() -> None:
    text = README.read_text()
    assert all(mark in text for name in MARKS for mark in marked(name))
    assert renewed(text) == text, "write them anew: .venv/bin/python tests/generate.py"


def real_report() -> str:
    found = re.search(
        r"```console\n\$ (envcheck doctor [^\n]*)\n(.*?)```", README.read_text(), re.DOTALL
    )
    assert found is not None
    return found.group(2)


def test_the_report_that_readme_shows_names_what_there_is() -> None:
    codes = set(re.findall(r"\b[A-Z]{2,4}-\d{3}\b", real_report()))
    assert len(codes) > 5
    assert codes <= {check.code for check in all_checks()}
    for area, name in AREAS.items():
        if area == "boundary":  # told of containers alone
            continue
        assert re.search(rf"^{name} +(OK|FAIL|WARN|SKIPPED) ", real_report(), re.MULTILINE), name


def test_the_report_that_readme_shows_says_what_the_checks_say() -> None:
    """Of the same packages on a machine without a GPU; else run the command again, and show that."""
    told = targets.packages(
        targets.dist("tensorflow", "1.15.5"), targets.dist("protobuf", "4.24.4")
    )
    target = targets.good_target(packages=told, tensorflow=targets.not_imported())
    diagnosis = diagnose(msgspec.structs.replace(empty_machine(), target=target))
    said = {r.code: r.findings[0].message for r in diagnosis.results if r.outcome == "fail"}
    shown = " ".join(real_report().split())
    for code in re.findall(r"FAIL ([A-Z]+-\d+)", shown):
        assert f"FAIL {code} {said[code]}" in shown


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
