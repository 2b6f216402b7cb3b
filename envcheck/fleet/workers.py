"""Processes that judge machines side by side: what one of them dies of costs one machine."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter, deque
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from .. import safe_text, scratch
from ..attributes.model import Attribute
from ..exit_codes import CouldNotLook, UsageError
from ..facts.profile import Profile
from ..install import processes
from .model import JudgedMachine
from .work import READY, JudgeTask, ToJudge, Unpacking, unreadable

# Seconds that a machine may take, and a process until it is ready. One takes some milliseconds.
DEADLINE = 120.0
_EVER = 7 * 86400.0
_WRITES = 1 << 31  # bytes of all answers of a process
_PAUSE = 0.01

# With the very modules of this process, and none of the working directory's or the user's.
_START = (
    "import json, sys\n"
    "sys.path[:] = json.loads(sys.argv[1])\n"
    "from envcheck.fleet import worker\n"
    "worker.main()\n"
)


def side_by_side(
    work: Sequence[ToJudge],
    count: int,
    profile: Profile | None = None,
    pages: Path | None = None,
    deadline: float = DEADLINE,
) -> Generator[JudgedMachine]:
    """What each machine is judged to be, in the order of the work; ``count`` processes do it."""
    if not work:
        return
    known: dict[Attribute, Attribute] = {}
    asked = JudgeTask(
        work=[],
        pages=None if pages is None else str(pages),
        where="" if profile is None else profile.where or "-",
        tables={} if profile is None else profile.tables,  # type: ignore[arg-type]  # as JSON has it
        products=[] if profile is None else list(profile.products),  # type: ignore[arg-type]
    )
    with scratch.directory() as folder:
        shares = [
            _Share(folder / f"{n}.json", asked, dict(list(enumerate(work))[n::count]), known)
            for n in range(count)
        ]
        try:
            yield from _in_order(shares, len(work), deadline)
        finally:
            processes.stop_all([share.child for share in shares])


def _in_order(shares: Sequence[_Share], count: int, deadline: float) -> Iterator[JudgedMachine]:
    found: dict[int, JudgedMachine] = {}
    told = 0
    while told < count:
        heard = 0
        for share in shares:
            for place, machine in share.look(deadline):
                found[place] = machine
                heard += 1
        while told in found:
            yield found.pop(told)
            told += 1
        if not heard and told < count:
            time.sleep(_PAUSE)


class _Share:
    """Some of the machines, and the process that judges them: another one where that has died."""

    def __init__(
        self,
        file: Path,
        asked: JudgeTask,
        work: dict[int, ToJudge],
        known: dict[Attribute, Attribute],
    ) -> None:
        self._file = file
        self._asked = asked
        self._work = work
        self._known = known
        self._left = deque(work)
        self._deaths: Counter[int] = Counter()
        self._failed = 0  # processes that ended before they were ready
        self._start()

    def _start(self) -> None:
        todo = [self._work[place] for place in self._left]
        self._file.write_bytes(msgspec.json.encode(msgspec.structs.replace(self._asked, work=todo)))
        argv = [sys.executable, "-I", "-c", _START, json.dumps(sys.path)]
        self.child: Any = processes.start(argv, given=self._file, deadline=_EVER, limit=_WRITES)
        self._ready = False
        self._heard = time.monotonic()
        self._unpacking = Unpacking(self._known)

    def look(self, deadline: float) -> Iterator[tuple[int, JudgedMachine]]:
        """Those that were judged since the last look."""
        if not self._left:
            return
        ended = self.child.poll() is not None
        while told := self.child.new_stdout():
            self._heard = time.monotonic()
            for line in told[: told.rfind(b"\n") + 1].splitlines():
                if not self._ready:
                    self._ready = line == READY
                    continue
                machine, trouble = self._unpacking.unpack(line)
                if trouble:
                    raise UsageError(f"the page of {machine.name} cannot be written: {trouble}")
                yield self._left.popleft(), machine
            if ended:
                break
        if ended and self._left:
            yield from self._after(self.child.result)
        elif not ended and time.monotonic() - self._heard > deadline:
            self.child.stop()

    def _after(self, result: Any) -> Iterator[tuple[int, JudgedMachine]]:
        """Go on with another process: the machine at which one ended is tried a second time, and once."""
        self._failed += not self._ready
        if (
            not self._ready and (result.outcome == "exited" and result.code >= 0)
        ) or self._failed > 2:
            words = safe_text.one_line(result.tail(1))
            raise CouldNotLook(
                f"the process that judges machines {result.describe()}{words and ': ' + words}"
            )
        if not self._ready:  # somebody killed it
            self._start()
            return
        place = self._left[0]
        self._deaths[place] += 1
        slow = result.outcome == "stopped"
        if slow or self._deaths[place] > 1:
            self._left.popleft()
            why = "took too long" if slow else result.describe()
            yield place, unreadable(self._work[place].member, f"the process that judged it {why}")
        if self._left:
            self._start()
