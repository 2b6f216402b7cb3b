"""Builds a version for the transaction: the other parts' work, put in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import msgspec

from ...exit_codes import Cannot, CouldNotLook
from .. import pylock
from ..fit.models import Choice
from ..lockfile import Downloads, LockedPackage, Lockfile
from ..plan.models import StepName
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store.progress import Meter
from ..transaction.interfaces import Artifact, Stage
from ..transaction.layout import Version
from ..transaction.record import Built
from . import environment, installing, uv

if TYPE_CHECKING:
    from ..store.fetch import Fetcher


class ResolvedWheels(msgspec.Struct, frozen=True, kw_only=True):
    """What will be installed, to the byte. public: the public index, without credentials."""

    choice: Choice
    lock: Lockfile
    downloads: Downloads
    added: list[LockedPackage] = []  # beside the lock's
    notes: list[str] = []  # what becomes of all that the user has added
    public: str


class WheelBuilder:
    """The transaction's Builder for a locked environment. installer: "uv 0.13.9"."""

    def __init__(
        self,
        resolved: ResolvedWheels,
        request: Request,
        installer: str,
        fetcher: Fetcher,
        meter: Meter,
        step: Callable[[StepName], None],
    ) -> None:
        self._resolved = resolved
        self._request = request
        self._installer = installer
        self._fetcher = fetcher
        self._meter = meter
        self._step = step
        self._interpreter = resolved.choice.candidate.interpreter

    def stages(self) -> Sequence[Stage]:
        return [
            ("python", self._get_python),
            ("fetched", self._fetch),
            ("created", self._create),
            ("installed", self._install),
            ("configured", self._configure),
        ]

    def result(self) -> Built:
        python = self._python()
        return Built(
            python=python.version,
            interpreter=python.path,
            installer=self._installer,
            added={package.name: package.version for package in self._resolved.added},
            notes=self._resolved.notes,
        )

    def _get_python(self, version: Version) -> None:
        self._python()

    def _python(self) -> Interpreter:
        if self._interpreter is None:
            self._step("python")
            self._interpreter = get_python(
                self._resolved.choice.candidate.python_to_get, self._request
            )
        return self._interpreter

    def _fetch(self, version: Version) -> None:
        """Begins; the installer takes the files as they come."""
        self._fetcher.want_all(self._resolved.downloads.files)

    def _create(self, version: Version) -> None:
        self._step("create")
        environment.create(version.directory, self._python(), prompt=self._resolved.lock.stack)

    def _install(self, version: Version) -> None:
        self._step("fetch")
        resolved = self._resolved
        stack = resolved.choice.stack
        installing.install(
            version.directory,
            resolved.downloads,
            stack,
            self._request,
            self._fetcher,
            fetched=lambda: self._step("install"),
        )
        self._fetcher.wait()
        self._meter.keep()

    def _configure(self, version: Version) -> None:
        self._step("configure")
        environment.configure(
            version.directory,
            self._resolved.choice.stack,
            self._resolved.lock,
            self._resolved.public,
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


def get_python(minor: str, request: Request) -> Interpreter:
    """Have uv get it, and find it. Raises CouldNotLook, or Cannot where there is no network to use."""
    if request.offline:
        raise Cannot(
            f"Python {minor} is not on this machine, and without a network it cannot be downloaded",
            f"install Python {minor} by the distribution's packages, and try again",
        )
    uv.get_python(minor)
    found = finding.interpreters(minor)
    if not found:
        raise CouldNotLook(f"uv reported success for Python {minor}, but it cannot be found")
    return next((one for one in found if one.found_in == "uv"), found[0])
