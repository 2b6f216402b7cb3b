"""Which machines get what, and why others get nothing: each is judged as `envcheck install` would judge it
there, by its Snapshot and its Pythons. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from packaging.specifiers import SpecifierSet

from ... import safe_text
from ...checks.engine import diagnose
from ...exit_codes import Cannot, EnvcheckError, ExitCode
from ...facts.snapshot import Snapshot
from ...install.catalogue.model import Stack
from ...install.fit import select
from ...install.fit.disk_space import space_of_snapshot
from ...install.fit.models import Choice
from ...install.pythons.interpreter import Interpreter, number
from ...install.pythons.probe import answer_in
from ...install.request import Request
from .. import hosts
from .model import FitGroup, LeftOutMachines

ROOM = "HOST-005"
# Of a home: envcheck's bundle and its environment, measured as 144 MB, and as much again for the copying.
OWN_MIB = 300
_MANYLINUX = re.compile(r"-manylinux_([0-9]{1,3})_([0-9]{1,3})_")


class Surveyed(NamedTuple):
    """A machine that may get something. snapshot: None where it did not answer, and reason says why."""

    name: str
    snapshot: Snapshot | None
    interpreters: Sequence[Interpreter]
    reason: str = ""


class Fitting(NamedTuple):
    """A group of the plan, with what its bundle is made from. runners: one interpreter for each minor
    version that envcheck runs with there. python: which that is, by machine."""

    group: FitGroup
    choice: Choice
    runners: dict[str, Interpreter]
    python: dict[str, str]


class _Fit(NamedTuple):
    name: str
    choice: Choice
    python: Interpreter  # of the choice
    runner: Interpreter


def interpreters(machine: str, answers: Iterable[Sequence[str]]) -> list[Interpreter]:
    """A machine's Pythons, from its (path, answer) pairs; a pair without a valid answer is skipped."""
    found: dict[str, Interpreter] = {}
    for path, text in answers:
        answer = answer_in(text.encode())
        if answer is None:
            continue
        one = answer.elsewhere(path, machine)
        if one.path.startswith("/") and one.path.isprintable() and len(one.path) < 4096:
            found.setdefault(one.path, one)
    return list(found.values())


def plan(
    request: Request,
    machines: Iterable[Surveyed],
    own_python: str,
    answers: Callable[[Stack], str],
) -> tuple[list[Fitting], list[LeftOutMachines]]:
    """Groups of machines that get the same, the largest first; and those left out, by reason. own_python:
    which Pythons envcheck itself runs with (">=3.10"). answers: as of select.choose."""
    fits: dict[tuple[str, ...], list[_Fit]] = {}
    against: dict[tuple[str, str, int], list[str]] = {}
    for machine in machines:
        try:
            fit = _judge(request, machine, own_python, answers)
        except Cannot as error:
            code = ExitCode.CANNOT if machine.snapshot else ExitCode.COULD_NOT_LOOK
            key = (str(error), error.hint, int(code))
            against.setdefault(key, []).append(machine.name)
        except EnvcheckError:  # of an index, say: nothing that a machine has answered
            raise
        except Exception as error:  # noqa: BLE001 - what one machine answered costs that machine alone
            reason = f"envcheck crashed on its answer: {type(error).__name__}: {error}"
            key = (safe_text.one_line(reason), "", int(ExitCode.COULD_NOT_LOOK))
            against.setdefault(key, []).append(machine.name)
        else:
            fits.setdefault(_group_key(fit), []).append(fit)
    ordered = sorted(fits.values(), key=lambda group: -len(group))
    left_out = [
        LeftOutMachines(
            reason=reason, hint=hint, machines=names, hosts=hosts.folded(names), exit_code=code
        )
        for (reason, hint, code), names in against.items()
    ]
    return [_fitting(f"envcheck_fit_{n}", group) for n, group in enumerate(ordered, 1)], left_out


def _judge(
    request: Request, machine: Surveyed, own_python: str, answers: Callable[[Stack], str]
) -> _Fit:
    """Raises Cannot, with what speaks against it."""
    if machine.snapshot is None:
        raise Cannot(machine.reason)
    _has_room(machine.snapshot)
    runner = _runner(machine, own_python)
    choice = select.choose(
        request,
        machine.snapshot,
        machine.interpreters,
        [],  # nothing can be got there
        answers,
        space=space_of_snapshot(machine.snapshot),
    )
    assert choice.candidate.interpreter is not None
    return _Fit(machine.name, choice, choice.candidate.interpreter, runner)


def _has_room(snapshot: Snapshot) -> None:
    """By the doctor's check, and for envcheck itself, which comes into the home. Raises Cannot."""
    (room,) = (one for one in diagnose(snapshot, [ROOM]).results if one.code == ROOM)
    for finding in room.findings:
        if finding.level == "fail":
            raise Cannot(
                f"{ROOM}: {finding.message}", finding.remedy.text if finding.remedy else ""
            )
    home = space_of_snapshot(snapshot, "home")
    if home is not None and home.free_mib is not None and home.free_mib < OWN_MIB:
        raise Cannot(
            f"{home.path} has {home.free_mib} MiB free, and envcheck needs {OWN_MIB} there"
        )


def _runner(machine: Surveyed, own_python: str) -> Interpreter:
    """What envcheck itself runs with there: the newest, one that can make environments before others."""
    wanted = SpecifierSet(own_python)
    able = [
        one
        for one in machine.interpreters
        if one.implementation == "CPython"
        and not one.free_threaded
        and not one.is_prerelease
        and wanted.contains(one.version)
    ]
    if not able:
        minors = sorted({one.minor for one in machine.interpreters}, key=number)
        there = f"it has {', '.join(minors)}" if minors else "it has none"
        newest = own_python.removeprefix(">=")
        raise Cannot(
            f"envcheck itself needs Python {newest} or newer there, and {there}",
            hint=f"install python{newest} there; the environment itself may have an older one",
        )
    return max(able, key=lambda one: (one.has_venv, number(one.minor)))


def _group_key(fit: _Fit) -> tuple[str, ...]:
    release = fit.choice.candidate.release.release
    return (fit.choice.stack.name, release, fit.python.minor, fit.python.architecture)


def _fitting(name: str, fits: list[_Fit]) -> Fitting:
    """One choice for all of them: for the oldest C library, whose wheels the others take, too."""
    first = min(fits, key=lambda fit: _glibc(fit.python))
    runners: dict[str, Interpreter] = {}
    for one in sorted((fit.runner for fit in fits), key=_glibc, reverse=True):
        runners[one.minor] = one  # the oldest C library's stays
    candidate = first.choice.candidate
    names = [fit.name for fit in fits]
    group = FitGroup(
        name=name,
        stack=first.choice.stack.name,
        release=candidate.release.release,
        python=first.python.minor,
        architecture=first.python.architecture,
        machines=names,
        hosts=hosts.folded(names),
        runners=sorted(runners, key=number),
        reasons=first.choice.reasons,
        notes=candidate.notes,
    )
    return Fitting(group, first.choice, runners, {fit.name: fit.runner.path for fit in fits})


def _glibc(interpreter: Interpreter) -> tuple[int, int]:
    """Of the newest manylinux that it takes; the first tags tell."""
    for tag in interpreter.tags:
        if found := _MANYLINUX.search(tag):
            return int(found[1]), int(found[2])
    return (0, 0)
