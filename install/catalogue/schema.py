"""From a catalogue file's text to a Stack; each error is one sentence with the file and the key's path."""

from __future__ import annotations

import re
from typing import Any, get_args

import msgspec

from ...exit_codes import UsageError
from ...suggestions import did_you_mean
from .model import FORMS, Build, Index, Release, Sdist, Stack
from .rules import Path, mistakes

_FORM = "envcheck explain stack-file describes the form"
_TOO_LONG = re.compile(r"[0-9]{200}")  # three times a sha256; Python refuses 4,300 digits
_TABLES = (Stack, Index, Sdist, Build, Release)
_FORMS = {repr(meta.pattern)[1:-1]: meta.title for form in FORMS for meta in get_args(form)[1:]}


def read(text: str, where: str) -> Stack:
    """The stack that ``text`` describes, its releases newest first; ``where`` names the file in errors.

    Raises UsageError that points at the first mistake: of TOML, of the schema, or of what a value means.
    """
    data = _parsed(text, where)
    try:
        stack = msgspec.convert(data, Stack)
    except msgspec.ValidationError as error:
        raise _schema_error(str(error), data, where) from None
    found = list(mistakes(stack))
    if found:
        raise mistake(where, found[0].path, found[0].sentence, others=len(found) - 1)
    return msgspec.structs.replace(stack, releases=_newest_first(stack))


def _parsed(text: str, where: str) -> dict[str, Any]:
    import tomli

    if long := _TOO_LONG.search(text):  # also in text, where versions are read as numbers
        line = text.count("\n", 0, long.start()) + 1
        raise UsageError(f"{where}:{line}: this is no stack: a number in it is too long")
    try:
        return tomli.loads(text)
    except tomli.TOMLDecodeError as error:
        sentence = f"this is not TOML: {error.msg[:1].lower()}{error.msg[1:]}"
        raise UsageError(f"{where}:{error.lineno}:{error.colno}: {sentence}", _FORM) from None
    except RecursionError:
        raise UsageError(f"{where}: this is no stack: it is nested too deeply") from None
    except ValueError:  # Python's own limit on digits
        raise UsageError(f"{where}: this is no stack: a number in it is too long") from None


def _newest_first(stack: Stack) -> list[Any]:
    from packaging.version import Version

    return sorted(stack.releases, key=lambda release: Version(release.version), reverse=True)


def mistake(where: str, path: Path, sentence: str, *, others: int = 0) -> UsageError:
    """ "my.toml: releases[1].python[0]: …"; the first release is releases[0]."""
    at = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    more = f"the file has {others} more mistake{'s'[: others > 1]}; " if others else ""
    place = f"{where}: {at.removeprefix('.')}" if at else where
    return UsageError(f"{place}: {sentence}", f"{more}{_FORM}")


def _schema_error(message: str, data: Any, where: str) -> UsageError:
    what, _, at = message.partition(" - at `$")
    path = _path(at.rstrip("`"), data)
    if found := re.fullmatch(r"Object contains unknown field `(.*)`", what):
        known = {field.encode_name for kind in _TABLES for field in msgspec.structs.fields(kind)}
        meant = did_you_mean(found[1].replace("_", "-"), known)
        return mistake(where, (*path, found[1]), f'"{found[1]}" is no key here{meant}')
    if found := re.fullmatch(r"Object missing required field `(.*)`", what):
        return mistake(where, path, f'"{found[1]}" is missing')
    if found := re.fullmatch(r"Expected `str` matching regex '(.*)'", what):
        return mistake(where, path, f'"{_at(data, path)}" is not {_FORMS[found[1]]}')
    return mistake(where, path, what)


def _path(at: str, data: Any) -> Path:
    """``.releases[0].python[1]`` as a path. Of a table with free keys, ``[...]`` is the first wrong one."""
    path: Path = ()
    for key, index in re.findall(r"\.([\w-]+)|\[(\d+|\.\.\.)\]", at):
        if key:
            path = (*path, key)
        elif index == "...":
            wrong = (k for k, value in _at(data, path).items() if not isinstance(value, str))
            path = (*path, next(wrong, ""))
        else:
            path = (*path, int(index))
    return path


def _at(data: Any, path: Path) -> Any:
    for part in path:
        data = data[part]
    return data
