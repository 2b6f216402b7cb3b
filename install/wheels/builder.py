"""Builds a wheel version for the transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import CouldNotLook
from .. import pylock
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..plan.models import WheelPlan
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..transaction.interfaces import Artifact, Stage
from ..transaction.layout import Version
from ..transaction.record import Built
from . import environment, installing, uv

if TYPE_CHECKING:
    from ..mode import Reporter


class ResolvedWheels(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, to the byte. public: the public index, without credentials."""

    choice: Choice
    lock: Lockfile
    public: str


class WheelBuilder:
    """The transaction's Builder for a locked environment."""

    def __init__(
        self,
        resolved: ResolvedWheels,
        plan: WheelPlan,
        source: installing.FileSource,
        reporter: Reporter,
    ) -> None:
        self._resolved = resolved
        self._plan = plan
        self._source = source
        self._reporter = reporter
        self._python: Interpreter | None = None

    def stages(self) -> Sequence[Stage]:
        return [
            ("python", self._get_python),
            ("created", self._create),
            ("installed", self._install),
            ("configured", self._configure),
        ]

    def result(self) -> Built:
        assert self._python is not None, "the first stage"
        return Built(
            python=self._python.version,
            interpreter=self._python.path,
            installer=self._plan.installer,
        )

    def _get_python(self, version: Version) -> None:
        candidate = self._resolved.choice.candidate
        self._python = candidate.interpreter
        if self._python is None:
            self._reporter.step("python")
            self._python = get_python(candidate.python_to_get)

    def _create(self, version: Version) -> None:
        assert self._python is not None, "the stage before"
        self._reporter.step("create")
        environment.create(version.directory, self._python, prompt=self._resolved.lock.stack)

    def _install(self, version: Version) -> None:
        self._reporter.step("fetch")
        target = installing.InstallTarget(version.directory, self._source, self._seen)
        installing.install(target, self._resolved.lock, self._resolved.choice.stack)

    def _seen(self, lines: list[str]) -> None:
        """uv's own progress."""
        if any(line.startswith("Prepared ") for line in lines):
            self._reporter.step("install")
        elif lines:
            self._reporter.progress(lines[-1].strip())

    def _configure(self, version: Version) -> None:
        self._reporter.step("configure")
        resolved = self._resolved
        environment.configure(
            version.directory, resolved.choice.stack, resolved.lock, resolved.public
        )


def artifact(lock: Lockfile) -> Artifact:
    """The lock as what a transaction installs."""
    installed = {package.file.sha256 for package in lock.packages}
    building = [package for package in lock.building if package.file.sha256 not in installed]
    return Artifact(
        file_name="pylock.toml",
        text=pylock.text(lock),
        digest=pylock.digest(lock),
        versions={package.name: package.version for package in lock.packages},
        building={package.name: package.version for package in building},
    )


def get_python(minor: str) -> Interpreter:
    """Have uv get it, and find it. Raises CouldNotLook."""
    uv.get_python(minor)
    found = finding.interpreters(minor)
    if not found:
        raise CouldNotLook(f"uv reported success for Python {minor}, but it cannot be found")
    return next((one for one in found if one.found_in == "uv"), found[0])
