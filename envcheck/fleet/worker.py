"""A process that judges some machines of a fleet and writes a line for each."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import msgspec

from ..checks.registry import all_checks
from ..facts.sharing import ManySnapshots
from .judging import ToJudge, judge_files, unreadable
from .model import JudgedMachine
from .workers import NO_PAGE, READY, JudgeTask

# Bytes of address space: a hostile Snapshot of 64 MiB, decoded, must not take the machine's memory.
_MEMORY = 3 << 30
_LONGEST = 1 << 19  # bytes of a judged machine: with sixteen GPUs it has a third of that


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=JudgeTask)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    all_checks()
    many = ManySnapshots()
    gc.freeze()
    _write(READY)
    pages = Path(task.pages) if task.pages else None
    for work in task.work:
        try:
            machine = judge_files(work, many, task.profile, pages)
        except OSError as error:
            sys.stderr.write(f"{pages}: {error.strerror or error}\n")
            sys.exit(NO_PAGE)
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
