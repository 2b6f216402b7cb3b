"""Commands are printed as envcheck is called here: by errors, hints and pages."""

from __future__ import annotations

import pytest

from envcheck.cli.commands import COMMANDS, in_place, lines_in_place
from envcheck.invocation import VARIABLE


@pytest.fixture(autouse=True)
def by_setup(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["/nowhere/python"])
    monkeypatch.setenv(VARIABLE, "sh setup.sh")


def test_in_a_sentence_each_command_is_and_nothing_else() -> None:
    for command in COMMANDS:
        assert in_place(f"see (envcheck {command} x)") == f"see (sh setup.sh {command} x)"
    for text in (
        "envcheck could not look",
        "/usr/bin/envcheck doctor",
        "python3 -m my-envcheck doctor",
        "envcheck doctors",
        "envcheck.install",
    ):
        assert in_place(text) == text


def test_of_a_page_the_lines_to_paste_are() -> None:
    page = "Kept for envcheck rollback:\nenvcheck rollback tf\n  where  envcheck list\n"
    assert lines_in_place(page) == (
        "Kept for envcheck rollback:\nsh setup.sh rollback tf\n  where  envcheck list\n"
    )
    coloured = "\x1b[1;36menvcheck rollback tf\x1b[0m\n"
    assert lines_in_place(coloured) == "\x1b[1;36msh setup.sh rollback tf\x1b[0m\n"


def test_where_it_is_on_path_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "envcheck")
    assert in_place("envcheck doctor") == lines_in_place("envcheck doctor") == "envcheck doctor"
