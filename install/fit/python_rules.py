"""Which interpreter a release gets: one that is there, or one that uv can get."""

from __future__ import annotations

from collections.abc import Sequence

from ..pythons.interpreter import Interpreter, asked_version, listed, number
from ..request import Request
from .models import Candidate, FitMachine


def judge(
    candidate: Candidate,
    machine: FitMachine,
    interpreters: Sequence[Interpreter] | None,
    obtainable: Sequence[str],
    request: Request,
) -> None:
    """Give the release its interpreter, or the minor version to get.

    The newest version that the release has wheels for is taken, one that is there before one that would
    have to be got. ``interpreters`` is None where it is not known which there are.
    """
    versions = candidate.release.python
    if interpreters is None:
        needs = listed(versions, "or")
        candidate.note(f"Which Pythons this machine has is not known; it needs {needs}.")
        return
    wanted = asked_version(request.python)  # of a path, no other interpreter was looked for
    asked = [one for one in interpreters if not wanted or one.matches(wanted)]
    found = [one for one in asked if one.minor in versions and not _unable(one, machine)]
    to_get = [
        one
        for one in versions
        if one in obtainable
        and not request.offline
        and (not request.python or wanted in (one, one.partition(".")[0]))
    ]
    if found:
        # Of one minor version, the one that was found first.
        candidate.interpreter = max(found, key=lambda one: number(one.minor))
    elif to_get:
        candidate.python_to_get = max(to_get, key=number)
        candidate.note(f"No Python {candidate.python_to_get} is installed: uv downloads it.")
    else:
        there = _there(versions, machine, interpreters, asked, request)
        hint = _way_out(max(versions, key=number), request)
        candidate.refuse("python", f"needs Python {listed(versions, 'or')}, and {there}", hint)


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


def _there(
    versions: Sequence[str],
    machine: FitMachine,
    interpreters: Sequence[Interpreter],
    asked: Sequence[Interpreter],
    request: Request,
) -> str:
    """What is there in place of what is needed."""
    for one in asked:
        if one.minor in versions:
            return f"{one.path} {_unable(one, machine)}"
    if request.python:
        those = listed([one.version for one in asked])
        return f"--python {request.python} {f'is {those}' if those else 'is not here'}"
    minors = sorted({one.minor for one in interpreters}, key=number)
    return f"this machine has {listed(minors) if minors else 'none'}"


def _way_out(newest: str, request: Request) -> str:
    """How to come by a Python that uv does not get."""
    if request.python:
        return "without --python, envcheck looks for one that fits"
    if request.offline:
        return f"install Python {newest} with the system's packages, or name one with --python"
    return (
        f"conda and pyenv have Python {newest}: conda create --yes --prefix ~/python{newest}"
        f" python={newest}, then --python ~/python{newest}/bin/python"
    )
