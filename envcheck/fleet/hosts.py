"""Lists of host names: folded as Slurm and clush write them, "gpu[01-16,20]", and as Ansible reads them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from ..findings import shell

# What a name may hold and still stand in a folded list as it is: nothing that a shell or a list would read.
_PLAIN = re.compile(r"[A-Za-z0-9@%+=:._/-]+")
# Numbers of more digits are no numbers of machines: folded, they would help nobody, and Slurm overflows.
_NUMBER = re.compile(r"(?<![0-9])([0-9]{1,9})(?![0-9])")
# What stands for itself, and for nothing else, in one of Ansible's host patterns.
_LITERAL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")

_Fields = tuple[frozenset[str], ...]


def folded(names: Iterable[str]) -> str:
    """The names in one line, each once: "gpu[01-16,20],login". Several numbers are folded where all of their
    combinations are there: "rack[1-2]-gpu[01-04]". What a shell or the list would read is quoted."""
    skeletons: dict[tuple[str, ...], set[_Fields]] = {}
    for name in set(names):
        # every second part is a number
        parts = _NUMBER.split(name) if _PLAIN.fullmatch(name) else [name]
        numbers = tuple(frozenset([number]) for number in parts[1::2])
        skeletons.setdefault(tuple(parts[::2]), set()).add(numbers)
    told = [
        (_lowest(texts, fields), _written(texts, fields))
        for texts, found in skeletons.items()
        for fields in _combined(found, len(texts) - 1)
    ]
    return ",".join(text for _, text in sorted(told))


def limit(names: Iterable[str]) -> str:
    """The names for Ansible's --limit, which reads no folded ones: "gpu01,gpu02".

    "" where a name would mean something else there: "*" and "[…]" are patterns, "!" excludes, "@" names a
    file.
    """
    listed = natural(set(names))
    return ",".join(listed) if all(_LITERAL.fullmatch(name) for name in listed) else ""


def natural(names: Iterable[str]) -> list[str]:
    """In the order that people count in: gpu2 before gpu10."""
    return sorted(names, key=natural_key)


def natural_key(name: str) -> tuple[object, ...]:
    parts = re.split(r"([0-9]+)", name)
    return tuple(
        (int(part[:30]), len(part), part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def _combined(found: set[_Fields], fields: int) -> Iterator[_Fields]:
    """Field by field, from the last: those that differ in this one alone, put together."""
    for field in reversed(range(fields)):
        alike: dict[_Fields, frozenset[str]] = {}
        for one in found:
            others = one[:field] + one[field + 1 :]
            alike[others] = alike.get(others, frozenset()) | one[field]
        found = {(*rest[:field], these, *rest[field:]) for rest, these in alike.items()}
    yield from found


def _written(texts: tuple[str, ...], fields: _Fields) -> str:
    if not fields and not _PLAIN.fullmatch(texts[0]):
        word = shell.word(texts[0])
        return (
            f"'{word}'" if "," in word and word == texts[0] else word
        )  # to a shell a comma is nothing
    return "".join(
        text + number for text, number in zip(texts, [*map(_ranges, fields), ""], strict=True)
    )


def _lowest(texts: tuple[str, ...], fields: _Fields) -> tuple[object, ...]:
    lowest = [min(these, key=lambda number: (int(number), len(number))) for these in fields]
    return natural_key("".join(a + b for a, b in zip(texts, [*lowest, ""], strict=True)))


def _ranges(numbers: frozenset[str]) -> str:
    """ "07", "[01-16,20]": a range has as many digits as its first number, or more where it must."""
    if len(numbers) == 1:
        return next(iter(numbers))
    listed = sorted(numbers, key=lambda number: (int(number), len(number)))
    runs: list[list[str]] = []
    ends: dict[str, list[str]] = {}  # "1" and "01" are two numbers, and begin two runs
    for number in listed:
        before = str(int(number) - 1)
        candidates = (ends.get(before), ends.get(before.zfill(len(number))))
        run = next((one for one in candidates if one and _fits(one, number)), None)
        if run is None:
            runs.append(run := [])
        else:
            del ends[run[-1]]
        run.append(number)
        ends[number] = run
    return "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"


def _fits(run: list[str], number: str) -> bool:
    return number == str(int(number)).zfill(len(run[0]))
