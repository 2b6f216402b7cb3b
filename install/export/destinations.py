"""The Pythons that a bundle is made for, on the machines that it goes to."""

from __future__ import annotations

import platform
from pathlib import Path

import msgspec

from ...data.system_pythons import SystemPython, system_pythons
from ...exit_codes import UsageError
from ...facts.base import known
from ...facts.snapshot import Snapshot
from ..pythons import finding
from ..pythons.interpreter import Interpreter, asked_version, number, tags

# For a Python of no system that is known: the oldest glibc among those.
_OLDEST_GLIBC = min((row.glibc for row in system_pythons()), key=number)


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """One Python, on machines like this one or on the one that a Snapshot describes."""

    interpreter: Interpreter
    systems: list[str]  # "Debian 12", "machine.json"; none for a Python that was named
    machine: str = ""  # the file of its Snapshot; "": like this machine
    required: bool = False  # named by the user: the bundle must serve it

    @property
    def minor(self) -> str:
        return self.interpreter.minor


class Destinations(msgspec.Struct, frozen=True, kw_only=True):
    """What the user named; nothing: the systems that are supported."""

    pythons: list[str] = []  # versions
    machines: dict[str, Snapshot] = {}  # by file
    own: str = ""  # --python: the stack's alone, a version or an interpreter's path

    @property
    def architecture(self) -> str:
        """Raises UsageError for machines of several."""
        found = {
            architecture: name
            for name, snapshot in self.machines.items()
            if (architecture := _host(snapshot, "architecture"))
        }
        if len(found) > 1:
            (one, first), (other, second) = list(found.items())[:2]
            raise UsageError(
                f"{first} is of a machine with {one}, and {second} of one with {other}",
                "make a bundle for each architecture",
            )
        return next(iter(found), platform.machine())

    def all(self) -> list[Destination]:
        """Raises UsageError for what is no Python, or is one that no wheel is for."""
        if self.machines:
            return [one for name in self.machines for one in self._of_machine(name)]
        if self.pythons:
            return [self._named(python) for python in dict.fromkeys(self.pythons)]
        return self._systems()

    def of_stack(self) -> list[Destination]:
        """The same; where --python names one, that is the stack's, whatever envcheck runs under."""
        if not self.own:
            return self.all()
        if asked_version(self.own):
            return [self._named(self.own, "--python")]
        named = finding.interpreters(self.own)[0]
        return [Destination(interpreter=away(named), systems=[], required=True)]

    def with_python(self, minor: str) -> Interpreter:
        """An interpreter of this version that runs on all of them."""
        glibcs = [_host(snapshot, "glibc") for snapshot in self.machines.values()]
        oldest = min((glibc for glibc in glibcs if glibc), key=number, default=_OLDEST_GLIBC)
        return interpreter(minor, oldest, self.architecture)

    def _named(self, python: str, option: str = "--for-python") -> Destination:
        version = asked_version(python)
        if version.count(".") == 0:
            raise UsageError(
                f"{option} {python}: this is not a version of Python", "a version looks like 3.11"
            )
        minor = ".".join(version.split(".")[:2])
        there = [row.glibc for row in system_pythons() if row.python == minor]
        glibc = min(there, key=number, default=_OLDEST_GLIBC)
        named = interpreter(minor, glibc, self.architecture)
        return Destination(interpreter=named, systems=[], required=True)

    def _systems(self) -> list[Destination]:
        """One for each version of Python, for the oldest C library among its systems."""
        rows: dict[str, list[SystemPython]] = {}
        for row in system_pythons():
            rows.setdefault(row.python, []).append(row)
        found = []
        for minor in sorted(rows, key=number):
            glibc = min((row.glibc for row in rows[minor]), key=number)
            one = interpreter(minor, glibc, self.architecture)
            found.append(Destination(interpreter=one, systems=[row.system for row in rows[minor]]))
        return found

    def _of_machine(self, name: str) -> list[Destination]:
        """The Python of its distribution, and the one that wrote the Snapshot."""
        snapshot = self.machines[name]
        system = (_host(snapshot, "os_id"), _host(snapshot, "os_version"))
        rows = [row for row in system_pythons() if (row.id, row.version) == system]
        glibc = _host(snapshot, "glibc") or (rows[0].glibc if rows else _OLDEST_GLIBC)
        seen = asked_version(snapshot.machine.collector.python)
        minors = [row.python for row in rows] + [".".join(seen.split(".")[:2])] * ("." in seen)
        return [
            Destination(
                interpreter=interpreter(minor, glibc, self.architecture),
                systems=[Path(name).name],
                machine=name,
            )
            for minor in dict.fromkeys(minors)
        ]


def interpreter(minor: str, glibc: str, architecture: str) -> Interpreter:
    """A CPython of that version on another machine."""
    flavour = "m" if number(minor) < (3, 8) else ""
    abi = f"cpython-{minor.replace('.', '')}{flavour}"
    return Interpreter(
        path=f"python{minor}",
        version=f"{minor}.0",
        found_in="another machine",
        architecture=architecture,
        tags=tags(minor, abi, architecture, glibc),
    )


def away(interpreter: Interpreter) -> Interpreter:
    """By a path that is none of this machine's: uv is then told its version and platform."""
    return msgspec.structs.replace(interpreter, path=f"there:{interpreter.path}")


def _host(snapshot: Snapshot, name: str) -> str:
    probe = snapshot.machine.host
    value = None if probe is None or probe.facts is None else known(getattr(probe.facts, name))
    return value or ""
