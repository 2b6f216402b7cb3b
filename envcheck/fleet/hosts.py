"""Lists of host names: folded as Slurm and clush write them, "gpu[01-16,20]"."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ..findings import shell
from ..reports.plain import runs

# What a name may hold and still stand in a folded list as it is: nothing that a shell or a list would read.
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:._/-]+")
# The last number of a name. With more digits it is no number of a machine, and Slurm overflows.
_LAST_NUMBER = re.compile(r"(.*?)(?<![0-9])([0-9]{1,9})([^0-9]*)")


def folded(names: Iterable[str]) -> str:
    """The names in one line, each once: "gpu[01-16,20],login". The last number of names that are the same but
    for it is folded. What a shell or the list would read is quoted."""
    groups: dict[tuple[str, str | None], list[str]] = {}
    for name in natural(set(names)):
        found = _LAST_NUMBER.fullmatch(name) if _PLAIN.fullmatch(name) else None
        key = (found[1], found[3]) if found else (name, None)
        groups.setdefault(key, []).extend([found[2]] if found else [])
    return ",".join(
        _quoted(before) if after is None else f"{before}{_ranges(numbers)}{after}"
        for (before, after), numbers in groups.items()
    )


def natural(names: Iterable[str]) -> list[str]:
    """In the order that people count in: gpu2 before gpu10."""
    return sorted(names, key=natural_key)


def natural_key(name: str) -> tuple[object, ...]:
    parts = re.split(r"([0-9]+)", name)
    return tuple(
        (int(part[:30]), len(part), part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    word = shell.word(name)
    return f"'{word}'" if "," in word and word == name else word  # to a shell a comma is nothing


def _ranges(numbers: list[str]) -> str:
    """ "07", "[01-16,20]": a range has as many digits as its first number, or more where it must."""
    if len(numbers) == 1:
        return numbers[0]
    ordered = sorted(numbers, key=lambda number: (len(number.lstrip("0")), len(number), number))
    found = runs(ordered, lambda one, next_: next_ == str(int(one) + 1).zfill(len(one)))
    return "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in found) + "]"
