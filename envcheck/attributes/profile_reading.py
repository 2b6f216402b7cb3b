"""From a profile's TOML to a Profile; each mistake is one sentence with the file, the line and the key."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ..exit_codes import UsageError
from ..facts.profile import ProductTables, Profile, Tables, Value, Wanted
from ..suggestions import did_you_mean
from . import wanted_rates as rates
from .bounds import mistake
from .named import NAMED
from .registry import COUNT, FORMATS, NAME, PRODUCTS, PROVEN, SECTIONS, TENSOR_CORES, Kind
from .wanted_rates import RATES

LIMIT = 1 << 20  # bytes
NO_PRODUCT = -1  # what is written for all machines
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
    products = data.pop(PRODUCTS, [])
    tables = _tables(lines, data, NO_PRODUCT)
    if not isinstance(products, list) or not all(map(_is_table, products)):
        lines.wrong(NO_PRODUCT, (PRODUCTS,), "it must be a table: [[products]]")
    each = tuple(_product(lines, number, content) for number, content in enumerate(products))
    if not any(
        table
        for these in [tables, *(one.tables for one in each)]
        for found in these.values()
        for table in found
    ):
        raise UsageError(f"--expect {where}: nothing is wanted in it", _HINT)
    return Profile(where, tables, each)


def _product(lines: _Lines, number: int, content: dict[str, Any]) -> ProductTables:
    name = content.pop(NAME, None)
    if not isinstance(name, str) or not name.strip():
        lines.wrong(
            number,
            (PRODUCTS, NAME),
            'it must be its GPUs, such as "8 × NVIDIA H100 80GB HBM3"',
        )
    return ProductTables(
        Wanted(name, lines.of(number, (PRODUCTS, NAME))), _tables(lines, content, number)
    )


def _tables(lines: _Lines, data: dict[str, Any], product: int) -> Tables:
    tables: Tables = {}
    sections = [*SECTIONS, TENSOR_CORES, *NAMED, RATES, *([PRODUCTS] if product < 0 else [])]
    for name, content in data.items():
        if name not in sections:
            lines.wrong(
                product, (name,), f'there is no section "{name}"{did_you_mean(name, sections)}'
            )
        many = name == RATES or (name in SECTIONS and SECTIONS[name].many)
        if many != isinstance(content, list) or not all(map(_is_table, _listed(content))):
            shape = f"{PRODUCTS}.{name}" if product >= 0 else name
            lines.wrong(
                product, (name,), f"it must be a table: {'[[%s]]' if many else '[%s]'}" % shape
            )
        tables[name] = [
            _table(lines, product, name, number if many else None, table)
            for number, table in enumerate(_listed(content))
        ]
    return tables


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
    lines: _Lines, product: int, section: str, number: int | None, table: dict[str, Any]
) -> dict[str, Wanted]:
    kinds = _kinds(section, table)

    def path(key: str) -> tuple[str | int, ...]:
        return (section, key) if number is None else (section, number, key)

    for key in table:
        if key not in kinds:
            lines.wrong(
                product, path(key), f'there is no key "{key}" here{did_you_mean(key, kinds)}'
            )
    if section == RATES:
        key, wrong = rates.mistake(table)
        if wrong:
            lines.wrong(product, path(key), wrong)
        return {key: Wanted(value, lines.of(product, path(key))) for key, value in table.items()}
    found = {}
    for key, value in table.items():
        plain = value if _is_plain(value) else None
        wrong = "it must be a value" if plain is None else mistake(plain, kinds[key])
        if not wrong and section == TENSOR_CORES and plain is not None:
            wrong = _no_formats(plain)
        if wrong or plain is None:
            lines.wrong(product, path(key), wrong)
        found[key] = Wanted(plain, lines.of(product, path(key)))
    return found


def _kinds(section: str, table: Iterable[str]) -> dict[str, Kind]:
    if section in NAMED:
        return dict.fromkeys(table, NAMED[section].kind)
    if section == RATES:
        return {**dict.fromkeys(rates.TEXTS, "text"), **dict.fromkeys(rates.NUMBERS, "number")}
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

    def of(self, product: int, path: tuple[str | int, ...]) -> int:
        """0 where it is not written in the way that people write it.

        product: the number of its [[products]]; NO_PRODUCT: what is written for all. path: (section, key),
        (section, number, key), or one of these without the key; of a product itself (PRODUCTS, key).
        """
        section, *rest = path
        number = rest[0] if rest and isinstance(rest[0], int) else 0
        key = rest[-1] if rest and isinstance(rest[-1], str) else ""
        inside, seen, among = False, -1, -1
        for line, text in enumerate(self._lines, 1):
            header = re.match(r"\s*\[{1,2}\s*([\w\".-]{1,80})\s*\]", text)
            if header:
                name = header[1].replace('"', "")
                among += name == PRODUCTS
                of_product = name.startswith(f"{PRODUCTS}.") or name == PRODUCTS
                inside = name.removeprefix(f"{PRODUCTS}.") == section
                inside = inside and product == (among if of_product else NO_PRODUCT)
                seen += inside
                if inside and not key and seen == number:
                    return line
            elif inside and seen == number and key:
                named = re.match(r"\s*\"?([\w.-]{1,80})\"?\s*=", text)
                if named and named[1] == key:
                    return line
        return 0

    def wrong(self, product: int, path: tuple[str | int, ...], sentence: str) -> NoReturn:
        line = self.of(product, path)
        if not line and len(path) > 1 and isinstance(path[-1], str):
            line = self.of(product, path[:-1])  # a key that is not there: its table
        at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
        if product != NO_PRODUCT and path[0] != PRODUCTS:
            at = f".{PRODUCTS}[{product}]{at}"
        place = f"{self._where}:{line}" if line else self._where
        raise UsageError(f"--expect {place}: {at[1:]}: {sentence}", _HINT)
