"""What the tools say while they install: kept in the environment, under `.envcheck/logs/`, safe to show."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from ... import safe_text

OWN = ".envcheck"  # the folder in an environment that is envcheck's


def work(directory: Path) -> Path:
    """The environment's own folder of envcheck's, made where it is missing."""
    folder = directory / OWN
    folder.mkdir(exist_ok=True)
    return folder


class Log:
    """One log, readable while it grows."""

    def __init__(self, directory: Path, name: str) -> None:
        folder = work(directory) / "logs"
        folder.mkdir(exist_ok=True)
        self.path = folder / name
        self._file: BinaryIO = self.path.open("ab", buffering=0)
        self._start = self._file.tell()

    def __enter__(self) -> Log:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def add(self, lines: list[str]) -> None:
        """Whole lines, as they come."""
        if lines:
            self._file.write((safe_text.lines("\n".join(lines)) + "\n").encode())

    def close(self, whole: bytes) -> None:
        """Everything that was said, in the place of the lines until now: the last ones may be missing."""
        self._file.truncate(self._start)
        self._file.seek(self._start)
        self._file.write(safe_text.lines(whole.decode("utf-8", "replace")).encode())
        self._file.close()
