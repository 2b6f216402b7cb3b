"""Words of shell commands, made of what a Snapshot says: it may come from somebody else."""

from __future__ import annotations

import shlex


def word(text: str) -> str:
    """``text`` as one word that a shell takes as it stands, and no program for an option."""
    printed = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shlex.quote(f"./{printed}" if printed.startswith("-") else printed)


def words(texts: list[str]) -> str:
    """The texts as words, apart by blanks."""
    return " ".join(map(word, texts))
