"""Signatures of a Snapshot as dot products that can be computed, or why they cannot be used.

A Snapshot may come from a stranger or from a process that died: whatever is in it, looking at it takes
little time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..facts.micro_kernels import Output, Signature
from .candidates import Dot
from .formats import FORMATS, WIDTHS, decode

_DIGITS = frozenset("0123456789ABCDEF")
_MOST_TERMS = 64  # the longest vector has 34
_MOST_OUTPUTS = 8  # as many as the collector keeps


class RecordedDot(NamedTuple):
    """One recorded dot product, and the words that came back, the most frequent first."""

    vector: str
    dot: Dot
    words: tuple[int, ...]
    complete: bool  # false: there were other words, which were not recorded

    @property
    def bits(self) -> str:
        """The most frequent word, as a Snapshot has it."""
        return f"{self.words[0]:0{WIDTHS[self.dot.output_type] // 4}X}"


class Unusable(Exception):
    """A recorded signature says nothing; the message says why, after "S1: "."""


def seen(signature: Signature) -> RecordedDot:
    """A Signature as numbers. Raises Unusable where it cannot be one that was measured."""
    terms = len(signature.slots)
    if not 0 < terms <= _MOST_TERMS or not terms == len(signature.a) == len(signature.b):
        raise Unusable(f"{terms} places, {len(signature.a)} and {len(signature.b)} values")
    if len(set(signature.slots)) < terms or not all(
        0 <= slot < signature.length for slot in signature.slots
    ):
        raise Unusable(f"its places are not {terms} of {signature.length}")
    if signature.input_type not in WIDTHS or signature.output_type not in WIDTHS.keys() - {"e4m3"}:
        raise Unusable("its types are not known")
    if not 0 < len(signature.outputs) <= _MOST_OUTPUTS:
        raise Unusable(f"{len(signature.outputs)} different outputs recorded")
    c = "0" * (WIDTHS[signature.output_type] // 4)
    if signature.accumulator.strip("0"):
        c = signature.accumulator
    dot = Dot(
        signature.input_type,
        signature.output_type,
        _words(signature.a, signature.input_type),
        _words(signature.b, signature.input_type),
        tuple(signature.slots),
        _words([c], signature.output_type)[0],
    )
    return RecordedDot(
        name(signature),
        dot,
        _outputs(signature.outputs, signature.output_type),
        signature.distinct <= len(signature.outputs),
    )


def name(signature: Signature) -> str:
    """The vector's name, cut to what a cell of text can hold."""
    return "".join(
        c for c in str(signature.vector)[:12] if c.isascii() and (c.isalnum() or c in "/_-")
    )


def _words(texts: Sequence[str], element_type: str) -> tuple[int, ...]:
    words = tuple(_word(text, element_type) for text in texts)
    if element_type in FORMATS and any(decode(w, element_type).kind != "finite" for w in words):
        raise Unusable("its inputs are not all finite numbers")
    return words


def _outputs(outputs: Sequence[Output], element_type: str) -> tuple[int, ...]:
    return tuple(_word(output.bits, element_type) for output in outputs)


def _word(text: str, element_type: str) -> int:
    if len(text) * 4 != WIDTHS[element_type]:
        raise Unusable(
            f"a word has {len(text) * 4} bits where {element_type} has {WIDTHS[element_type]}"
        )
    if not _DIGITS.issuperset(text):
        raise Unusable("a word is no hexadecimal number")
    return int(text, 16)
