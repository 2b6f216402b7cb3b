"""The real name that a misspelt one is nearest to."""

from __future__ import annotations

from collections.abc import Iterable

_ALIKE = (
    0.6  # of difflib's ratio: "jsn" is "json" (0.86), "drv" is "driver" (0.67), "tf" is nothing
)


def nearest(word: str, known: Iterable[str]) -> str:
    """The known name that the word was meant to be, whatever its case; "" where none is near."""
    import difflib  # here: only mistakes need it

    names = {name.lower().lstrip("-"): name for name in known}
    near = difflib.get_close_matches(word.lower().lstrip("-"), names, n=1, cutoff=_ALIKE)
    return names[near[0]] if near else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a sentence: '; did you mean "json"?', or "" where no known name is near."""
    near = nearest(word, known)
    return f'; did you mean "{near}"?' if near else ""
