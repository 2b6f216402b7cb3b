"""How machines agree on a start: hubs that take their connections, and the machines that join them."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from envcheck.collector.systems.network import meeting
from envcheck.collector.systems.shared.distributed.loopback import free_ports

SPEC: dict[str, Any] = {"patience": 900.0, "quiet": 900.0}


class Results:
    def __init__(self) -> None:
        self.results: dict[str, Any] = {}

    def result(self, value: object, key: str) -> None:
        self.results[key] = value


@pytest.fixture
def port() -> int:
    return free_ports(1)[0]


def begun(function: Any, **spec: Any) -> tuple[threading.Thread, Results]:
    results = Results()
    thread = threading.Thread(target=function, args=(None, SPEC | spec, results), daemon=True)
    thread.start()
    return thread, results


def joined(port: int, *needs: float) -> list[tuple[threading.Thread, Results]]:
    return [
        begun(meeting.join, address="127.0.0.1", port=port, index=index, needs=seconds)
        for index, seconds in enumerate(needs)
    ]


def test_all_get_the_slot_that_nine_of_ten_can_keep(port: int) -> None:
    machines = joined(port, *[2.0] * 9, 3.0, 60.0)  # before the hub listens
    hub, _results = begun(meeting.host, port=port, machines=11)
    for thread, machine in machines:
        thread.join()
        assert machine.results == {"go": {"slot": 3.0}}
    hub.join()


def test_what_is_no_machine_neither_counts_nor_ends_a_hub(port: int) -> None:
    hub, _results = begun(meeting.host, port=port, machines=1)
    for garbage in (b"GET / HTTP/1.1\r\n\r\n", b"1 2 3\n", b"\xff" * 500, b""):
        with meeting.connected(("127.0.0.1", port), 900.0) as stranger:
            stranger.sendall(garbage)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) in (b"", None)
    ((thread, machine),) = joined(port, 2.5)
    thread.join()
    hub.join()
    assert machine.results == {"go": {"slot": 2.5}}


def test_a_hub_goes_on_with_those_who_came_where_no_other_comes(port: int) -> None:
    hub, _results = begun(meeting.host, port=port, machines=3, quiet=0.0)
    ((thread, machine),) = joined(port, 2.5)
    thread.join()
    hub.join()
    assert machine.results == {"go": {"slot": 2.5}}


def test_where_no_hub_listens_the_refusal_is_the_reason(port: int) -> None:
    spec = {"address": "127.0.0.1", "port": port, "index": 0, "needs": 1.0, "patience": 0.1}
    with pytest.raises(ConnectionRefusedError):
        meeting.join(None, spec, Results())
