"""Commands for several things: one with a list, where the program takes one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import takewhile

from .remedy import Remedy

# Ends of what such commands share; the words that follow are things of one kind, in any number.
_TAKE_MANY = (("pip", "show"), ("pip", "install"), ("fuser", "-v"))
# What the names end before: options, comments, another command, a word with blanks in it.
_NO_NAMES = ("-", "#", "|", "&", ";", "'", '"', "")


def for_all(remedies: Sequence[Remedy]) -> Remedy | None:
    """One remedy of those that differ in what they are about alone."""
    if not remedies:
        return None
    return Remedy(remedies[0].text, step_by_step(one.commands for one in remedies))


def step_by_step(remedies: Iterable[Sequence[str]]) -> list[str]:
    """The commands of remedies that differ in what they are about; each step once, for all of it.

    Where they are not as many, they have other steps: one remedy's stand after the other's.
    """
    each = list(remedies)
    if len({len(commands) for commands in each}) > 1:
        return list(dict.fromkeys(command for commands in each for command in commands))
    steps = (_joined(list(dict.fromkeys(step))) for step in zip(*each, strict=True))
    return list(dict.fromkeys(command for step in steps for command in step))


def _joined(same: list[str]) -> list[str]:
    split = [command.split(" ") for command in same]
    shared = split[0][: same_words(split)]
    rest = [words[len(shared) :] for words in split]
    names = [list(takewhile(lambda word: word[:1] not in _NO_NAMES, words)) for words in rest]
    tails = {tuple(words[len(own) :]) for words, own in zip(rest, names, strict=True)}
    if len(same) == 1 or not shared or not all(names) or len(tails) > 1:
        return same
    every = list(dict.fromkeys(name for own in names for name in own))
    if shared[-1] == "-i" and "nvidia-smi" in shared:
        return [" ".join([*shared, ",".join(every), *tails.pop()])]
    if any(shared[-len(end) :] == list(end) for end in _TAKE_MANY):
        return [" ".join([*shared, *every, *tails.pop()])]
    return same


def same_words(texts: Sequence[Sequence[str]]) -> int:
    """How many words they begin with together."""
    begin = takewhile(lambda words: len(set(words)) == 1, zip(*texts, strict=False))
    return sum(1 for _ in begin)
