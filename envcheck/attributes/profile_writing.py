"""A profile of a machine as it is: TOML with a comment at each key, which the machine itself fits."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from ..facts.base import Unavailable, known
from ..facts.missing import CannotJudge
from ..facts.profile import Value
from ..facts.target import FRAMEWORKS
from ..facts.view import SnapshotView
from .readers import adapter_name, adapters, package
from .registry import COUNT, FORMATS, MEMORY, NAME, PACKAGES, PROVEN, SECTIONS, TENSOR_CORES, Key

_BARE = re.compile(r"[A-Za-z0-9_-]{1,80}")
_HEAD = """\
# A profile: what a machine must be. `envcheck doctor --expect FILE` holds one against it.
# What is left out is not looked at: take out what may differ. A list wants any of its items;
# numbers and versions may be bounds, in quotes: ">= 8", ">= 570, < 580". "570" is any 570.x.
"""


def write(view: SnapshotView, proven: list[str]) -> str:
    """proven: the modes that Tensor Cores are proven for on every GPU."""
    parts = [_HEAD]
    for name, section in SECTIONS.items():
        if section.many:
            for called, devices in _by_name(view, name).items():
                lines = _device_lines(name, section.keys, called, devices)
                parts.append(table(f"[[{name}]]", section.comment, lines))
            continue
        lines = [line for key in section.keys for line in _line(key, key.fact(view))]
        parts.append(table(f"[{name}]", section.comment, lines))
    formats: list[Value] = [one for one in FORMATS if one in proven]
    if formats:
        lines = [pair(PROVEN, formats, "on every GPU")]
        parts.append(
            table(f"[{TENSOR_CORES}]", "Number formats for which Tensor Cores are proven.", lines)
        )
    lines = [
        pair(name, version, "")
        for name in FRAMEWORKS
        if (version := known(package(view, name))) is not None
    ]
    parts.append(table(f"[{PACKAGES}]", "Packages of the target (--target), by name.", lines))
    return "\n".join(filter(None, parts))


def table(header: str, comment: str, lines: list[str]) -> str:
    """A table of a profile; "" where nothing stands in it."""
    return "\n".join([*([f"# {comment}"] if comment else []), header, *lines, ""]) if lines else ""


def _by_name(view: SnapshotView, section: str) -> dict[str, list[Any]]:
    """The devices of a section, by the name that a table of it has."""
    named: dict[str, list[Any]] = {}
    if section == "nics":
        for device in known(adapters(view)) or []:
            named.setdefault(adapter_name(device), []).append(device)
    else:
        try:
            gpus = view.gpus
        except CannotJudge:
            return {}
        for gpu in gpus:
            named.setdefault(known(gpu.name) or "", []).append(gpu)
    return {name: devices for name, devices in named.items() if name}


def _device_lines(section: str, keys: tuple[Key, ...], name: str, devices: list[Any]) -> list[str]:
    meaning = "its words are enough: H100" if section == "gpus" else "board_id, or the driver"
    lines = [pair(NAME, name, meaning), pair(COUNT, len(devices), "")]
    for key in keys:
        values = {known(key.fact(device)) for device in devices}
        if len(values) == 1:
            lines += _line(key, key.fact(devices[0]))
        else:
            lines.append(f"# {key.name}: not the same on each of them")
    return lines


def _line(key: Key, fact: object) -> Iterator[str]:
    if isinstance(fact, Unavailable) or not isinstance(fact, (bool, int, float, str)):
        return
    if fact == "":
        return
    value: Value = f">= {fact}" if key.name == MEMORY else fact
    obvious = key.words.lower() == key.name.replace("_", " ")
    comment = key.comment or ("" if obvious else key.words)
    yield pair(key.name, value, comment)


def pair(name: str, value: Value, comment: str) -> str:
    name = name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False)
    return f"{name} = {_toml(value)}" + (f"  # {comment}" if comment else "")


def _toml(value: Value) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
