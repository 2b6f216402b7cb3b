"""Evidence for people: what a fact is called, and its value with a unit.

A fact's unit is the end of its name ("power_draw_w"). It is called as in profiles, else by its own name, in
which `fact_words.csv` replaces names and abbreviations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

import msgspec

from ..data import table
from ..facts.base import known
from ..facts.evidence import Evidence
from ..facts.snapshot import Snapshot
from ..facts.view import show
from .plain import duration, ranges, together

_NUMBER = re.compile(r"-?\d{1,18}(?:\.\d{1,18})?")
_ITEM = re.compile(r"(machine|target)\.(\w+)\.(\w+)\[(\d{1,6})\]")
_IN_UNIT = re.compile(r" in (?:GiB|MiB|MHz|W|Gbit/s|GT/s)\b")


def evidence_lines(evidence: Iterable[Evidence], snapshot: Snapshot) -> Iterator[tuple[str, bool]]:
    """The same fact of several devices in one line: "temperature: 86 °C (GPU 3), 88 °C (GPUs 4, 5)"; and
    whether it is a program's or the kernel's own words."""
    same = together((words_of(one.fact), one) for one in evidence)
    for words, facts in same.items():
        values = together((value_of(one.fact, one.value), one.fact) for one in facts)
        places = {value: _places(at, snapshot) for value, at in values.items()}
        several = len(values) > 1
        text = ", ".join(f"{one} ({at})" if several and at else one for one, at in places.items())
        line = words.replace("{}", text) if "{}" in words else f"{words}: {text}"
        yield line, is_proof(facts[0])


def is_proof(evidence: Evidence) -> bool:
    """Whether it is a program's or the kernel's own words."""
    return evidence.fact.endswith(("log", "logs", "error"))


def evidence_gist(evidence: Iterable[Evidence], message: str) -> str:
    """What the message does not say already, logs and errors first: "power draw: 345 W"."""
    named = together(
        (words_of(one.fact), value_of(one.fact, one.value))
        for one in sorted(evidence, key=lambda one: not is_proof(one))
        if len(one.value) < 4 or any(part not in message for part in one.value.split(", "))
    )
    facts = {words: " / ".join(dict.fromkeys(values)) for words, values in named.items()}
    return "; ".join(
        words.replace("{}", value) if "{}" in words else f"{words}: {value}"
        for words, value in facts.items()
    )


@cache
def _named() -> dict[str, str]:
    """{name of a fact, a word of it, or its end, "_mhz": what it is called, "1 MHz"}"""
    return {row["name"]: row["words"] for row in table("fact_words")}


@cache
def _attributes() -> dict[str, str]:
    """{path of a fact: what profiles call it}"""
    return {
        path: _IN_UNIT.sub("", row["words"])
        for row in reversed(table("attributes"))
        if (path := row["path"] or row["fact"]) in row["fact"].split()
    }


@cache
def words_of(path: str) -> str:
    """ "SM clock", of "machine.nvml.gpus[3].clock_sm_mhz"; with "{}" where its value belongs."""
    places = re.sub(r"\[\d+\]", "", path).split(".")[1:] or [path]
    stem, _unit = _stem(places[-1])
    at = places[-1] if len(places) > 2 else ".".join(places)
    if words := _named().get(stem) or _attributes().get(at):
        return words
    names = [stem] if len(places) > 2 else [*places[:-1], stem]
    return " ".join(_named().get(name) or _spelt(name) for name in names)


def _spelt(name: str) -> str:
    return " ".join(_named().get(word, word) for word in name.split("_"))


def value_of(path: str, value: str) -> str:
    """ "345 MHz", "21 min"; records as their facts."""
    if value.startswith('{"'):
        return _records(value)
    _, unit = _stem(path.rpartition(".")[2])
    parts = [
        _with_unit(float(one), unit)
        if _NUMBER.fullmatch(one)
        else _named().get(one if "_" in one else "", one)
        for one in value.split(", ")
    ]
    return ", ".join(parts)


def _stem(name: str) -> tuple[str, str]:
    """A fact's name without its unit, and the unit, "1 MHz"."""
    stem, _, end = name.rpartition("_")
    unit = _named().get(f"_{end}", "") if stem else ""
    return (stem, unit) if unit else (name, "")


def _with_unit(number: float, unit: str) -> str:
    factor, _, name = unit.partition(" ")
    number *= float(factor or 1)
    if name == "s":
        return duration(number)
    if name == "MiB" and number >= 1024:
        return f"{number / 1024:,.1f} GiB"
    shown = f"{number:,.1f}".removesuffix(".0")
    return f"{shown} {name}" if name else shown if number >= 10_000 else shown.replace(",", "")


def _records(value: str) -> str:
    """Facts that are records: {"pid":4711,"memory_mib":900} as "process 4711, memory 900 MiB"."""
    try:
        records: list[dict[str, Any]] = msgspec.json.decode(f"[{value}]", type=list[dict[str, Any]])
    except msgspec.DecodeError:
        return value
    return "; ".join(
        ", ".join(
            f"{words_of(f'...{key}')} {value_of(key, show(one))}" for key, one in record.items()
        )
        for record in records
    )


def _places(paths: Iterable[str], snapshot: Snapshot) -> str:
    """ "GPUs 3, 5": the devices that facts are about, by nvidia-smi's numbers."""
    names = [_device(path, snapshot) for path in paths]
    numbers = sorted({one for one in names if isinstance(one, int)})
    gpus = f"GPU{'s' * (len(numbers) > 1)} {ranges(numbers)}" if numbers else ""
    return ", ".join(filter(None, (gpus, *(one for one in names if isinstance(one, str)))))


def _device(path: str, snapshot: Snapshot) -> int | str | None:
    """The number or name of the item of a list that a path leads to."""
    match = _ITEM.match(path)
    probe: Any = match and getattr(getattr(snapshot, match[1]), match[2], None)
    items = known(getattr(probe.facts, match[3], None)) if match and probe else None
    if not match or not isinstance(items, list) or int(match[4]) >= len(items):
        return None
    item = items[int(match[4])]
    found = (known(getattr(item, name, None)) for name in ("index", "address", "name"))
    return next((one for one in found if isinstance(one, int | str)), None)
