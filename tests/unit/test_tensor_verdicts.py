"""The table of verdicts: total, without a double cell, and by the rules that a proof needs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import get_args

from envcheck.data import table
from envcheck.tensorcores.mode_verdict import Verdict, Word
from envcheck.tensorcores.verdicts import Cell, cells, verdict

WORDS: tuple[Word, ...] = get_args(Word)
# Come before the table, from what was run and on which chip.
BEFORE = {"could not run", "not applicable"}


def walk() -> Iterator[tuple[Cell, Verdict]]:
    for cell in product((False, True), WORDS, WORDS, WORDS, (False, True)):
        yield cell, verdict(*cell)


def test_every_cell_has_a_verdict_and_none_has_two() -> None:
    assert len(list(walk())) == len(cells()) == len(table("verdicts")) == 108
    assert {outcome for _, outcome in walk()} == set(get_args(Verdict)) - BEFORE
    assert all(row["source"] for row in table("verdicts"))


def test_lines_that_disagree_are_a_contradiction_and_nothing_else_is() -> None:
    for (_, *words, _), outcome in walk():
        disagree = "tensor" in words and "not tensor" in words
        assert (outcome == "contradiction") == disagree, words


def test_nothing_is_proven_without_its_control() -> None:
    for (blind, bits, rate, hardware, control), outcome in walk():
        if outcome == "proven":
            assert control
            assert verdict(blind, bits, rate, hardware, False) == "indicated"


def test_proven_takes_the_bits_and_another_line_or_both_others_where_bits_are_blind() -> None:
    for (blind, bits, rate, hardware, control), outcome in walk():
        others = [rate, hardware].count("tensor")
        against = "not tensor" in (bits, rate, hardware)
        enough = others == 2 if blind else bits == "tensor" and others >= 1
        assert (outcome == "proven") == (enough and control and not against)


def test_whatever_says_tensor_is_never_not_engaged_nor_cannot_tell() -> None:
    for (_, *words, _), outcome in walk():
        if "tensor" in words:
            assert outcome in ("proven", "indicated", "contradiction")
        else:
            assert outcome in ("not engaged", "cannot tell")


def test_not_engaged_takes_the_bits_or_both_others_where_bits_are_blind() -> None:
    for (blind, bits, rate, hardware, _), outcome in walk():
        if "tensor" in (bits, rate, hardware):
            continue
        no = (rate, hardware) == ("not tensor", "not tensor") if blind else bits == "not tensor"
        assert (outcome == "not engaged") == no


def test_the_control_changes_nothing_but_what_is_proven() -> None:
    for (blind, bits, rate, hardware, _), outcome in walk():
        both = {verdict(blind, bits, rate, hardware, control) for control in (True, False)}
        assert both == {outcome} or both == {"proven", "indicated"}
