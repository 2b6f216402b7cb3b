"""The Snapshot's facts as tables that open, a section at a time.

What the page shows above (products, systems, a bench, a soak) is only counted, and lists are cut: the
Snapshot itself has all of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..facts.base import Probe, Unavailable
from ..facts.snapshot import Document, Snapshot
from .html import PageSection

_ROWS, _COLUMNS, _ITEMS, _DEEP = 120, 16, 24, 4
_CHARACTERS = 300
_WIDE = 9  # from so many fields on, a list of things is a table with a column for each thing
_SHOWN_ABOVE = {
    "micro_kernels": "Tensor Cores",
    "acceleration": "Acceleration systems",
    "bench": "Bench",
    "soak": "Soak",
}
_REASONS = {
    "not-collected": "not asked for",
    "absent": "not there",
    "not-supported": "not supported",
    "no-permission": "no permission",
}


class FactTable(msgspec.Struct, frozen=True):
    """rows: a name and its values; a single value goes across all columns. head: of the columns."""

    rows: list[tuple[str, list[str]]]
    head: list[str] = []
    more: int = 0  # rows that are not shown


class FactRecord(msgspec.Struct, frozen=True):
    """A struct or mapping: short values as a table, what is not known by reason, and what is nested."""

    tables: list[FactTable]
    unknown: list[tuple[str, str]] = []
    nested: list[tuple[str, str, FactRecord]] = []  # name, how many, what


class FactProbe(msgspec.Struct, frozen=True):
    name: str
    outcome: str  # "" where it is ok
    about: str
    text: str = ""
    record: FactRecord | None = None


def facts_tree(snapshot: Snapshot) -> PageSection:
    documents = [
        (title, document, [*_probes(document)])
        for title, document in (("The machine", snapshot.machine), ("The target", snapshot.target))
        if document is not None
    ]
    data = {"snapshot": snapshot, "documents": documents}
    return PageSection("facts", "The facts", "machine/facts.html", data)


def _probes(document: Document) -> list[FactProbe]:
    named = {name: getattr(document, name) for name in document.__struct_fields__}
    named |= dict(list(document.extensions.items())[:_ITEMS])
    return [
        _probe(name, probe, document) for name, probe in named.items() if isinstance(probe, Probe)
    ]


def _probe(name: str, probe: Probe[Any], document: Document) -> FactProbe:
    ok = probe.outcome == "ok"
    sources = ", ".join(list(dict.fromkeys(probe.sources.values()))[:2])
    about = "; ".join(filter(None, (sources, "" if ok else probe.reason)))
    text, record = "", None
    if probe.facts is None:
        text = probe.evidence or probe.reason or "no facts"
    elif name in _SHOWN_ABOVE:
        record = _counted(probe.facts, f"shown above, under {_SHOWN_ABOVE[name]}")
    elif name == "nvidia_smi" and _gpus(probe) and _gpus(document.nvml) == _gpus(probe):
        record = _record(msgspec.structs.replace(probe.facts, gpus=[]), 0)
        text = "Its GPUs are the same as NVML's."
    else:
        record = _record(probe.facts, 0)
    return FactProbe(_name(name), "" if ok else probe.outcome, about, text, record)


def _gpus(probe: Probe[Any] | None) -> Any:
    return None if probe is None or probe.facts is None else probe.facts.gpus


def _counted(facts: Any, where: str) -> FactRecord:
    rows = [
        (_name(name), [f"{len(value)} ({where})" if isinstance(value, list) else _words(value)])
        for name, value in _items(facts)
        if isinstance(value, (list, str, int, float)) and value not in ("", [])
    ]
    return FactRecord([FactTable(rows)])


def _record(record: Any, depth: int) -> FactRecord:
    rows: list[tuple[str, list[str]]] = []
    unknown: dict[str, list[str]] = {}
    nested: list[tuple[str, str, FactRecord]] = []
    for name, value in _items(record):
        if isinstance(value, Unavailable):
            reason = _REASONS.get(value.unavailable, value.unavailable)
            if value.detail and value.unavailable not in _REASONS:
                rows.append((_name(name), [f"{reason}: {value.detail}"]))
            elif value.unavailable != "not-collected":
                unknown.setdefault(reason, []).append(_name(name))
        elif value == []:
            rows.append((_name(name), ["none"]))
        elif _is_nested(value):
            count = str(len(value)) if isinstance(value, list) else ""
            if depth < _DEEP and len(nested) < _ITEMS and value != {}:
                below = _things(value, depth) if count else _record(value, depth + 1)
                nested.append((_name(name), count, below))
        elif value not in (None, ""):
            rows.append((_name(name), [_words(value)]))
    missing = [(reason, ", ".join(names[:_ROWS])) for reason, names in unknown.items()]
    return FactRecord([_table(rows)] if rows else [], missing, nested)


def _items(record: Any) -> list[tuple[str, Any]]:
    if isinstance(record, dict):
        return [(str(name), value) for name, value in list(record.items())[:_ROWS]]
    return [(name, getattr(record, name)) for name in record.__struct_fields__]


def _is_nested(value: Any) -> bool:
    first = value[0] if isinstance(value, list) and value else value
    return isinstance(first, (msgspec.Struct, dict))


def _things(things: Sequence[Any], depth: int) -> FactRecord:
    """A list of things: a row each; of things with many facts a column each."""
    first = things[0]
    if isinstance(first, dict) or not all(type(one) is type(first) for one in things):
        tables = [
            _table([(_name(name), [_words(value)]) for name, value in _items(one)[:_ITEMS]])
            for one in things[:_ITEMS]
        ]
        return FactRecord(tables)
    names = first.__struct_fields__
    shown = things[:_ROWS]
    cells = {name: [_cell(getattr(one, name)) for one in shown] for name in names}
    cells = {name: values for name, values in cells.items() if any(values)} or {names[0]: ["–"]}
    if len(names) >= _WIDE and len(things) <= _COLUMNS:
        # A row a fact; a value that all things share stands once.
        rows = [
            (_name(name), values[:1] if len(set(values)) == 1 else [one or "–" for one in values])
            for name, values in cells.items()
        ]
        return FactRecord([FactTable(rows, ["Fact", *map(_title, things, range(len(things)))])])
    table = [(row[0] or "–", list(row[1:])) for row in zip(*cells.values(), strict=False)]
    return FactRecord([FactTable(table, [_name(name) for name in cells], len(things) - len(shown))])


def _title(thing: Any, place: int) -> str:
    names = (getattr(thing, name, "") for name in ("index", "ordinal", "name", "address"))
    return next(
        (str(one) for one in names if isinstance(one, (int, str)) and one != ""), str(place)
    )


def _table(rows: list[tuple[str, list[str]]]) -> FactTable:
    return FactTable(rows[:_ROWS], more=max(0, len(rows) - _ROWS))


def _name(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    """As ``_words``; "" for what is not known."""
    unknown = isinstance(value, Unavailable) or value is None or value in ("", [], {})
    return "" if unknown else _words(value)


def _words(value: Any) -> str:
    """A value in one line."""
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case Unavailable():
            return _REASONS.get(value.unavailable, value.unavailable)
        case list() | tuple():
            text = ", ".join(map(_words, value[:_ITEMS]))
            text += f" and {len(value) - _ITEMS} more" if len(value) > _ITEMS else ""
        case dict():
            text = ", ".join(f"{name}: {_words(one)}" for name, one in list(value.items())[:_ITEMS])
        case msgspec.Struct():
            words = ((_name(name), _cell(one)) for name, one in _items(value))
            text = " ".join(f"{name} {word}" for name, word in words if word)
        case _:
            text = str(value)
    return text if len(text) <= _CHARACTERS else text[:_CHARACTERS] + " …"
