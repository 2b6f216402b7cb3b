"""Hostile inputs for what a fleet reads of machines: the relay, Ansible's events, streams.

What is well formed is cut, spliced, repeated and filled with what breaks parsers. The same seed makes the
same inputs.
"""

from __future__ import annotations

import base64
import gzip
import io
import json
import random
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import get_args

from envcheck.fleet.engines import Asked, ansible, ansible_collect, relay
from envcheck.fleet.engines.ansible import Event
from envcheck.fleet.engines.collecting import Members
from envcheck.fleet.folder import FleetFolder, Outcome
from envcheck.fleet.rollout.running import RolloutRun

COOKIE = "envcheck-c00c1e"
LIMIT = 100_000
OUTCOMES = frozenset(get_args(Outcome))
LONGEST = 2200  # characters of a reason

_MARK = f"\n@{COOKIE} ".encode()
_TOKENS: tuple[bytes, ...] = (
    b"\xff", b"\xed\xa0\x80", b"\x00", b"\x1b[2J", b"\\ud800", b"\\udcff", b"\\", b'"', b"'", b"\n", b"\r",
    b"{", b"}", b"[", b"]", b",", b":", b" ", b"null", b"true", b"-", b"1e999", b"NaN", b"9" * 5000,
    b"[" * 3000,
    b'{"a":' * 2000, b"x" * 9000, b"}{", b"]}", b"@", _MARK, _MARK + b"end\n", _MARK + b"begin ",
    _MARK + b"none\n", _MARK + b"over\n", _MARK + b"timed-out\n", b"AAAA", b"=",
    b'{"name": "a", "snapshot": ', b"gpu01: ", b"[pod/a/b] ", b'"host": "a"', b'"event": "result"',
    b'"answer": ', b'"state": "skipped"', b'"result": "installed"', b'"exit_code": ', b'"answer": "/nowhere"',
    "\u202e\u0000é😀".encode(), b"0", b"-1", b"123456789012345678901234567890",
)  # fmt: skip


def _frame(rng: random.Random, whole: bytes) -> bytes:
    errors = rng.choice([b"", b"no\nroom", b"\x1b[31m"])
    code = rng.choice([b"0", b"1", b"-9", b"", b"1" * 30])
    data = rng.choice(_packed(whole))
    end = b"end " + errors + b"\n" + code + _MARK + b"over\n"
    return b"Welcome!" + _MARK + b"begin\n" + data + _MARK + end


@cache
def _packed(whole: bytes) -> tuple[bytes, ...]:
    bodies = (whole, b"{}", bytes(LIMIT + 1), b"[" * 5000, b"")
    return tuple(base64.b64encode(gzip.compress(body, mtime=0)) for body in bodies)


def _event(rng: random.Random, _whole: bytes) -> bytes:
    printed = rng.choice(
        [
            {"endless": True},
            {"answer": "/nowhere", "rc": 0},
            {"result": "installed", "exit_code": 0, "unproven": ["NCC-001"], "seconds": 1.5},
            {"result": "failed", "exit_code": 5, "words": "no room", "carried": 7},
            {},
        ]
    )
    state = rng.choice(["ok", "failed", "unreachable", "skipped"])
    shown = {
        "host": rng.choice("ab"),
        "event": "result",
        "state": state,
        "words": "No route to host",
    }
    return json.dumps({**shown, "answer": json.dumps(printed)}).encode() + b"\n"


def _mutated(rng: random.Random, data: bytes) -> bytes:
    for _ in range(rng.randrange(5)):
        at, end = sorted(rng.randrange(len(data) + 1) for _ in range(2))
        kind = rng.randrange(5)
        if kind == 0:
            data = data[:at] + rng.choice(_TOKENS) + data[at:]
        elif kind == 1:
            data = data[:at] + rng.choice(_TOKENS) + data[at + rng.randrange(8) :]
        elif kind == 2:
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        elif kind == 3:
            data = data[:at] + data[min(end, at + 200) :]
        else:
            data = data[:end] + data[at : at + 500] + data[end:]
    return data


def _reason(outcome: str, reason: str) -> None:
    assert outcome in OUTCOMES and outcome != "answered", outcome
    assert reason and len(reason) <= LONGEST and reason.isprintable(), repr(reason)[:300]


def _of_relay(data: bytes, _folder: Path) -> None:
    found = relay.read(data, COOKIE, 60.0, limit=LIMIT)
    if isinstance(found, bytes):
        assert len(found) <= LIMIT
    else:
        _reason(*found)


def _of_events(data: bytes, folder: Path) -> None:
    """Both that listen hear them. What is of no known machine changes nothing."""
    members = Members(FleetFolder(folder), Asked([], 60.0), lambda member: None)
    collecting = ansible_collect._Collecting(members, lambda sentence: None, folder)
    rollout = RolloutRun(["a", "b"], folder, lambda end: None)
    for name in "ab":
        collecting.on_event(Event(event="host", host=name))
        rollout.on_event(Event(event="begun", host=name))
    for event in ansible._events(io.BytesIO(data)):
        if event.event == "result" and "full" not in event.answer:
            collecting.on_event(event)
            rollout.on_event(event)
    assert [*members.found] == [*rollout.ends] == ["a", "b"]
    for member in members.found.values():
        _reason(member.outcome, member.reason)
    for end in rollout.ends.values():
        assert 0 <= end.exit_code <= 255 and len(end.reason) <= LONGEST and end.reason.isprintable()


_Make = Callable[[random.Random, bytes], bytes]
_Judge = Callable[[bytes, Path], None]
TARGETS: dict[str, tuple[_Make, _Judge]] = {
    "relay": (_frame, _of_relay),
    "events": (_event, _of_events),
}


def fuzz(target: str, seed: int, count: int, folder: Path, whole: bytes) -> None:
    """Try so many inputs. whole: a Snapshot. Raises AssertionError with the input that did anything else."""
    make, judge = TARGETS[target]
    rng = random.Random(f"{target} {seed}")
    for number in range(count):
        data = _mutated(rng, make(rng, whole))
        try:
            judge(data, folder)
        except BaseException as error:
            raise AssertionError(
                f"{target}, seed {seed}, input {number}: {data[:2000]!r}"
            ) from error
