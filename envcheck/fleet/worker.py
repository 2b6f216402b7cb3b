"""A process that judges some machines of a fleet, one after another, and tells each at once, a line each."""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ..checks.registry import all_checks
from .judging import judge_file
from .model import JudgedMachine
from .work import LONGEST, READY, JudgeTask, Packing, ToJudge, unreadable

# Bytes of address space: a hostile Snapshot of 64 MiB, decoded, must not take the machine's memory.
_MEMORY = 3 << 30


def main() -> None:
    work = msgspec.json.decode(sys.stdin.buffer.read(), type=JudgeTask)
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    most = _MEMORY if hard == resource.RLIM_INFINITY else min(_MEMORY, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    all_checks()
    gc.freeze()
    _tell(READY)
    for line in _lines(work):
        _tell(line)


def _lines(todo: JudgeTask) -> Iterator[bytes]:
    profile = todo.profile()
    pages = Path(todo.pages) if todo.pages else None
    packing = Packing()
    for work in todo.work:
        trouble = ""
        try:
            machine = judge_file(work.member, Path(work.file), profile, pages)
        except OSError as error:
            machine = judge_file(work.member, Path(work.file), profile)
            trouble = f"{pages}: {error.strerror or error}"
        answer = packing.pack(_fitting(machine, work))
        answer.trouble = trouble
        yield msgspec.json.encode(answer)


def _fitting(machine: JudgedMachine, work: ToJudge) -> JudgedMachine:
    try:
        size = len(msgspec.json.encode(machine))
    except UnicodeEncodeError:  # half of a surrogate pair
        return unreadable(work.member, "it holds text that is no Unicode")
    if size > LONGEST:
        reason = f"what there is to say of it has more than {LONGEST >> 10} KiB"
        return unreadable(work.member, reason)
    return machine


def _tell(line: bytes) -> None:
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()
