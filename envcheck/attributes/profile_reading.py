"""From a profile's TOML to a Profile; each mistake is one sentence with the file and the key."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

from ..exit_codes import UsageError
from ..facts.profile import Profile, Tables, Value, Wanted
from ..suggestions import did_you_mean
from .bounds import mistake
from .named import NAMED
from .registry import COUNT, FORMATS, NAME, PROFILED, PROVEN, TENSOR_CORES, Kind

LIMIT = 1 << 20  # bytes
_HINT = "envcheck collect --as-profile writes a profile of a machine, with a comment at each key"


def read(path: str) -> Profile:
    """The profile in a file. Raises UsageError."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LIMIT + 1)
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--expect {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        words = f"it is not UTF-8: byte {error.start} cannot be read"
        raise UsageError(f"--expect {path}: {words}") from None
    if len(data) > LIMIT:
        raise UsageError(f"--expect {path}: it is larger than 1 MiB: this is no profile", _HINT)
    return parse(text, path)


def parse(text: str, where: str) -> Profile:
    tables = _tables(where, _toml(text, where))
    if not any(map(any, tables.values())):
        raise UsageError(f"--expect {where}: nothing is wanted in it", _HINT)
    return Profile(where, tables)


def _wrong(where: str, key: str, sentence: str) -> NoReturn:
    raise UsageError(f"--expect {where}: {key}: {sentence}", _HINT)


def _toml(text: str, where: str) -> dict[str, Any]:
    import tomli

    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        sentence = f"this is not TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise UsageError(f"--expect {where}:{error.lineno}: {sentence}", _HINT) from None
    except (RecursionError, ValueError):  # ValueError: Python's own limit on digits
        raise UsageError(f"--expect {where}: this is no profile", _HINT) from None


def _tables(where: str, data: dict[str, Any]) -> Tables:
    tables: Tables = {}
    sections = [*PROFILED, TENSOR_CORES, *NAMED]
    for name, content in data.items():
        if name not in sections:
            near = did_you_mean(name, sections)
            _wrong(where, name, f'there is no section "{name}"{near}')
        many = name in PROFILED and PROFILED[name].many
        listed = content if isinstance(content, list) else [content]
        if many != isinstance(content, list) or not all(isinstance(one, dict) for one in listed):
            _wrong(where, name, f"it must be a table: {'[[%s]]' if many else '[%s]'}" % name)
        tables[name] = [
            _table(where, name, table, f"{name}[{n}]." if many else f"{name}.")
            for n, table in enumerate(listed)
        ]
    return tables


def _table(where: str, section: str, table: dict[str, Any], at: str) -> dict[str, Wanted]:
    kinds = _kinds(section, table)
    for key in table:
        if key not in kinds:
            _wrong(where, at + key, f'there is no key "{key}" here{did_you_mean(key, kinds)}')
    for key, value in table.items():
        wrong = mistake(value, kinds[key]) if _is_plain(value) else "it must be a value"
        if not wrong and section == TENSOR_CORES:
            wrong = _no_formats(value)
        if wrong:
            _wrong(where, at + key, wrong)
    return {key: Wanted(value) for key, value in table.items()}


def _kinds(section: str, table: Iterable[str]) -> dict[str, Kind]:
    if section in NAMED:
        return dict.fromkeys(table, NAMED[section].kind)
    if section == TENSOR_CORES:
        return {PROVEN: "text"}
    kinds: dict[str, Kind] = {key.name: key.kind for key in PROFILED[section].keys}
    return {NAME: "text", COUNT: "number", **kinds} if PROFILED[section].many else kinds


def _is_plain(value: Any) -> bool:
    if isinstance(value, list):
        return all(_is_plain(item) and not isinstance(item, list) for item in value)
    return isinstance(value, (bool, int, float, str))


def _no_formats(value: Value) -> str:
    wrong = [one for one in (value if isinstance(value, list) else [value]) if one not in FORMATS]
    return f'"{wrong[0]}" is none of {", ".join(FORMATS)}' if wrong else ""
