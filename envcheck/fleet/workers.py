"""Processes that judge machines side by side: the death of one costs one machine."""

from __future__ import annotations

import gc
import os
import resource
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from sys import intern
from typing import Any

import msgspec
from msgspec.structs import replace

from .. import safe_text, scratch
from ..attributes.model import Attribute
from ..checks.registry import all_checks
from ..exit_codes import CouldNotLook, UsageError
from ..facts.profile import Profile
from ..facts.sharing import ManySnapshots
from ..install import processes
from ..invocation import own_python
from .folder import FleetFolder, Member
from .judging import ToJudge, judge_files, unanswered, unreadable
from .model import JudgedMachine

_READY = b"ready"
_NO_PAGE = 73  # the exit status of a process that cannot write a page
# A process of their own costs as much as judging so many machines.
_WORTH_A_PROCESS = 16

# Seconds that a machine may take, and a process until it is ready. One takes some milliseconds.
DEADLINE = 120.0
_EVER = 7 * 86400.0
_WRITES = 1 << 34  # bytes of all answers of a process
_PAUSE = 0.01
# Bytes of address space: a hostile Snapshot of 64 MiB, decoded, must not take the machine's memory.
_MEMORY = 3 << 30
_LONGEST = 1 << 19  # bytes of a judged machine: with sixteen GPUs it has a third of that
_WORDS = ("key", "words", "unit", "device", "under")  # of a rate

_START = "from envcheck.fleet import workers\nworkers.judge()\n"


class _Task(msgspec.Struct, frozen=True, kw_only=True):
    """What a process reads on its standard input."""

    work: list[ToJudge]
    pages: str | None = None
    profile: Profile | None = None


def judge() -> None:
    """Of such a process: judge its machines, and write a line for each."""
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=_Task)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    with suppress(ValueError):  # there is a lower limit already
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, hard))
    all_checks()
    many = ManySnapshots()
    gc.freeze()
    _write(_READY)
    pages = Path(task.pages) if task.pages else None
    for work in task.work:
        try:
            machine = judge_files(work, many, task.profile, pages)
        except OSError as error:
            sys.stderr.write(f"{pages}: {error.strerror or error}\n")
            sys.exit(_NO_PAGE)
        _write(_encoded(machine, work))


def _encoded(machine: JudgedMachine, work: ToJudge) -> bytes:
    try:
        line = msgspec.json.encode(machine)
    except UnicodeEncodeError:  # half of a surrogate pair
        reason = "it contains text that is not Unicode"
    else:
        if len(line) <= _LONGEST:
            return line
        reason = f"its findings and facts are larger than {_LONGEST >> 10} KiB"
    return msgspec.json.encode(unreadable(work.member, reason))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def judged(
    folder: FleetFolder,
    members: Sequence[Member],
    profile: Profile | None = None,
    pages: Path | None = None,
) -> Iterator[JudgedMachine]:
    """Every machine, in the members' order, judged by processes: a Snapshot that kills one costs itself
    alone. pages: a directory for a page NAME.html of each machine. Raises UsageError where a page cannot be
    written, CouldNotLook where no process can be started."""
    work = [
        ToJudge(member=member, files=[str(path.absolute()) for path in folder.files(member.name)])
        for member in members
        if member.outcome == "answered"
    ]
    cores = len(os.sched_getaffinity(0))
    processes = max(1, min(cores, len(work) // _WORTH_A_PROCESS))
    answers = side_by_side(work, processes, profile, pages and pages.absolute())
    try:
        for member in members:
            yield next(answers) if member.outcome == "answered" else unanswered(member)
    finally:
        answers.close()


def side_by_side(
    work: Sequence[ToJudge],
    count: int,
    profile: Profile | None = None,
    pages: Path | None = None,
    deadline: float = DEADLINE,
) -> Generator[JudgedMachine]:
    """The judged machines, in the order of the work; ``count`` processes do it."""
    if not work:
        return
    task = _Task(work=[], pages=None if pages is None else str(pages), profile=profile)
    with scratch.directory() as folder:
        shares = [
            _Share(folder / f"{n}.json", task, dict(list(enumerate(work))[n::count]))
            for n in range(count)
        ]
        try:
            yield from _in_order(shares, len(work), deadline)
        finally:
            processes.stop_all([share.child for share in shares])


def _in_order(shares: Sequence[_Share], count: int, deadline: float) -> Iterator[JudgedMachine]:
    """Attributes are mostly the same on all machines, and the words of rates: each is kept once."""
    known: dict[Attribute, Attribute] = {}
    found: dict[int, JudgedMachine] = {}
    done = 0
    while done < count:
        arrived = [pair for share in shares for pair in share.look(deadline)]
        for place, machine in arrived:
            attributes = [known.setdefault(one, one) for one in machine.attributes]
            rates = [
                replace(one, **{name: intern(getattr(one, name)) for name in _WORDS})
                for one in machine.rates
            ]
            found[place] = replace(machine, attributes=attributes, rates=rates)
        while done in found:
            yield found.pop(done)
            done += 1
        if not arrived and done < count:
            time.sleep(_PAUSE)


class _Share:
    """Some of the machines, and the process that judges them: another one where that has died."""

    def __init__(self, file: Path, task: _Task, work: dict[int, ToJudge]) -> None:
        self._file, self._task, self._work = file, task, work
        self._open = deque(work)
        self._deaths: Counter[int] = Counter()
        self._failed = 0  # processes that ended before they were ready
        self._start()

    def _start(self) -> None:
        todo = [self._work[place] for place in self._open]
        self._file.write_bytes(msgspec.json.encode(replace(self._task, work=todo)))
        argv = own_python(_START)
        self.child: Any = processes.start(argv, given=self._file, deadline=_EVER, limit=_WRITES)
        self._ready = False
        self._last = time.monotonic()

    def look(self, deadline: float) -> Iterator[tuple[int, JudgedMachine]]:
        """Those that were judged since the last look."""
        if not self._open:
            return
        ended = self.child.poll() is not None
        while text := self.child.new_stdout():
            self._last = time.monotonic()
            for line in text[: text.rfind(b"\n") + 1].splitlines():
                if not self._ready:
                    self._ready = line == _READY
                    continue
                yield self._open.popleft(), msgspec.json.decode(line, type=JudgedMachine)
            if ended:
                break
        if ended and self._open:
            yield from self._after(self.child.result)
        elif not ended and time.monotonic() - self._last > deadline:
            self.child.stop()

    def _after(self, result: Any) -> Iterator[tuple[int, JudgedMachine]]:
        """Go on with another process: the machine at which one ended is tried once more."""
        if self._ready and result.code == _NO_PAGE:
            raise UsageError(f"a page cannot be written: {safe_text.one_line(result.tail(1))}")
        self._failed += not self._ready
        own_fault = not self._ready and result.outcome == "exited" and result.code >= 0
        if own_fault or self._failed > 2:
            words = safe_text.one_line(result.tail(1))
            process = f"the process that judges machines {result.describe()}"
            raise CouldNotLook(f"{process}{words and ': ' + words}")
        if self._ready:  # else somebody killed it
            place = self._open[0]
            self._deaths[place] += 1
            slow = result.outcome == "stopped"
            if slow or self._deaths[place] > 1:
                self._open.popleft()
                why = f"the process that judged it {'took too long' if slow else result.describe()}"
                yield place, unreadable(self._work[place].member, why)
        if self._open:
            self._start()
