"""Builds a version for the transaction: the other parts' work, put in a row."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ...exit_codes import Cannot, CouldNotLook
from ..fit.models import Choice
from ..lockfile import Lockfile
from ..plan.models import StepName
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..store.fetch_rate import Meter
from ..transaction.interfaces import BuildResult, Details, Stage
from ..transaction.layout import Version
from . import environment, toolchain
from .added import Added

if TYPE_CHECKING:
    from ..store.fetch import Fetcher


class WheelBuilder:
    """The transaction's Builder for a locked environment.

    located: the lock with the addresses that its files are fetched from. public: the URL of the public
    index, without credentials. installer: "uv 0.13.9". added: to the version before, by its user.
    """

    def __init__(
        self,
        choice: Choice,
        lock: Lockfile,
        located: Lockfile,
        request: Request,
        fetcher: Fetcher,
        meter: Meter,
        public: str,
        installer: str,
        step: Callable[[StepName], None],
        added: Added,
    ) -> None:
        self._choice = choice
        self._lock = lock
        self._located = located
        self._request = request
        self._fetcher = fetcher
        self._meter = meter
        self._public = public
        self._installer = installer
        self._step = step
        self._added = added
        self._interpreter = choice.candidate.interpreter

    def about(self) -> Details:
        return {}

    def stages(self) -> Sequence[Stage]:
        return [
            Stage("python", self._get_python),
            Stage("fetched", self._fetch),
            Stage("created", self._create),
            Stage("installed", self._install),
            Stage("configured", self._configure),
        ]

    def result(self) -> BuildResult:
        python = self._python()
        return BuildResult(
            python=python.version,
            interpreter=python.path,
            installer=self._installer,
            added={package.name: package.version for package in self._added.packages},
            notes=self._added.notes,
        )

    def _get_python(self, version: Version) -> Details:
        return {"interpreter": self._python().path}

    def _python(self) -> Interpreter:
        if self._interpreter is None:
            self._step("python")
            self._interpreter = get_python(self._choice.candidate.python_to_get, self._request)
        return self._interpreter

    def _fetch(self, version: Version) -> Details:
        """Begins; the installer takes the files as they come."""
        self._step("fetch")
        self._fetcher.want_all(self._located.files)
        return {}

    def _create(self, version: Version) -> Details:
        self._step("create")
        environment.create(version.directory, self._python(), prompt=self._lock.stack)
        return {}

    def _install(self, version: Version) -> Details:
        self._step("install")
        toolchain.install(
            version.directory, self._located, self._choice.stack, self._request, self._fetcher
        )
        self._fetcher.wait()
        self._meter.keep()
        return {}

    def _configure(self, version: Version) -> Details:
        self._step("configure")
        environment.configure(version.directory, self._choice.stack, self._lock, self._public)
        return {}


def get_python(minor: str, request: Request) -> Interpreter:
    """Have uv get it, and find it. Raises CouldNotLook, or Cannot where there is no network to use."""
    if request.offline:
        raise Cannot(
            f"Python {minor} is not on this machine, and without a network it cannot be downloaded",
            f"install Python {minor} by the distribution's packages, and try again",
        )
    toolchain.get_python(minor)
    found = finding.interpreters(minor)
    if not found:
        raise CouldNotLook(f"uv reported success for Python {minor}, but it cannot be found")
    return next((one for one in found if one.found_in == "uv"), found[0])
