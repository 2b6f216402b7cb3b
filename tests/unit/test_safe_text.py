"""Foreign text made safe: nothing moves the cursor, forges a line or hides; and what was there is seen."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from envcheck import json_text, safe_text

texts = st.text(st.characters(codec=None), max_size=60)  # with halves of surrogate pairs


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain × ° 你好 😀", "plain × ° 你好 😀"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("\x1b]0;title\x07", r"\x1b]0;title\x07"),
        ("\x9b31mred", r"\x9b31mred"),
        ("a\r\nenvcheck: all is fine", "a envcheck: all is fine"),
        ("a\u2028b\x85c\x0bd", "a b c d"),
        ("safe: \u202egpj.exe", r"safe: \u202egpj.exe"),
        ("pay\u200bpal", r"pay\u200bpal"),
        ("a\u115fb\ufe0fc\u3164", r"a\u115fb\ufe0fc\u3164"),
        ("\U000e0061tag", r"\U000e0061tag"),
        ("name\udcff", r"name\udcff"),
        ("\0", r"\x00"),
        ("a\x08\x7f", r"a\x08\x7f"),
    ],
)
def test_one_line(text: str, shown: str) -> None:
    assert safe_text.one_line(text) == shown


def test_what_is_overlong_is_cut_and_counted() -> None:
    shown = safe_text.one_line("x" * 1_000_000)
    assert shown.endswith("x [998000 more characters]") and len(shown) < 2100


def test_lines_keep_their_ends_and_their_blanks() -> None:
    assert safe_text.lines("a  b\n\tc\r\n\x1b[1m") == "a  b\n\tc\\r\n\\x1b[1m"


def test_only_colours_pass_to_a_terminal() -> None:
    assert safe_text.styled("\x1b[1;31mFAIL\x1b[0m\n") == "\x1b[1;31mFAIL\x1b[0m\n"
    assert safe_text.styled("\x1b[2J\x1b[1;31H\x1b]8;;x\x07") == r"\x1b[2J\x1b[1;31H\x1b]8;;x\x07"


@given(texts)
def test_nothing_unprintable_is_left(text: str) -> None:
    assert safe_text.one_line(text).isprintable()
    assert safe_text.lines(text).replace("\n", "").replace("\t", "").isprintable()
    categories = {unicodedata.category(c) for c in safe_text.one_line(text)}
    assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}


@given(texts)
def test_twice_changes_nothing(text: str) -> None:
    once = safe_text.one_line(text)
    assert safe_text.one_line(once) == once


@given(st.dictionaries(texts, st.lists(texts)))
def test_json_stays_the_same_values_and_shows_nothing_raw(value: dict[str, list[str]]) -> None:
    shown = safe_text.json_text(json.dumps(value, ensure_ascii=False))
    assert shown.replace("\n", "").isprintable()
    # as JSON itself writes it: two halves of a pair that stand side by side are read as one character
    assert json.loads(shown) == json.loads(json.dumps(value))


def test_json_of_a_name_that_is_not_utf8() -> None:
    assert json.loads(json_text.render({"a\udcff": ["b\udc80", 1]})) == {
        r"a\udcff": [r"b\udc80", 1]
    }
