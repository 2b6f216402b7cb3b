"""From a profile's TOML to a Profile; each mistake is one sentence with the file, the line and the key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ..exit_codes import UsageError
from ..facts.profile import Profile, Value, Wanted
from ..suggestions import did_you_mean
from .fits import mistake
from .keys import COUNT, FORMATS, NAME, PROVEN, SECTIONS, TENSOR_CORES, Kind
from .named import NAMED

LIMIT = 1 << 20  # bytes
_HINT = "envcheck collect --as-profile writes a profile of a machine, with a comment at each key"


def read(path: str) -> Profile:
    """The profile in a file. Raises UsageError."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise UsageError(f"--expect {path}: {error.strerror}") from None
    if len(data) > LIMIT:
        raise UsageError(f"--expect {path}: it is larger than 1 MiB: this is no profile", _HINT)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"--expect {path}: it is not UTF-8: byte {error.start} cannot be read"
        ) from None
    return parse(text, path)


def parse(text: str, where: str) -> Profile:
    data = _toml(text, where)
    lines = _Lines(text, where)
    tables: dict[str, list[dict[str, Wanted]]] = {}
    sections = [*SECTIONS, TENSOR_CORES, *NAMED]
    for name, content in data.items():
        if name not in sections:
            lines.wrong((name,), f'there is no section "{name}"{did_you_mean(name, sections)}')
        many = name in SECTIONS and SECTIONS[name].many
        if many != isinstance(content, list) or not all(map(_is_table, _listed(content))):
            lines.wrong((name,), f"it must be a table: {'[[%s]]' if many else '[%s]'}" % name)
        tables[name] = [
            _table(lines, name, number if many else None, table)
            for number, table in enumerate(_listed(content))
        ]
    if not any(table for found in tables.values() for table in found):
        raise UsageError(f"--expect {where}: nothing is wanted in it", _HINT)
    return Profile(where, tables)


def _toml(text: str, where: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        sentence = f"this is not TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise UsageError(f"--expect {where}:{error.lineno}: {sentence}", _HINT) from None
    except (RecursionError, ValueError):  # ValueError: Python's own limit on digits
        raise UsageError(f"--expect {where}: this is no profile", _HINT) from None


def _listed(content: Any) -> list[Any]:
    return content if isinstance(content, list) else [content]


def _is_table(content: Any) -> bool:
    return isinstance(content, dict)


def _table(
    lines: _Lines, section: str, number: int | None, table: dict[str, Any]
) -> dict[str, Wanted]:
    kinds = _kinds(section, table)
    found = {}
    for key, value in table.items():
        path = (section, number, key) if number is not None else (section, key)
        if key not in kinds:
            lines.wrong(path, f'there is no key "{key}" here{did_you_mean(key, kinds)}')
        plain = value if _is_plain(value) else None
        wrong = "it must be a value" if plain is None else mistake(plain, kinds[key])
        if not wrong and section == TENSOR_CORES and plain is not None:
            wrong = _no_formats(plain)
        if wrong or plain is None:
            lines.wrong(path, wrong)
        found[key] = Wanted(plain, lines.of(path))
    return found


def _kinds(section: str, table: Iterable[str]) -> dict[str, Kind]:
    if section in NAMED:
        return dict.fromkeys(table, NAMED[section].kind)
    if section == TENSOR_CORES:
        return {PROVEN: "text"}
    kinds: dict[str, Kind] = {key.name: key.kind for key in SECTIONS[section].keys}
    return {NAME: "text", COUNT: "number", **kinds} if SECTIONS[section].many else kinds


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) and not isinstance(item, list) for item in value)
    return isinstance(value, (bool, int, float, str))


def _no_formats(value: Value) -> str:
    wrong = [one for one in _listed(value) if one not in FORMATS]
    return f'"{wrong[0]}" is none of {", ".join(FORMATS)}' if wrong else ""


class _Lines:
    """The line of a key of a profile, for people who look for it."""

    def __init__(self, text: str, where: str) -> None:
        self._lines = text.splitlines()
        self._where = where

    def of(self, path: tuple[str | int, ...]) -> int:
        """0 where it is not written in the way that people write it."""
        section, *rest = path
        number = rest[0] if rest and isinstance(rest[0], int) else 0
        key = rest[-1] if rest and isinstance(rest[-1], str) else ""
        inside, seen = False, -1
        for line, text in enumerate(self._lines, 1):
            header = re.match(r"\s*\[{1,2}\s*([\w\"-]{1,40})\s*\]", text)
            if header:
                inside = header[1].strip('"') == section
                seen += inside
                if inside and not key and seen == number:
                    return line
            elif inside and seen == number and key:
                named = re.match(r"\s*\"?([\w.-]{1,80})\"?\s*=", text)
                if named and named[1] == key:
                    return line
        return 0

    def wrong(self, path: tuple[str | int, ...], sentence: str) -> NoReturn:
        line = self.of(path)
        at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        place = f"{self._where}:{line}" if line else self._where
        raise UsageError(f"--expect {place}: {at[1:]}: {sentence}", _HINT)
