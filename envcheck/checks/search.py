"""Finds the checks that mention a word: in the title, in what it is about, in messages and remedies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from types import CodeType, FunctionType

from .registry import Check

# A system's name and a title say most; what a check may say comes last.
_SYSTEM, _TITLE, _ABOUT, _SAID = 4, 3, 2, 1
# Used by all checks.
_SHARED = tuple(f"{__package__}.{name}" for name in ("registry", "engine"))


def search(words: Sequence[str], checks: Iterable[Check]) -> list[Check]:
    """The checks that mention each of the words, whatever its case, best first; a whole word beats a part."""
    scored = [(_score(check, words), check) for check in checks]
    found = [(score, check) for score, check in scored if score]
    return [check for _, check in sorted(found, key=lambda pair: -pair[0])]


def _score(check: Check, words: Sequence[str]) -> int:
    """0 where one of them is nowhere."""
    texts = (
        (_SYSTEM, " ".join(check.systems)),
        (_TITLE, check.title),
        (_ABOUT, check.about),
        (_SAID, " ".join([check.problem, *said(check)])),
    )
    scores = [
        max((weight * _mentions(text, word) for weight, text in texts), default=0) for word in words
    ]
    return sum(scores) if all(scores) else 0


def _mentions(text: str, word: str) -> int:
    """0 not at all, 1 as a part of a word, 2 as a whole one."""
    if word.lower() not in text.lower():
        return 0
    return 2 if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE) else 1


def said(check: Check) -> list[str]:
    """The pieces of the messages and remedies that a check may yield: its function's own sentences."""
    top = check.judge.__module__.partition(".")[0]
    return list(_sentences(check.judge, __package__ or "" if top == "envcheck" else top, set()))


def _sentences(function: object, package: str, seen: set[object]) -> Iterator[str]:
    """Of a function and of those that it names, as far as they are the package's own."""
    if not isinstance(function, FunctionType) or function in seen:
        return
    if not f"{function.__module__}.".startswith(f"{package}.") or function.__module__ in _SHARED:
        return
    seen.add(function)
    for code in _codes(function.__code__):
        for constant in code.co_consts:
            if isinstance(constant, str) and " " in constant and constant != function.__doc__:
                yield constant
        for name in code.co_names:
            value = function.__globals__.get(name)
            if isinstance(value, str) and " " in value:
                yield value
            yield from _sentences(value, package, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
