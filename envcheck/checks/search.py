"""Finds the checks that mention a word: in the title, in what it is about, in its causes and remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from .registry import CheckText

# A system's name and a title count most; the causes count least.
_SYSTEM, _TITLE, _ABOUT, _CAUSES = 4, 3, 2, 1


def search(words: Sequence[str], checks: Iterable[CheckText]) -> list[CheckText]:
    """The checks that mention each of the words, in any case, best first; a whole word beats a part."""
    scored = [(_score(check, words), check) for check in checks]
    found = [(score, check) for score, check in scored if score]
    return [check for _, check in sorted(found, key=lambda pair: -pair[0])]


def _score(check: CheckText, words: Sequence[str]) -> int:
    causes = " ".join(f"{one.headline} {one.sentence} {one.remedy}" for one in check.causes)
    systems = " ".join(check.systems)
    texts = ((_SYSTEM, systems), (_TITLE, check.title), (_ABOUT, check.about), (_CAUSES, causes))
    scores = [
        max((weight * _mentions(text, word) for weight, text in texts), default=0) for word in words
    ]
    return sum(scores) if all(scores) else 0


def _mentions(text: str, word: str) -> int:
    """0 not at all, 1 as a part of a word, 2 as a whole one."""
    if word.lower() not in text.lower():
        return 0
    return 2 if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) else 1
