"""When a killed process counts as stuck: not while it is only slow to give everything back."""

from __future__ import annotations

import pytest

from envcheck.collector.runtime import orphans

EXITING = 0x40_0004  # PF_EXITING among the flags of /proc/PID/stat


@pytest.mark.parametrize(
    ("state", "flags", "waited", "stuck"),
    [
        ("D", 0x40_0000, 0.1, False),
        ("D", 0x40_0000, 0.6, True),
        ("D", EXITING, 0.6, False),
        ("R", EXITING, 4.9, False),
        ("D", EXITING, 5.1, True),
        ("Z", EXITING, 0.6, False),
        ("Z", EXITING, 5.1, True),
    ],
)
def test_a_dying_process_gets_more_time(
    monkeypatch: pytest.MonkeyPatch, state: str, flags: int, waited: float, stuck: bool
) -> None:
    fields = [state, "1", "7", "7", "0", "-1", str(flags), "0"]
    monkeypatch.setattr(orphans, "_stat", lambda pid: fields)
    assert orphans.is_stuck(7, waited) is stuck


def test_what_must_be_left_behind_is_named_by_the_probe_it_came_from() -> None:
    from types import SimpleNamespace

    from envcheck.collector import probes, probing
    from envcheck.collector.main import Request
    from envcheck.collector.run import Run

    machine = {name: {"outcome": "timeout"} for name in ("host", "nvml")}
    stage = probing._Probing(Run(Request()))
    stage._running = [
        probing._Running(machine, probes.load("host"), SimpleNamespace(pid=10)),
        probing._Running(machine, probes.load("nvml"), SimpleNamespace(pid=11)),
    ]
    hung, escaped = ({"pid": pid, "command": "c", "state": "D"} for pid in (12, 13))
    stage._name_stuck([(11, hung), (99, escaped)])
    assert machine["nvml"] == {"outcome": "timeout", "stuck": [hung]}
    assert machine["host"]["stuck"] == [escaped]  # of no known session: it must be named somewhere
