"""`envcheck fleet watch`: what turned in a directory of Snapshots, a line each."""

from __future__ import annotations

import argparse
import hashlib
import select
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

from ...exit_codes import ExitCode, UsageError
from .. import files, messages
from ..durations import duration
from ..parser import Parser, seconds
from ..style import style_of
from . import shown

if TYPE_CHECKING:
    from ...fleet.folder import Member
    from ...fleet.model import JudgedMachine
    from ...fleet.watch import FleetLook, TurnEvent

EPILOG = """\
examples:
  envcheck fleet watch snapshots/              until Ctrl-C
  envcheck fleet watch snapshots/ --once       one look, for cron
  envcheck fleet watch snapshots/ --stale 3h --format json

exit codes of --once: as of `envcheck fleet report`; without it, 130 after
Ctrl-C"""


def add_arguments(parser: Parser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("directory", metavar="DIR", help="with a NAME.json for each machine")
    parser.add_argument(
        "--every",
        type=seconds(0.1, 86400),
        default=60.0,
        metavar="SECONDS",
        help="how long to wait between two looks (default: 60)",
    )
    parser.add_argument(
        "--once",
        action="store_true",
        help="look once: what turned since the last look, which is kept in your state directory",
    )
    parser.add_argument(
        "--stale",
        type=duration("1s", "3650d"),
        default=86400.0,
        metavar="DURATION",
        help="a machine is silent where its Snapshot is older: 3h, 2d (default: 1d)",
    )
    shown.add_profile(parser)
    files.add_format(parser, json="a line for each event")
    parser.add_argument("-q", "--quiet", action="store_true", help="only what turned")


def run(arguments: argparse.Namespace) -> int:
    from ...reports.progress import StatusLine

    looks = _Looks(arguments)
    with StatusLine(sys.stderr) as line:
        while True:
            watched = looks.look()
            if arguments.once:
                return _exit_code(watched)
            if _nobody_reads():
                return ExitCode.HEALTHY
            if not arguments.quiet:
                line.show(_waiting(watched, time.monotonic() + arguments.every))
            time.sleep(arguments.every)
            line.clear()


class _Looks:
    """One look after the other; what cannot be looked at for a while is told, and looked at again."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        from ...fleet import watch
        from ...fleet.folder import FleetFolder
        from ...profiles import reading

        self._arguments = arguments
        self._folder = FleetFolder(Path(arguments.directory))
        expect = arguments.expect
        self._profile = None if expect is None else reading.read(expect)
        self._by = "" if expect is None else hashlib.sha256(Path(expect).read_bytes()).hexdigest()
        self._file = watch.state_file(self._folder.path)
        self._before = watch.read(self._file)
        self._trouble = ""
        self._count = 0

    def look(self) -> FleetLook:
        """Look, tell what turned, and keep it. Raises UsageError where the first look fails."""
        from ...fleet import watch

        self._count += 1
        try:
            members = shown.members(self._folder)
        except UsageError as error:
            if self._count == 1 or self._before is None:
                raise
            self._tell(f"{error}; the next look is in {self._arguments.every:g} s")
            return self._before
        watched, events = watch.look(
            self._folder,
            members,
            self._judge,
            datetime.now(timezone.utc),
            before=self._before,
            stale=self._arguments.stale,
            by=self._by,
        )
        if self._count == 1 and not self._arguments.quiet:
            messages.say(f"{self._folder.path}: {watch.counted(watched)}")
        if events:
            files.write(None, _text(self._arguments.format, events))
        try:
            watch.write(self._file, watched)
            self._trouble = ""
        except OSError as error:
            self._tell(f"{self._file}: {error.strerror}: another start tells all of this again")
        self._before = watched
        return watched

    def _judge(self, members: list[Member]) -> Iterator[JudgedMachine]:
        from ...fleet.judging import judged

        return judged(self._folder, members, self._profile)

    def _tell(self, trouble: str) -> None:
        """Once, for as long as it lasts."""
        if trouble != self._trouble:
            messages.say(trouble)
        self._trouble = trouble


def _text(form: str, events: list[TurnEvent]) -> str:
    from ...fleet.reports import turned

    if form == "json":
        return turned.as_json(events)
    return turned.render(events, **style_of(sys.stdout)._asdict())


def _waiting(watched: FleetLook, until: float) -> Callable[[int], str]:
    from ...fleet import watch

    def text(columns: int) -> str:
        left = max(0, round(until - time.monotonic()))
        return f"{watch.counted(watched)}; the next look is in {left} s"

    return text


def _nobody_reads() -> bool:
    """Whether the reader of standard output (head) is gone, so that nobody would hear of anything."""
    poll = select.poll()
    poll.register(1, 0)
    return any(event & (select.POLLERR | select.POLLNVAL) for _, event in poll.poll(0))


def _exit_code(watched: FleetLook) -> ExitCode:
    machines = watched.machines.values()
    if any(one.state == "problems" for one in machines):
        return ExitCode.PROBLEMS
    blind = any(one.silent or one.state != "healthy" for one in machines)
    return ExitCode.COULD_NOT_LOOK if blind else ExitCode.HEALTHY
