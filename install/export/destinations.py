"""The machines that a bundle goes to, and the Pythons that its packages are for."""

from __future__ import annotations

import platform

import msgspec

from ...data.system_pythons import system_pythons
from ...exit_codes import UsageError
from ...facts.base import known
from ...facts.snapshot import Snapshot
from ..pythons import finding
from ..pythons.interpreter import Interpreter, asked_version, number, plain_tags

# For a Python of no system that is known: the oldest glibc among those.
_OLDEST_GLIBC = min((row.glibc for row in system_pythons()), key=number)
_MINORS = [
    f"3.{minor}" for minor in range(6, 20)
]  # a release knows which of them it has wheels for


class Destinations(msgspec.Struct, frozen=True, kw_only=True):
    """Without any words, machines like this one; the bundle carries its own Python."""

    machines: dict[str, Snapshot] = {}  # by file
    python: str = ""  # a version or an interpreter's path

    @property
    def architecture(self) -> str:
        """Raises UsageError for machines of several."""
        found = {_host(snapshot, "architecture"): name for name, snapshot in self.machines.items()}
        found.pop("", None)
        if len(found) > 1:
            (one, first), (other, second) = list(found.items())[:2]
            raise UsageError(
                f"{first} is of a machine with {one}, and {second} of one with {other}",
                "make a bundle for each architecture",
            )
        return next(iter(found), platform.machine())

    def of_stack(self) -> list[Interpreter]:
        """Of which the newest that a release has wheels for is taken. Raises UsageError for what is none."""
        return [self.with_python(minor) for minor in self._minors or _MINORS]

    def of_envcheck(self) -> list[Interpreter]:
        """Those of known systems, and those that were named."""
        rows = sorted(system_pythons(), key=lambda row: number(row.glibc))
        glibcs = {row.python: row.glibc for row in reversed(rows)}
        return [
            interpreter(minor, glibcs.get(minor, _OLDEST_GLIBC), self.architecture)
            for minor in dict.fromkeys([*glibcs, *self._minors])
        ]

    @property
    def _minors(self) -> list[str]:
        """Of the Python that was named."""
        version = asked_version(self.python)
        if not self.python or version.count("."):
            return [".".join(version.split(".")[:2])] if self.python else []
        if version:
            raise UsageError(
                f"--python {self.python}: this is not a version of Python",
                "a version looks like 3.11",
            )
        return [finding.interpreters(self.python)[0].minor]

    def with_python(self, minor: str) -> Interpreter:
        """An interpreter of this version that runs on all of them."""
        glibcs = [_host(snapshot, "glibc") for snapshot in self.machines.values()]
        oldest = min((glibc for glibc in glibcs if glibc), key=number, default=_OLDEST_GLIBC)
        return interpreter(minor, oldest, self.architecture)


def interpreter(minor: str, glibc: str, architecture: str) -> Interpreter:
    """A CPython of that version on another machine."""
    return Interpreter(
        path=f"python{minor}",
        version=f"{minor}.0",
        found_in="another machine",
        architecture=architecture,
        tags=plain_tags(minor, architecture, glibc),
    )


def away(interpreter: Interpreter) -> Interpreter:
    """By a path that is none of this machine's: uv then gets its version and platform."""
    return msgspec.structs.replace(interpreter, path=f"there:{interpreter.path}")


def _host(snapshot: Snapshot, name: str) -> str:
    probe = snapshot.machine.host
    value = None if probe is None or probe.facts is None else known(getattr(probe.facts, name))
    return value or ""
