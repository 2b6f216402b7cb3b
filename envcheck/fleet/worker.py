"""A process that judges some machines of a fleet and writes a line for each."""

from __future__ import annotations

import gc
import resource
import sys
from pathlib import Path

import msgspec

from ..checks.registry import all_checks
from .judging import judge_files
from .model import JudgedMachine
from .work import LONGEST, READY, JudgedLine, JudgeTask, ToJudge, unreadable

# Bytes of address space: a hostile Snapshot of 64 MiB, decoded, must not take the machine's memory.
_MEMORY = 3 << 30


def main() -> None:
    task = msgspec.json.decode(sys.stdin.buffer.read(), type=JudgeTask)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    all_checks()
    gc.freeze()
    _write(READY)
    for work in task.work:
        _write(_line(work, task))


def _line(work: ToJudge, task: JudgeTask) -> bytes:
    pages = Path(task.pages) if task.pages else None
    trouble = ""
    try:
        machine = judge_files(work, task.profile, pages)
    except OSError as error:
        machine = judge_files(work, task.profile)
        trouble = f"{pages}: {error.strerror or error}"
    return _encoded(machine, work, trouble)


def _encoded(machine: JudgedMachine, work: ToJudge, trouble: str) -> bytes:
    try:
        line = msgspec.json.encode(JudgedLine(machine, trouble))
    except UnicodeEncodeError:  # half of a surrogate pair
        reason = "it contains text that is not Unicode"
    else:
        if len(line) <= LONGEST:
            return line
        reason = f"its findings and facts are larger than {LONGEST >> 10} KiB"
    return msgspec.json.encode(JudgedLine(unreadable(work.member, reason), trouble))


def _write(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
