"""Looks for secrets where they must not be: command lines, engines' environments, files."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from installing import Home
from podman import PodmanWorld

_PAUSE = 0.01  # seconds between two looks at the processes


class Watch:
    """While its ``with`` lasts, processes are looked at; ``seen`` looks at the files too."""

    def __init__(self, secrets: Sequence[str], home: Home, world: PodmanWorld) -> None:
        self._secrets = [secret.encode() for secret in secrets]
        self._folders = [home.folder, world.folder / "tmp"]
        self._places: set[str] = set()
        self.engines = 0  # looks at an engine's process: none would prove nothing
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def seen(self) -> set[str]:
        """Where a secret was."""
        for folder in self._folders:
            for path in folder.rglob("*"):
                if path.is_file() and self._is_in(path.read_bytes()):
                    self._places.add(str(path))
        return self._places

    def _is_in(self, data: bytes) -> bool:
        return any(secret in data for secret in self._secrets)

    def _look(self) -> None:
        while not self._end.wait(_PAUSE):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):  # it has ended
                    argv = (process / "cmdline").read_bytes()
                    if self._is_in(argv):
                        self._places.add(f"command line {argv!r}")
                    if b"podman" in argv.partition(b"\0")[0]:
                        self.engines += 1
                        if self._is_in((process / "environ").read_bytes()):
                            self._places.add(f"environment of {argv!r}")
