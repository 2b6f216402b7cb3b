"""Which interpreter a release gets: one that is there, or one that uv can get."""

from __future__ import annotations

from collections.abc import Sequence

from ..catalogue.model import Release
from ..pythons.interpreter import Interpreter, asked_version, listed, number
from ..request import Request
from .machine import FitMachine
from .models import Reasons

# virtualenv makes environments from this version on; an older interpreter makes its own.
_VIRTUALENV_FROM = (3, 9)


def python(
    release: Release,
    machine: FitMachine,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    request: Request,
    reasons: Reasons,
) -> tuple[Interpreter | None, str]:
    """(the interpreter, the minor version to get); at most one of the two.

    The newest version that the release has wheels for is taken, one that is there before one that would
    have to be got. ``interpreters`` is None where it is not known which there are.
    """
    if interpreters is None:
        needs = listed(release.python, "or")
        reasons.note(f"Which Pythons this machine has is not known; it needs {needs}.")
        return None, ""
    asked = [one for one in interpreters if _asked_for(one, request)]
    able = [one for one in asked if not _unable(one, machine)]
    found = [one for one in able if one.minor in release.python]
    if found:
        # Of one minor version, the one that was found first.
        taken = max(found, key=lambda one: (number(one.minor), one.has_venv))
        if not taken.has_venv and number(taken.minor) < _VIRTUALENV_FROM:
            reasons.note(
                f"{taken.path} lacks venv or ensurepip, which the environment is made with: where that"
                f" fails, install python{taken.minor}-venv or name another one with --python."
            )
        return taken, ""
    to_get = [] if request.offline else [one for one in release.python if one in obtainable]
    if request.python:
        version = asked_version(request.python)
        to_get = [one for one in to_get if version in (one, one.partition(".")[0])]
    if to_get:
        newest = max(to_get, key=number)
        reasons.note(f"No Python {newest} is installed: uv downloads it.")
        return None, newest
    _refuse(release, machine, interpreters, asked, obtainable, request, reasons)
    return None, ""


def _asked_for(one: Interpreter, request: Request) -> bool:
    """Whether `--python` leaves it: a path has left no other one."""
    version = asked_version(request.python)
    return not version or one.matches(version)


def _unable(one: Interpreter, machine: FitMachine) -> str:
    """Why no wheel of ours works in it, whatever its version; "" where they do."""
    if one.implementation != "CPython":
        return f"is {one.implementation}"
    if one.free_threaded:
        return "is free-threaded"
    if machine.architecture and one.architecture != machine.architecture:
        return f"is built for {one.architecture}"
    if one.is_prerelease:
        return f"is the pre-release {one.version}"
    return "" if one.libc in ("glibc", "unknown") else f"is built for {one.libc}"


def _refuse(
    release: Release,
    machine: FitMachine,
    interpreters: Sequence[Interpreter],
    asked: Sequence[Interpreter],
    obtainable: Sequence[str],
    request: Request,
    reasons: Reasons,
) -> None:
    needs = f"needs Python {listed(release.python, 'or')}"
    unable = [one for one in asked if one.minor in release.python and _unable(one, machine)]
    if unable:
        there = f"{unable[0].path} {_unable(unable[0], machine)}"
    elif request.python:
        versions = listed([one.version for one in asked])
        there = f"--python {request.python} " + (f"is {versions}" if versions else "is not here")
    else:
        minors = sorted({one.minor for one in interpreters}, key=number)
        there = f"this machine has {listed(minors)}" if minors else "this machine has none"
    reasons.refuse("python", f"{needs}, and {there}", _way_out(release, obtainable, request))


def _way_out(release: Release, obtainable: Sequence[str], request: Request) -> str:
    """How to come by a Python that uv does not get."""
    newest = max(release.python, key=number)
    if request.python:
        return "without --python, envcheck looks for one that fits"
    if request.offline:
        return (
            f"install Python {newest} with the system's packages, or name one:"
            f" --python /path/to/python{newest}"
        )
    if not obtainable:
        return (
            f"uv would get Python {newest}, but its settings forbid that (UV_OFFLINE,"
            f" UV_PYTHON_DOWNLOADS, UV_PYTHON_PREFERENCE or uv.toml): uv python install {newest}, or name"
            f" one: --python /path/to/python{newest}"
        )
    return (
        f"uv has no Python {newest}, but conda has: conda create --yes --prefix ~/python{newest}"
        f" python={newest}, then --python ~/python{newest}/bin/python; or pyenv install {newest},"
        " which envcheck finds"
    )
