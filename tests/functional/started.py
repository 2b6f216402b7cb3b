"""An image that an engine holds, as if the container mode had installed it: what `envcheck run` needs."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from cli import environment
from installing import Home
from processes import PATIENCE, begun, ran

from envcheck.install.engine import EngineName, Start, Wiring

VERSION = "23.03-tf1-0badf00d"


@dataclass(frozen=True)
class Installed:
    """What is installed in a home of its own; every run begins in ``work``."""

    home: Home
    work: Path
    variables: dict[str, str]
    start: Start | None = None  # None: an environment of wheels

    def change(self, **changes: object) -> Installed:
        """Write its start.json with these fields."""
        assert self.start is not None
        return installed(
            self.home.folder, self.variables, msgspec.structs.replace(self.start, **changes)
        )

    def envcheck(
        self, *arguments: str | Path, stdin: bytes = b"", cwd: Path | None = None, **changes: str
    ) -> subprocess.CompletedProcess[bytes]:
        return ran(
            [sys.executable, "-m", "envcheck", *map(str, arguments)],
            input=stdin,
            env=self._environment(changes),
            cwd=cwd or self.work,
        )

    def run(
        self, *command: str, stdin: bytes = b"", cwd: Path | None = None, **changes: str
    ) -> subprocess.CompletedProcess[bytes]:
        return self.envcheck("run", "--", *command, stdin=stdin, cwd=cwd, **changes)

    @contextmanager
    def running(
        self, *command: str, options: Sequence[str] = ()
    ) -> Iterator[subprocess.Popen[bytes]]:
        """`envcheck run`, whose first line has been read; killed at the end."""
        process = begun(
            [sys.executable, "-m", "envcheck", "run", *options, "--", *command],
            stdin=subprocess.PIPE,
            env=self._environment({}),
            cwd=self.work,
        )
        try:
            assert process.stdout is not None and process.stderr is not None
            if process.stdout.readline() != b"ready\n":
                raise AssertionError(process.stderr.read())
            yield process
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def typing(self, *arguments: str, **changes: str) -> Iterator[Terminal]:
        """envcheck on a terminal of its own."""
        pid, handle = pty.fork()
        if pid == 0:
            os.chdir(self.work)
            os.environ.clear()
            os.environ.update(self._environment(changes))
            os.execv(sys.executable, [sys.executable, "-m", "envcheck", *arguments])
        terminal = Terminal(pid, handle)
        try:
            yield terminal
        finally:
            terminal.close()

    def environment(self) -> dict[str, str]:
        return self._environment({})

    def _environment(self, changes: dict[str, str]) -> dict[str, str]:
        return environment(**(self.home.variables | self.variables | changes))


class Terminal:
    """The other end of a command's terminal."""

    def __init__(self, pid: int, handle: int) -> None:
        self._pid, self._handle = pid, handle
        self._code: int | None = None
        self.seen = b""

    def type(self, text: str) -> None:
        os.write(self._handle, text.encode())

    def wait_for(self, word: str, times: int = 1) -> None:
        """Read until the word was seen so many times. Raises AssertionError."""
        limit = time.monotonic() + PATIENCE
        while self.seen.count(word.encode()) < times:
            assert self._read(limit), f"{word!r} did not come: {self.seen!r}"

    def end(self) -> int:
        """Read to the end: the exit code, negative for a signal."""
        limit = time.monotonic() + PATIENCE
        while self._read(limit):
            pass
        if self._code is None:
            self._code = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._code

    def close(self) -> None:
        if self._code is None:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
        os.close(self._handle)

    def _read(self, limit: float) -> bool:
        ready, _, _ = select.select([self._handle], [], [], max(0.0, limit - time.monotonic()))
        if not ready:
            return False
        try:
            found = os.read(self._handle, 65536)
        except OSError:  # how Linux says that nobody has the terminal open any more
            return False
        self.seen += found
        return bool(found)


def installed(folder: Path, variables: dict[str, str], start: Start) -> Installed:
    """Write what an installation would have left in ``folder``, a home. variables: for the engine."""
    home = Home(folder)
    own = version(home, "ngc-tf1", VERSION) / ".envcheck"
    (own / "image.json").write_text("{}")
    (own / "start.json").write_bytes(msgspec.json.encode(start))
    return Installed(home, work(home), variables, start)


def version(home: Home, name: str, version_id: str) -> Path:
    """A version's directory, in use and installed last; of what is in it, only the record is there."""
    root = home.root(name)
    state = home.folder / "state" / "envcheck"
    own = root / version_id / ".envcheck"
    for place in (root / ".envcheck", own, state):
        place.mkdir(parents=True, exist_ok=True)
    (root / ".envcheck" / "owner.json").write_text(
        '{"owner": "envcheck", "layout": 1, "created_at": "2026-11-21T00:00:00Z"}'
    )
    (own / "record.json").write_text("{}")
    (root / "current").unlink(missing_ok=True)
    (root / "current").symlink_to(version_id)
    (state / "last-install.json").write_bytes(
        msgspec.json.encode({"prefix": str(root / "current")})
    )
    return root / version_id


def work(home: Home) -> Path:
    """The directory that runs begin in."""
    folder = home.folder / "work"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def plain_start(
    engine: EngineName, program: str, image_id: str, arguments: Sequence[str] = ()
) -> Start:
    """Without GPUs and limits. arguments: more for the engine's `run`."""
    wiring = Wiring(kind="none", arguments=list(arguments))
    return Start(
        engine=engine, program=program, image=image_id, reference="the tests", wiring=wiring, gpus=0
    )
