"""`envcheck explain WORD`: the area of a prefix, the checks that mention a word, best first."""

from __future__ import annotations

import re

import pytest

from envcheck.cli.main import run


def codes(text: str) -> list[str]:
    return re.findall(r"^  ([A-Z]+-\d+) ", text, re.MULTILINE)


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["explain", *words]) == 0
    return codes(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "first", "among"),
    [
        (["protobuf"], "FRM-001", "FRM-001"),
        (["illegal", "instruction"], "HOST-002", "HOST-002"),
        (["nouveau"], "PCI-002", "PCI-002"),
    ],
)
def test_a_word_finds_the_checks_that_mention_it(
    capsys: pytest.CaptureFixture[str], words: list[str], first: str, among: str
) -> None:
    found = explained(capsys, *words)
    assert found[0] == first and among in found and len(found) < 20
