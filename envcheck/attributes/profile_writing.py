"""A profile of machines as they are: TOML with a comment at each key, which each of them fits.

Of several machines, what they do not agree on is omitted, with a comment.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import NamedTuple

from .. import safe_text
from ..facts.profile import Value
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView
from .bounds import fits, mistake
from .model import Attribute
from .named import NAMED
from .readers import least_of_built_in
from .registry import (
    COUNT,
    FORMATS,
    MEMORY,
    NAME,
    PACKAGES,
    PROFILED,
    PROVEN,
    TENSOR_CORES,
    Key,
    Kind,
)
from .values import NONE, attributes

RULES = """\
# What is left out is not looked at: take out what may differ. A list wants any of its items;
# numbers and versions may be bounds, in quotes: ">= 8", ">= 570, < 580". "570" is any 570.x.
"""
_HEAD = (
    "# A profile: what a machine must be. `envcheck doctor --expect FILE` compares one with it.\n"
    + RULES
)
_BARE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_LONGEST = 300  # characters of a value
_COMMENTS = 40  # of a section

Folded = Callable[[Iterable[str]], str]  # names of machines in one line


class MachineValues(NamedTuple):
    """{an attribute's key: {machine: {device: value}}}"""

    machines: list[str]
    values: dict[str, dict[str, dict[str, str]]]

    def of(self, key: str) -> dict[str, dict[str, str]]:
        return self.values.get(key, {})


def values_of(machines: Iterable[tuple[str, Iterable[Attribute]]]) -> MachineValues:
    found = MachineValues([], {})
    for name, all_of_it in machines:
        found.machines.append(name)
        for one in all_of_it:
            of_machine = found.values.setdefault(one.key, {}).setdefault(name, {})
            of_machine[one.device] = one.value
    return found


def write(view: SnapshotView, proven: list[str]) -> str:
    """The profile of one machine. proven: the modes that Tensor Cores are proven for on every GPU."""
    kept = {f"{PACKAGES}.{name}" for name in FRAMEWORKS}
    own = [
        one for one in attributes(view) if one.key.partition(".")[0] in PROFILED or one.key in kept
    ]
    parts = [_HEAD, *sections(values_of([("", own)]), ", ".join)]
    formats: list[Value] = [one for one in FORMATS if one in proven]
    if formats:
        lines = [pair(PROVEN, formats, "on every GPU")]
        comment = "Number formats for which Tensor Cores are proven."
        parts.append(table(f"[{TENSOR_CORES}]", comment, lines))
    return "\n".join(filter(None, parts))


def sections(found: MachineValues, folded: Folded, prefix: str = "") -> Iterator[str]:
    """The tables of a profile; "" for those in which nothing stands. prefix: of their names."""
    for name, section in PROFILED.items():
        if section.many:
            yield from _devices(name, section.comment, section.keys, found, folded, prefix)
            continue
        lines: list[str] = []
        for key in section.keys:
            values = {one: of.get("", "") for one, of in found.of(f"{name}.{key.name}").items()}
            lines += _line(key, values, len(found.machines), folded)
        yield table(f"[{prefix}{name}]", section.comment, lines)
    for name, named in NAMED.items():
        yield table(f"[{prefix}{name}]", named.comment, _named(name, named.kind, found, folded))


def _line(key: Key, values: Mapping[str, str], of: int, folded: Folded) -> Iterator[str]:
    """The line of a fact that is the same everywhere, else a comment. values: {who: what}."""
    different = set(values.values())
    if different <= {NONE} and key.kind != "text":
        return  # it is nowhere
    if len(different) > 1:
        yield comment(f"{key.name}: not the same on all: {_camps(values, folded)}")
    elif len(values) < of:
        yield from [comment(f"{key.name}: known of {len(values)} of {of} only")] if values else []
    elif not is_writable(value := different.pop(), key.kind):
        yield comment(f"{key.name}: its value cannot stand in a profile")
    else:
        obvious = key.words.lower() == key.name.replace("_", " ")
        yield pair(key.name, _typed(value, key), key.comment or ("" if obvious else key.words))


def _camps(values: Mapping[str, str], folded: Folded) -> str:
    """ "535.104.05 on 38, 535.129.03 on gpu[05,07]"."""
    counted = Counter(values.values()).most_common()
    parts = []
    for value, count in counted[:4]:
        who = [name for name, one in values.items() if one == value]
        named = ", ".join(who) if any(" " in one for one in who) else folded(who)
        parts.append(f"{value[:80]} on {named if count <= 3 else count}")
    return ", ".join(parts) + (f" and {len(counted) - 4} more" if len(counted) > 4 else "")


def _typed(value: str, key: Key) -> Value:
    """An attribute's value as a profile has it."""
    if key.kind == "switch":
        return value == "on"
    if key.kind == "number":
        number = float(value)
        if key.name == MEMORY:
            return f">= {least_of_built_in(number)}"
        return int(number) if number.is_integer() else number
    return value


def is_writable(value: str, kind: Kind) -> bool:
    """Whether a profile can hold it, and whoever has it fits that."""
    if not value.isprintable() or len(value) > _LONGEST:
        return False
    if kind == "switch":
        return value in ("on", "off")
    plain: float | str = value
    if kind == "number":
        try:
            plain = float(value)
        except ValueError:
            return False
    return not mistake(plain, kind) and fits(plain, plain, kind)


def _devices(
    section: str, about: str, keys: Iterable[Key], found: MachineValues, folded: Folded, prefix: str
) -> Iterator[str]:
    """A table for each name; where machines do not have the same devices, a comment."""
    whole = {name: of.get("", "") for name, of in found.of(f"{section}.{COUNT}").items()}
    if not whole:
        return
    if len(set(whole.values())) > 1 or len(whole) < len(found.machines):
        yield comment(f"{section}: not the same on all: {_camps(whole, folded)}") + "\n"
        return
    names = {
        (machine, device): value
        for machine, of in found.of(f"{section}.{NAME}").items()
        for device, value in of.items()
    }
    for called in sorted({value for value in names.values() if is_writable(value, "text")}):
        places = {place for place, value in names.items() if value == called}
        lines = [pair(NAME, called, ""), pair(COUNT, len(places) // len(found.machines), "")]
        for key in keys:
            values = {
                f"{machine} {device}".strip(): value
                for machine, of in found.of(f"{section}.{key.name}").items()
                for device, value in of.items()
                if (machine, device) in places
            }
            lines += _line(key, values, len(places), folded)
        yield table(f"[[{prefix}{section}]]", about, lines)


def _named(section: str, kind: Kind, found: MachineValues, folded: Folded) -> list[str]:
    keys = sorted(key for key in found.values if key.startswith(f"{section}."))
    known = {name for key in keys for name in found.of(key)}
    if keys and len(known) < len(found.machines):
        return [comment(f"known of {len(known)} of {len(found.machines)} only")]
    lines, differ = list[str](), list[str]()
    for key in keys:
        name = key.removeprefix(f"{section}.")
        values = {one: found.of(key).get(one, {}).get("", NONE) for one in found.machines}
        same = set(values.values())
        if len(same) > 1:
            differ.append(comment(f"{name}: not the same on all: {_camps(values, folded)}"))
        elif is_writable(value := same.pop(), kind) and _is_name(name):
            lines.append(pair(name, value, ""))
    more = [f"# and {len(differ) - _COMMENTS} more that differ"] if len(differ) > _COMMENTS else []
    return [*lines, *differ[:_COMMENTS], *more]


def _is_name(name: str) -> bool:
    return name.isprintable() and len(name) <= 80 and not set(name) & {'"', "\\"}


def comment(text: str, indent: str = "") -> str:
    """One line, whatever a Snapshot says."""
    return f"# {indent}{safe_text.one_line(text)[:_LONGEST]}"


def table(header: str, about: str, lines: list[str]) -> str:
    """A table of a profile; "" where nothing stands in it."""
    return "\n".join([*([f"# {about}"] if about else []), header, *lines, ""]) if lines else ""


def pair(name: str, value: Value, about: str) -> str:
    name = name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    return f"{name} = {_toml(value)}" + (f"  # {about}" if about else "")


def _toml(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
