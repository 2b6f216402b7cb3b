"""Finds the Python interpreters of this machine, and those that uv could get.

python-discovery and `uv python list` look on the PATH: of pyenv's versions they find the one that is switched
on. An old release needs an old Python, so all of them are listed here.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from ... import json_text, scratch
from ...data.versions import parse_version
from ...exit_codes import UsageError
from .. import places, processes
from .interpreter import Interpreter, asked_version, number
from .probe import ask, is_executable

_NAME = re.compile(r"python3(\.\d+t?)?")
_ALWAYS = ("/usr/bin", "/usr/local/bin")
_OWN = sys.executable
_UV_DEADLINE = 20.0  # seconds; it answers in a tenth of one

# What uv needs to know of the machine and its user's wishes. Without a PATH it looks for no interpreters.
_FOR_UV = re.compile(r"HOME|XDG_\w+|TMPDIR|UV_NO_MANAGED_PYTHON|UV_PYTHON_(DOWNLOADS|PREFERENCE)")


def interpreters(python: str = "") -> list[Interpreter]:
    """The interpreters that answered, in the order in which they are preferred.

    Of an environment's interpreter, the one that it was made with is listed. Those that do not start or
    give no answer are skipped. ``python`` is a version ("3.8", "3.8.18": only those of that version
    are listed, perhaps none) or an interpreter's path (only that one is). Raises UsageError where it is
    neither, or where the interpreter that it names does not work.
    """
    wanted = asked_version(python)
    if wanted or not python:
        return [one for one in _working(_places()) if not wanted or one.matches(wanted)]
    path = _named(python)
    answer = ask([path])[path] if is_executable(path) else "cannot be run: it is no executable file"
    if isinstance(answer, str):
        raise UsageError(
            f"--python {python}: {path} {answer}",
            hint="name a Python interpreter that works, or a version such as 3.8",
        )
    return [answer.interpreter(path, "--python")]


def _named(python: str) -> str:
    """The file that `--python` names: a path, an environment's directory or a command."""
    path = Path(python).expanduser()
    if path.is_dir():
        path = path / "bin" / "python"
    elif "/" not in python:
        command = shutil.which(python)
        if command is None:
            raise UsageError(
                f"--python {python}: neither a version, a path nor a command on PATH",
                hint="a version looks like 3.8, a path like /usr/bin/python3.8",
            )
        path = Path(command)
    if not path.exists():
        raise UsageError(f"--python {python}: there is no {path}")
    return str(path.absolute())


def _places() -> Iterator[tuple[str, str]]:
    """(path, where it was found) of what may be an interpreter, in the order in which they are preferred."""
    if active := os.environ.get("VIRTUAL_ENV", ""):
        yield f"{active}/bin/python", "PATH"
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if Path(folder) == pyenv / "shims":
            # Each of the others starts one of the versions below, slowly, or says that it does not.
            yield f"{folder}/python3", "PATH"
        elif folder.startswith("/"):
            yield from _in_folder(Path(folder), "PATH")
    data = os.environ.get("XDG_DATA_HOME") or places.home() / ".local/share"
    uvs = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or Path(data) / "uv/python")
    for versions, found_in in ((pyenv / "versions", "pyenv"), (uvs, "uv")):
        for name in sorted(_entries(versions), key=_by_number, reverse=True):
            yield str(versions / name / "bin" / "python"), found_in
    for name in _ALWAYS:
        yield from _in_folder(Path(name), name)
    yield _OWN, "envcheck's own"


def _in_folder(folder: Path, found_in: str) -> Iterator[tuple[str, str]]:
    names = [name for name in _entries(folder) if _NAME.fullmatch(name)]
    for name in sorted(names, key=_by_number):  # "python3" first: what its user calls Python
        yield str(folder / name), found_in


def _entries(folder: Path) -> list[str]:
    with suppress(OSError):
        return os.listdir(folder)  # noqa: PTH208 - names are what is wanted
    return []


def _by_number(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def _working(places: Iterable[tuple[str, str]]) -> list[Interpreter]:
    """Those that answer, each once, where it was found first."""
    first: dict[str, tuple[str, str]] = {}
    for path, found_in in places:
        if is_executable(path):
            # One interpreter has several names; a version manager's shims are another one each.
            real = Path(path).resolve()
            key = str(real) if real.name.startswith("python") else path
            first.setdefault(key, (path, found_in))
    answers = ask(path for path, _ in first.values())
    found: dict[str, Interpreter] = {}
    for path, found_in in first.values():
        answer = answers[path]
        if not isinstance(answer, str):
            one = answer.interpreter(path, found_in)
            found.setdefault(str(Path(one.path).resolve()), one)
    return list(found.values())


class _Listed(msgspec.Struct):
    """One entry of ``uv python list --output-format json``."""

    version: str
    arch: str = ""
    variant: str = "default"
    implementation: str = ""


def obtainable() -> list[str]:
    """The minor versions that uv would download for this machine, newest first: ["3.13", …, "3.8"].

    From the list inside uv: no network is asked. Empty where there is no uv, or where its user's settings
    (uv.toml, UV_PYTHON_DOWNLOADS …) forbid it to download Pythons.
    """
    if os.environ.get("UV_OFFLINE", "").lower() in ("1", "true", "yes", "on", "t", "y"):
        return []
    found = set()
    for entry in _uv_list():
        version = parse_version(entry.version)
        plain = (entry.implementation, entry.variant) == ("cpython", "default")
        if plain and version and not version.is_prerelease and entry.arch == platform.machine():
            found.add(f"{version.major}.{version.minor}")
    return sorted(found, key=number, reverse=True)


def _uv_list() -> list[_Listed]:
    with suppress(ImportError, FileNotFoundError, ValueError), scratch.directory() as folder:
        from uv import find_uv_bin

        listing = ["python", "list", "--output-format", "json"]
        result = processes.run(
            [find_uv_bin(), "--offline", "--cache-dir", folder, *listing],
            deadline=_UV_DEADLINE,
            env={name: value for name, value in os.environ.items() if _FOR_UV.fullmatch(name)},
            cwd=Path("/"),
        )
        return json_text.read(result.stdout, list[_Listed]) if result.ok else []
    return []
