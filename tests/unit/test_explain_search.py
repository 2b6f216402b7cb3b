"""`envcheck explain WORD`: the area of a prefix, the checks that mention a word, best first."""

from __future__ import annotations

import re

import msgspec
import pytest

from envcheck.checks.registry import Check, all_checks
from envcheck.checks.search import search
from envcheck.cli.main import run
from envcheck.findings.causes import Cause

REAL = all_checks()[0]
CODES = [check.code for check in all_checks()]
BROKEN = Cause("broken", "fail", "broken", "Quuxes are broken.", "Replace the frobnicator.")


def check(code: str, title: str, about: str = "", causes: tuple[Cause, ...] = ()) -> Check:
    return msgspec.structs.replace(REAL, code=code, title=title, about=about, causes=causes)


ABOUT = check("A-2", "Something", "It takes a Quux.")


def codes(text: str) -> list[str]:
    return re.findall(r"^  ([A-Z]+-\d+) ", text, re.MULTILINE)


def explained(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    assert run(["explain", *words]) == 0
    return codes(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("words", "first", "among"),
    [
        (["protobuf"], "PKG-005", "FRM-001"),
        (["illegal", "instruction"], "HOST-002", "HOST-002"),
        (["nouveau"], "PCI-002", "PCI-002"),
    ],
)
def test_a_word_finds_the_checks_that_mention_it(
    capsys: pytest.CaptureFixture[str], words: list[str], first: str, among: str
) -> None:
    found = explained(capsys, *words)
    assert found[0] == first and among in found and len(found) < 20


def test_what_nothing_mentions_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "quux", "zebra"]) == 2
    assert 'no check mentions "quux zebra"' in capsys.readouterr().err
    assert run(["explain", "z" * 100_000]) == 2
    assert len(capsys.readouterr().err) < 200


def test_the_name_of_an_acceleration_system_comes_first() -> None:
    named = msgspec.structs.replace(check("ACC-900", "Other", "Its title."), systems=("zebra",))
    titled = check("ACC-901", "zebra")
    assert search(["zebra"], [titled, named]) == [named, titled]
