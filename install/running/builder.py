"""Builds a version for the transaction: the other parts' work, put in a row."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import Cannot, CouldNotLook
from ..fit.choice import Choice
from ..index.server import IndexServer
from ..index.views import ClosedIndex
from ..lock.lock import Lock
from ..pythons import finding
from ..pythons.interpreter import Interpreter
from ..request import Request
from ..tools import environment, toolchain
from .rate import Meter

if TYPE_CHECKING:
    from ..store.fetch import Fetcher


class WheelBuilder:
    """The transaction's Builder for a locked environment.

    located: the lock with the addresses that its files are fetched from. public: the URL of the public
    index, without credentials.
    """

    def __init__(
        self,
        choice: Choice,
        lock: Lock,
        located: Lock,
        request: Request,
        fetcher: Fetcher,
        meter: Meter,
        public: str,
        say: Callable[[str], None],
    ) -> None:
        self._choice = choice
        self._lock = lock
        self._located = located
        self._request = request
        self._fetcher = fetcher
        self._meter = meter
        self._public = public
        self._say = say
        self._interpreter = choice.candidate.interpreter

    def get_python(self) -> Interpreter:
        if self._interpreter is None:
            self._say(f"getting Python {self._choice.candidate.python_to_get}")
            self._interpreter = get_python(self._choice.candidate.python_to_get, self._request)
        return self._interpreter

    def fetch(self) -> None:
        """Begins; the installer takes the files as they come."""
        self._fetcher.want_all(self._located.files)

    def create(self, directory: Path) -> None:
        environment.create(directory, self.get_python(), prompt=self._lock.stack)

    def install(self, directory: Path) -> None:
        self._say(f"fetching and installing {len(self._lock.packages)} packages")
        view = ClosedIndex(self._located, self._fetcher)
        with IndexServer(view) as server:
            toolchain.install(
                directory,
                self._located,
                self._choice.stack,
                self._request,
                server=server,
                files=view,
            )
            self._fetcher.wait()
        self._meter.keep()

    def configure(self, directory: Path) -> None:
        environment.configure(directory, self._choice.stack, self._lock, self._public)
        self._say("verifying it with the doctor")


def get_python(minor: str, request: Request) -> Interpreter:
    """Have uv get it, and find it. Raises CouldNotLook, or Cannot where there is no network to use."""
    if request.offline:
        raise Cannot(
            f"Python {minor} is not on this machine, and without a network it cannot be got",
            f"install Python {minor} by the distribution's packages, and try again",
        )
    toolchain.get_python(minor)
    found = finding.interpreters(minor)
    if not found:
        raise CouldNotLook(f"uv says that it has got Python {minor}, and it is not to be found")
    return next((one for one in found if one.found_in == "uv"), found[0])
