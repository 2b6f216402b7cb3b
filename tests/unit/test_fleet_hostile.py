"""Whatever one machine answers, that machine alone is unreadable, and the others go on."""

from __future__ import annotations

import base64
import gzip
import io
import json
from pathlib import Path
from typing import Any

import pytest
from whole import whole

from envcheck.facts import snapshot as snapshots
from envcheck.fleet.engines import ansible, relay
from envcheck.fleet.engines.ansible import Event
from envcheck.fleet.folder import FleetFolder, Member
from envcheck.fleet.rollout import planning
from envcheck.fleet.rollout.running import RolloutRun

COOKIE = "envcheck-0123"
DEEP = b'{"a":' * 200_000


def framed(errors: bytes, body: bytes = b"") -> bytes:
    data = base64.b64encode(gzip.compress(body, mtime=0))
    mark = b"@%s" % COOKIE.encode()
    return b"\n%s begin\n%s\n%s end %s\n3\n%s over\n" % (mark, data, mark, errors, mark)


def test_what_a_machine_says_is_kept_bounded_and_printable() -> None:
    for answer in (
        framed(b"\x1b[31m" + b"y" * 100_000),
        b"\x1b]0;x\x07" * 100_000,
        b"@%s old \xff" % b"z" * 9000,
    ):
        found = relay.read(answer, COOKIE, 60.0, limit=1000)
        assert isinstance(found, tuple) and len(found[1]) < 300 and found[1].isprintable()


def events(*lines: bytes) -> list[Event]:
    return ansible._events(io.BytesIO(b"".join(line + b"\n" for line in lines)))


WHOLE = b'{"host": "b", "event": "result", "state": "ok"}'


@pytest.mark.parametrize(
    "more",
    [
        b'"words": "\\udcff"',
        b'"words": "\xff"',
        b'"answer": ' + DEEP,
        b'"answer": {"rc": 1}',
        b'"words": 5',
        b"",
    ],
)
def test_after_an_event_that_cannot_be_read_the_next_one_is_read(more: bytes) -> None:
    (good,) = events(b'{"host": "a", "event": "result", %s}' % more, WHOLE)
    assert good.host == "b"


def test_a_name_that_is_no_file_s_is_kept_all_the_same(tmp_path: Path) -> None:
    folder, data = FleetFolder(tmp_path), snapshots.dump(whole())
    names = ["x" * 5000, "é" * 200, "\udcff", "a\0b", "..", "/" * 300, "y" * 5000, "y" * 4999]
    for name in names:
        assert folder.keep(name, data, []).outcome == "answered", name
    assert len(list(tmp_path.iterdir())) == len(names)
    assert all(folder.file(name).read_bytes() == data for name in names)


def test_a_name_that_is_twice_in_the_roster_costs_itself_alone(tmp_path: Path) -> None:
    folder = FleetFolder(tmp_path)
    folder.write_roster("ansible", [Member(name="a"), Member(name="b"), Member(name="a")])
    assert [(one.name, one.outcome) for one in folder.members()] == [
        ("a", "unreadable"),
        ("b", "answered"),
    ]


PYTHON = {
    "version": "3.11.2", "implementation": "CPython", "architecture": "x86_64", "debug": False,
    "abi": "cpython-311-x86_64-linux-gnu", "build": "x86_64-pc-linux-gnu", "free_threaded": False,
    "path": "/usr/bin/python3", "in_environment": False, "libc": "glibc 2.36", "has_venv": True,
}  # fmt: skip


@pytest.mark.parametrize(
    "lie",
    [
        {"version": "3." + "9" * 5000},
        {"version": "\x1b[31m"},
        {"version": "3.11.x.y"},
        {"libc": "glibc 2.999999999"},
        {"architecture": "manylinux_x_y" * 1000},
        {"abi": "x" * 100_000},
        {"path": DEEP.decode(), "in_environment": True},
    ],
)
def test_a_python_that_lies_is_no_python(lie: dict[str, Any]) -> None:
    shown = [["/usr/bin/python3", answer(PYTHON)], ["/p", answer(PYTHON | lie)]]
    found = planning.interpreters("gpu01", shown)
    assert [one.path for one in found] == ["/usr/bin/python3"]
    assert len(found[0].tags) < 2000


def answer(shown: dict[str, Any]) -> str:
    return "@envcheck{@" + json.dumps(shown) + "@}envcheck@"


@pytest.mark.parametrize(
    ("printed", "result", "code"),
    [
        ({"result": "installed", "exit_code": 0, "carried": 10**30}, "failed", 4),
        ({"result": "installed", "exit_code": 5}, "failed", 4),
        ({"result": "installed", "exit_code": 10**6}, "failed", 4),
        ({"result": "not-begun", "exit_code": 0}, "failed", 4),
        ({"result": "left-out", "exit_code": 0}, "failed", 4),
        ({"result": "failed", "exit_code": 0, "words": "x" * 9000}, "failed", 4),
        ({"result": "installed", "exit_code": 0, "version": {"a": 1}}, "failed", 4),
        ({"result": "installed", "exit_code": 0, "unproven": ["x"] * 9000}, "failed", 4),
        ({"result": "installed", "exit_code": 0, "seconds": float("inf")}, "failed", 4),
        ({"result": "failed", "exit_code": 5, "words": "\x1b[31mdisk full"}, "failed", 5),
        ({"result": "installed", "exit_code": 0, "version": "1.0-a"}, "installed", 0),
    ],
)
def test_a_roll_out_believes_no_lie(
    printed: dict[str, Any], result: str, code: int, tmp_path: Path
) -> None:
    run = RolloutRun(["a", "b"], tmp_path, lambda end: None)
    for name in ("a", "b"):
        run.on_event(Event(event="begun", host=name))
    run.on_event(Event(event="result", host="a", state="ok", answer=json.dumps(printed)))
    end = run.ends["a"]
    assert (end.result, end.exit_code) == (result, code) and not run.stopped
    assert end.reason.isprintable() and len(end.reason) < 1200
    assert result == "installed" or end.reason


def test_a_machine_on_which_the_plan_crashes_is_left_out_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def judge(request: object, machine: planning.Surveyed, *more: object) -> planning._Fit:
        raise ZeroDivisionError("a number of its own")

    monkeypatch.setattr(planning, "_judge", judge)
    machine = planning.Surveyed("a", None, [])
    fitting, left = planning.plan(None, [machine], ">=3.10", str)  # type: ignore[arg-type]
    assert not fitting and left[0].machines == ["a"] and left[0].exit_code == 4
    assert "ZeroDivisionError" in left[0].reason
