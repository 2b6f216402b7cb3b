"""Finds the Python interpreters of this machine, and asks each of them what it is.

python-discovery and `uv python list` look on the PATH: of pyenv's versions they find the one that is switched
on. An old release needs an old Python, so all of them are listed here.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ...exit_codes import UsageError
from . import uv_pythons
from .interpreter import Interpreter
from .probe import InterpreterAnswer, NoAnswer, ask
from .uv_pythons import obtainable
from .versions import asked_version, matches
from .wheel_tags import tags

__all__ = ["interpreters", "obtainable"]

_NAME = re.compile(r"python3(\.\d+t?)?")
_ALWAYS = ("/usr/bin", "/usr/local/bin")
_OWN = sys.executable
# What a process of 32 bits sees of a kernel of 64.
_NARROW = {"x86_64": "i686", "aarch64": "armv7l"}


class _Place(NamedTuple):
    path: str
    found_in: str


def interpreters(python: str = "") -> list[Interpreter]:
    """The interpreters that answered, in the order in which they are preferred.

    Of an environment's interpreter, the one that it was made with is listed. Those that do not start or
    give no answer are skipped. ``python`` is a version ("3.8", "3.8.18": only those of that version
    are listed, perhaps none) or an interpreter's path (only that one is). Raises UsageError where it is
    neither, or where the interpreter that it names does not work.
    """
    if not python:
        return _asked(list(_places()))
    wanted = asked_version(python)
    if wanted:
        return [one for one in _asked(list(_places())) if matches(one, wanted)]
    path = _named(python)
    found, silence = _ask_all([_Place(path, "--python")])
    if not found:
        raise UsageError(
            f"--python {python}: {path} {silence[path]}",
            hint="name a Python interpreter that works, or a version such as 3.8",
        )
    return found


def _asked(places: list[_Place]) -> list[Interpreter]:
    return _ask_all(places)[0]


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


def _places() -> Iterator[_Place]:
    """Where interpreters are, in the order in which they are preferred."""
    active = os.environ.get("VIRTUAL_ENV", "")
    if active:
        yield _Place(f"{active}/bin/python", "PATH")
    pyenv = Path(os.environ.get("PYENV_ROOT") or "~/.pyenv").expanduser()
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if Path(folder) == pyenv / "shims":
            # Each of the others starts one of the versions below, slowly, or says that it does not.
            yield _Place(f"{folder}/python3", "PATH")
        elif folder.startswith("/"):
            yield from _in_folder(Path(folder), "PATH")
    for version in sorted(_entries(pyenv / "versions"), key=_by_number, reverse=True):
        yield _Place(str(pyenv / "versions" / version / "bin" / "python"), "pyenv")
    for path in uv_pythons.installed():
        yield _Place(path, "uv")
    for name in _ALWAYS:
        yield from _in_folder(Path(name), name)
    yield _Place(_OWN, "envcheck's own")


def _in_folder(folder: Path, found_in: str) -> Iterator[_Place]:
    names = [name for name in _entries(folder) if _NAME.fullmatch(name)]
    for name in sorted(names, key=_by_number):  # "python3" first: what its user calls Python
        yield _Place(str(folder / name), found_in)


def _entries(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are what is wanted
    except OSError:
        return []


def _by_number(name: str) -> list[int]:
    return [int(digits) for digits in re.findall(r"\d+", name)]


def _ask_all(places: list[_Place]) -> tuple[list[Interpreter], dict[str, str]]:
    """(those that answered, each once; why the others did not, by path)."""
    files = {_identity(place.path): place for place in reversed(places) if _runs(place.path)}
    ordered = sorted(files.values(), key=places.index)
    answers = ask(place.path for place in ordered)
    bases = {
        place.path: base
        for place in ordered
        if isinstance(answer := answers[place.path], InterpreterAnswer)
        and answer.is_environment
        and (base := _base_of(answer))
    }
    answers |= ask(base for base in bases.values() if base not in answers)
    found: dict[str, Interpreter] = {}
    silence = {place.path: "cannot be run: it is not an executable file" for place in places}
    for place in ordered:
        path = bases.get(place.path, place.path)
        answer = answers[path]
        if isinstance(answer, NoAnswer):
            silence[place.path] = answer.why
            continue
        path = _own_path(path, answer)
        found.setdefault(str(Path(path).resolve()), _interpreter(path, place.found_in, answer))
    return list(found.values()), silence


def _runs(path: str) -> bool:
    return Path(path).is_file() and os.access(path, os.X_OK)


def _identity(path: str) -> str:
    """What one interpreter under several names has in common; a version manager's shims have not."""
    real = Path(path).resolve()
    return str(real) if real.name.startswith("python") else path


def _base_of(answer: InterpreterAnswer) -> str:
    """The interpreter that an environment was made with; "" where it is gone."""
    minor = ".".join(answer.version.split(".")[:2])
    beside = [f"{answer.base_prefix}/bin/python{end}" for end in (minor, "3", "")]
    for path in [answer.base_executable, *beside]:
        if path and path != answer.executable and _runs(path):
            return path
    return ""


def _own_path(path: str, answer: InterpreterAnswer) -> str:
    """The path as it was found; the interpreter's own where that is a script which starts it."""
    if not _runs(answer.executable) or Path(path).resolve() == Path(answer.executable).resolve():
        return path
    return answer.executable


def _interpreter(path: str, found_in: str, answer: InterpreterAnswer) -> Interpreter:
    machine = answer.machine if answer.bits == 64 else _NARROW.get(answer.machine, answer.machine)
    library, _, glibc = answer.libc.partition(" ")
    cpython = answer.implementation == "CPython"
    return Interpreter(
        path=path,
        version=answer.version,
        found_in=found_in,
        implementation=answer.implementation,
        architecture=machine,
        libc=library or ("musl" if "musl" in f"{answer.build} {answer.abi}" else "unknown"),
        tags=tags(answer.version, answer.abi, machine, glibc, debug=answer.debug)
        if cpython
        else [],
        has_venv=len(answer.modules) == 2,
        is_environment=answer.is_environment,
        free_threaded=answer.free_threaded,
    )
