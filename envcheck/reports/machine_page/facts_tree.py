"""The Snapshot's facts, a section at a time, for who wants to read on: as tables that open.

What the page tells above (products, systems, a bench, a soak) is counted here, and lists are cut: all
of it is in the Snapshot itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ...facts.base import Probe, Unavailable
from ...facts.snapshot import Document, Snapshot
from .. import html_page as html
from ..html_page import PageSection
from ..plots.svg import text

_ROWS, _COLUMNS, _ITEMS, _DEEP = 120, 16, 24, 4
_CHARACTERS = 300
_WIDE = 9  # fields from which on a list of things is a table with a column for each thing
_TOLD = {
    "micro_kernels": "told above, under Tensor Cores",
    "acceleration": "told above, under Acceleration systems",
    "bench": "told above, under Bench",
    "soak": "told above, under Soak",
}
_ASIDE = ("origin", "location", "collected_at", "collector", "extensions")
_REASONS = {
    "not-collected": "not asked for",
    "absent": "not there",
    "not-supported": "not supported",
    "no-permission": "no permission",
}
_NOTHING: tuple[object, ...] = (None, "", [], {})


def facts_tree(snapshot: Snapshot) -> PageSection:
    parts: list[str] = []
    for title, document in (("The machine", snapshot.machine), ("The target", snapshot.target)):
        if document is not None:
            parts += _document(title, document)
    redacted = ", with names redacted" if snapshot.redacted else ""
    about = f"Of a Snapshot of schema {snapshot.schema}{redacted}. --save keeps all of it."
    body = f'<div class="facts-tree">{"".join(parts)}</div>'
    return PageSection("facts", "The facts", [html.paragraph(about, "quiet"), body])


def _document(title: str, document: Document) -> Iterator[str]:
    where = "" if document.location == "machine" else f" {document.location}"
    collected = f"collected {document.collected_at} by {document.collector.version}"
    yield html.heading(title + where, 3)
    yield html.paragraph(f"{document.origin}, {collected}", "quiet")
    for name in document.__struct_fields__:
        probe = getattr(document, name)
        if name not in _ASIDE and isinstance(probe, Probe):
            yield _probe(name, probe, document)
    for name, probe in list(document.extensions.items())[:_ITEMS]:
        yield _probe(name, probe, document)


def _probe(name: str, probe: Probe[Any], document: Document) -> str:
    sources = dict.fromkeys(probe.sources.values())
    source = ", ".join(list(sources)[:2])
    told = [source, probe.reason if probe.outcome != "ok" else ""]
    after = "; ".join(filter(None, told))
    word = "" if probe.outcome == "ok" else " " + html.state("could-not-run", probe.outcome)
    summary = f"<b>{text(name.replace('_', ' '))}</b>{word}" + (
        f' <span class="quiet">{text(after)}</span>' if after else ""
    )
    if probe.facts is None:
        body = html.paragraph(probe.evidence or probe.reason or "no facts")
    elif name in _TOLD:
        body = _counted(probe.facts, _TOLD[name])
    elif name == "nvidia_smi" and _gpus(document.nvml) == _gpus(probe) and _gpus(probe):
        less = msgspec.structs.replace(probe.facts, gpus=[])
        body = "".join(_record(less, 0)) + html.paragraph("Of the GPUs it says what NVML does.")
    else:
        body = "".join(_record(probe.facts, 0))
    return html.details(summary, body)


def _gpus(probe: Probe[Any] | None) -> Any:
    return None if probe is None or probe.facts is None else probe.facts.gpus


def _counted(facts: Any, where: str) -> str:
    """How many things there are, and what is short."""
    rows = []
    for name in facts.__struct_fields__:
        value = getattr(facts, name)
        if isinstance(value, list) and value and isinstance(value[0], msgspec.Struct):
            rows.append((name, f"{len(value)} ({where})"))
        elif value not in _NOTHING:
            rows.append((name, _words(value)))
    return _table(rows)


def _record(record: Any, depth: int) -> Iterator[str]:
    """A struct or a mapping: what is short as one table, lists of things as tables of their own."""
    rows: list[tuple[str, str]] = []
    unknown: dict[str, list[str]] = {}
    nested: list[tuple[str, Any]] = []
    for name, value in _items(record):
        if isinstance(value, Unavailable):
            reason = _REASONS.get(value.unavailable, value.unavailable)
            if value.detail and value.unavailable not in _REASONS:
                rows.append((name, f"{reason}: {value.detail}"))
            elif value.unavailable != "not-collected":
                unknown.setdefault(reason, []).append(name)
        elif value in _NOTHING:
            if value == []:
                rows.append((name, "none"))
        elif _is_nested(value):
            nested.append((name, value))
        else:
            rows.append((name, _words(value)))
    yield _table(rows)
    for reason, names in unknown.items():
        listed = ", ".join(map(_name, names[:_ROWS]))
        yield f'<p class="quiet">{text(reason)}: {text(listed)}</p>'
    for name, value in nested[:_ITEMS]:
        number = f' <span class="count">{len(value)}</span>' if isinstance(value, list) else ""
        if depth < _DEEP:
            body = "".join(
                _things(value, depth + 1) if isinstance(value, list) else _record(value, depth + 1)
            )
            yield html.details(f"{text(_name(name))}{number}", f'<div class="in">{body}</div>')


def _items(record: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(record, dict):
        yield from ((str(name), value) for name, value in list(record.items())[:_ROWS])
    else:
        yield from ((name, getattr(record, name)) for name in record.__struct_fields__)


def _is_nested(value: Any) -> bool:
    if isinstance(value, list):
        return bool(value) and isinstance(value[0], (msgspec.Struct, dict))
    return isinstance(value, (msgspec.Struct, dict))


def _things(things: Sequence[Any], depth: int) -> Iterator[str]:
    """A list of things: a row each; of things with many facts a column each, what is alike once."""
    first = things[0]
    names = list(first) if isinstance(first, dict) else list(first.__struct_fields__)
    if isinstance(first, dict) or not all(type(one) is type(first) for one in things):
        for one in things[:_ITEMS]:
            yield _table([(str(name), _words(value)) for name, value in _items(one)][:_ITEMS])
        return
    if len(names) >= _WIDE and len(things) <= _COLUMNS:
        yield _columns(things, names)
        return
    shown = things[:_ROWS]
    cells = {name: [_cell(getattr(one, name)) for one in shown] for name in names}
    kept = [name for name in names if any(cells[name])] or names[:1]
    yield html.table(
        [(_name(name), "") for name in kept],
        [[(cells[name][place], "") for name in kept] for place in range(len(shown))],
    )
    if (left := len(things) - len(shown)) > 0:
        yield html.paragraph(f"and {left} more", "quiet")


def _columns(things: Sequence[Any], names: Sequence[str]) -> str:
    """A row a fact. Where all things say the same, it is said once."""
    rows = []
    count = len(things)
    for name in names:
        values = [getattr(one, name) for one in things]
        first = values[0]
        if values.count(first) == count:
            word = _cell(first)
            if not word:
                continue
            told = f"<td colspan={count}>{text(word)}</td>"
        else:
            told = "<td>" + "</td><td>".join([text(_cell(one) or "–") for one in values]) + "</td>"
        rows.append(f'<tr><th scope="row">{text(_name(name))}</th>{told}</tr>')
    titles = [_title(one, place) for place, one in enumerate(things)]
    head = "".join(f'<th scope="col">{text(title)}</th>' for title in titles)
    return (
        '<div class="wide" role="group" tabindex="0" aria-label="Table of facts"><table>'
        f'<thead><tr><th scope="col">Fact</th>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>'
    )


def _title(thing: Any, place: int) -> str:
    for name in ("index", "ordinal", "name", "address"):
        value = getattr(thing, name, None)
        if isinstance(value, (int, str)) and value != "":
            return str(value)
    return str(place)


def _table(rows: Sequence[tuple[str, str]]) -> str:
    if not rows:
        return ""
    told = "".join(
        f'<tr><th scope="row">{text(_name(name))}</th><td>{text(value)}</td></tr>'
        for name, value in rows[:_ROWS]
    )
    more = f"<tr><td colspan=2>and {len(rows) - _ROWS} more</td></tr>" if len(rows) > _ROWS else ""
    return f"<table><tbody>{told}{more}</tbody></table>"


def _name(name: str) -> str:
    return name.replace("_", " ")


def _cell(value: Any) -> str:
    """As ``_words``; nothing for what is not known."""
    if isinstance(value, Unavailable) or value is None or value in _NOTHING:
        return ""
    return _words(value)


def _words(value: Any) -> str:
    """A value in one line."""
    if isinstance(value, str):
        return value if len(value) <= _CHARACTERS else value[:_CHARACTERS] + " …"
    if value is True or value is False:
        return "yes" if value else "no"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Unavailable):
        return _REASONS.get(value.unavailable, value.unavailable)
    if isinstance(value, (list, tuple)):
        told = ", ".join(_words(one) for one in value[:_ITEMS])
        told += f" and {len(value) - _ITEMS} more" if len(value) > _ITEMS else ""
    elif isinstance(value, dict):
        told = ", ".join(f"{name}: {_words(one)}" for name, one in list(value.items())[:_ITEMS])
    elif isinstance(value, msgspec.Struct):
        told = " ".join(
            f"{_name(name)} {word}"
            for name in value.__struct_fields__
            if (word := _cell(getattr(value, name)))
        )
    else:
        told = str(value)
    return told if len(told) <= 2 * _CHARACTERS else told[: 2 * _CHARACTERS] + " …"
