"""The harness of envcheck bench with processes: a stand-in style whose rows die, flood and report rubbish."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest
from processes import PATIENCE, begun, lines, running, wait_for
from standin_bench import Bench

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench(tmp_path_factory.mktemp("bench"))


@pytest.fixture
def bench(made: Bench) -> Iterator[Bench]:
    """Whatever a test does, nothing is to be left of it."""
    yield made
    try:
        assert wait_for(lambda: not running(made.home)), running(made.home)
        assert wait_for(lambda: not made.left()), made.left()
    finally:
        for pid, _parent, _command in running(made.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def test_rows_are_measured_one_after_the_other_with_events_on_the_way(bench: Bench) -> None:
    rows = bench.rows({"name": "a", "precision": "tf32"}, {"name": "b"})
    for run in rows.values():
        assert run["outcome"] == "ok" and len(run["repetitions"]) == 3
        assert run["parameters"] == 1234 and run["framework_version"] == "2.9.0+standin"
        assert run["losses"] == [1.0] * 3
    a, b = (rows[name]["evidence"] for name in "ab")
    assert (a["products"], a["precision"], a["CUDA_VISIBLE_DEVICES"]) == (3, "tf32", "-1")
    assert a["TMPDIR"] != b["TMPDIR"] and a["TMPDIR"].startswith(f"{bench.home}/tmp/")
    last = rows["a"]["repetitions"][-1]["began"]
    assert last < rows["b"]["repetitions"][0]["began"]
    assert {event["phase"] for event in bench.events} >= {"import", "measure", "over"}
    assert bench.events[-1]["phase"] == "over" and bench.events[-1]["outcome"] == "ok"


@pytest.mark.parametrize(
    ("report", "outcome", "reason"),
    [
        ({"kill": 5}, "crashed", "died by signal 9 (SIGKILL): farewell"),
        ({"kill": 5, "memory": True}, "out-of-memory", "cuda: out of memory"),
        ({"exit": 5}, "crashed", "exited with status 3"),
        ({"raise": "cuDNN: bad param"}, "error", "RuntimeError: cuDNN: bad param"),
        ({"raise": "CUDA out of memory. Tried 2 GiB"}, "out-of-memory", "CUDA out of memory"),
        ({"flood": 5}, "crashed", "wrote more than 16 MiB"),
        ({"rubbish": 5}, "ok", ""),
        ({"nan": True}, "ok", ""),
        ({"orphan": True}, "ok", ""),
    ],
)
def test_what_one_row_does_costs_no_other(
    bench: Bench, report: dict[str, Any], outcome: str, reason: str
) -> None:
    rows = bench.rows({"name": "a"}, {"name": "b"}, standin={"a": report}, repetitions=4)
    a, b = rows["a"], rows["b"]
    assert a["outcome"] == outcome and reason in a.get("reason", "")
    assert b["outcome"] == "ok" and len(b["repetitions"]) == 4
    if "nan" in report:
        assert a["losses"] == [None] * 4


def started(bench: Bench, **standin: Any) -> subprocess.Popen[bytes]:
    """Two rows at work, of which the second is being measured for ever."""
    argv = bench.argv({"name": "a"}, {"name": "b"}, repetitions=10, seconds=0.02)
    argv[2] = argv[2].replace(
        "events.append", "lambda one: print(one, file=sys.stderr, flush=True)"
    )
    argv[2] = argv[2].replace('"events": events', '"events": []')
    slow = {"b": {"step": 0.3}} | standin
    process = begun(argv, cwd=bench.root, env=bench.environment(**slow), start_new_session=True)  # fmt: skip
    for line in lines(process, process.stderr):
        if b"'row': 'b'" in line and b"'measure'" in line and b"'round': 2" in line:
            break
    return process


@pytest.mark.parametrize("who", ["envcheck", "guard", "collector", "row"])
def test_kill_9_leaves_nothing(bench: Bench, who: str) -> None:
    process = started(bench)
    at_work = running(bench.home)
    by_parent = {
        parent: pid for pid, parent, command in at_work if b"main(sys.argv[2:])" in command
    }
    guard = by_parent[process.pid]
    collector = by_parent[guard]
    row = next(
        pid for pid, parent, command in at_work if parent == collector and b'"place"' in command
    )
    os.kill({"envcheck": process.pid, "guard": guard, "collector": collector, "row": row}[who], 9)
    if who == "row":  # which costs that row, and the bench goes on
        output, _errors = process.communicate(timeout=PATIENCE)
        b = json.loads(output)["bench"]["facts"]["rows"][1]
        assert b["outcome"] == "crashed" and b["repetitions"]
    else:
        process.communicate(timeout=PATIENCE)
