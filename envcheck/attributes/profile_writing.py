"""A profile of a machine as it is: TOML with a comment at each key, which the machine itself fits."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping

from .. import safe_text
from ..facts.profile import Value
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView
from .bounds import fits, mistake
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
    Section,
)
from .values import NONE, attributes

_HEAD = """\
# A profile: what a machine must be. `envcheck doctor --expect FILE` compares one with it.
# What is left out is not looked at: take out what may differ. A list wants any of its items;
# numbers and versions may be bounds, in quotes: ">= 8", ">= 570, < 580". "570" is any 570.x.
"""
_LONGEST = 300  # characters of a value

Values = Mapping[str, Mapping[str, str]]  # {an attribute's key: {device: value}}


def write(view: SnapshotView, proven: list[str]) -> str:
    """The profile of one machine. proven: the modes that Tensor Cores are proven for on every GPU."""
    values: dict[str, dict[str, str]] = {}
    for one in attributes(view):
        values.setdefault(one.key, {})[one.device] = one.value
    parts = [_HEAD]
    for name, section in PROFILED.items():
        if section.many:
            parts += _devices(name, section, values)
            continue
        lines = [
            line
            for key in section.keys
            for line in _line(key, values.get(f"{name}.{key.name}", {}), 1)
        ]
        parts.append(_table(f"[{name}]", section.comment, lines))
    versions = {name: values.get(f"{PACKAGES}.{name}", {}).get("", "") for name in FRAMEWORKS}
    lines = [
        _pair(name, version)
        for name, version in sorted(versions.items())
        if _is_writable(version, "version")
    ]
    parts.append(_table(f"[{PACKAGES}]", NAMED[PACKAGES].comment, lines))
    formats: list[Value] = [one for one in FORMATS if one in proven]
    if formats:
        lines = [_pair(PROVEN, formats, "on every GPU")]
        comment = "Number formats for which Tensor Cores are proven."
        parts.append(_table(f"[{TENSOR_CORES}]", comment, lines))
    return "\n".join(filter(None, parts))


def _devices(name: str, section: Section, values: Values) -> Iterator[str]:
    """A table for each name of devices."""
    names = values.get(f"{name}.{NAME}", {})
    for called in sorted({one for one in names.values() if _is_writable(one, "text")}):
        devices = [device for device, one in names.items() if one == called]
        lines = [_pair(NAME, called), _pair(COUNT, len(devices))]
        for key in section.keys:
            of_key = values.get(f"{name}.{key.name}", {})
            of_devices = {one: of_key[one] for one in devices if one in of_key}
            lines += _line(key, of_devices, len(devices))
        yield _table(f"[[{name}]]", section.comment, lines)


def _line(key: Key, values: Mapping[str, str], of: int) -> Iterator[str]:
    """The line of a fact that is the same on all devices, else a comment. values: {device: value}."""
    different = set(values.values())
    if not values or (different == {NONE} and key.kind != "text"):
        return  # it is nowhere
    if len(different) > 1:
        yield _comment(f"{key.name}: not the same on all: {_camps(values)}")
    elif len(values) < of:
        yield _comment(f"{key.name}: known of {len(values)} of {of} only")
    elif not _is_writable(value := different.pop(), key.kind):
        yield _comment(f"{key.name}: its value cannot stand in a profile")
    else:
        obvious = key.words.lower() == key.name.replace("_", " ")
        yield _pair(key.name, _typed(value, key), key.comment or ("" if obvious else key.words))


def _camps(values: Mapping[str, str]) -> str:
    """ "18 on 6, 0 on GPU 3, GPU 4"."""
    counted = Counter(values.values()).most_common()
    parts = []
    for value, count in counted[:4]:
        devices = ", ".join(device for device, one in values.items() if one == value)
        parts.append(f"{value[:80]} on {devices if count <= 3 else count}")
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


def _is_writable(value: str, kind: Kind) -> bool:
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


def _comment(text: str) -> str:
    """One line, whatever a Snapshot says."""
    return f"# {safe_text.one_line(text)[:_LONGEST]}"


def _table(header: str, about: str, lines: list[str]) -> str:
    """A table of a profile; "" where nothing stands in it."""
    return "\n".join([f"# {about}", header, *lines, ""]) if lines else ""


def _pair(name: str, value: Value, about: str = "") -> str:
    return f"{name} = {_toml(value)}" + (f"  # {about}" if about else "")


def _toml(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
