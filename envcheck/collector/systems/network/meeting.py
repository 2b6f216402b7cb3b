"""How machines find a common start without a clock that they share.

Three of the machines, the hubs, take a connection of every other. Every machine registers at all of them,
and starts at the first "go" that it gets from any: a hub that hangs, or cannot be reached, delays none. A hub
says "go" once all are there, or when none has come for a while.
"""

import contextlib
import json
import socket
import time

HUBS = 3
_LATE = 1.0  # seconds after "go" in which a machine may still start
_LOOK = 0.05
_LINE = 100  # bytes


def hubs(machines):
    """The indices of the machines that are hubs."""
    return sorted({machines * one // HUBS for one in range(HUBS)})


def host(_join, spec, _tell):
    """A hub's child. spec: {"port", "machines", "patience", "quiet"}."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("", spec["port"]))
        listener.listen(spec["machines"] + 16)
        listener.settimeout(_LOOK)
        began = latest = time.monotonic()
        came, needs, patience = [], {}, spec["patience"] * 0.8
        while len(needs) < spec["machines"] and time.monotonic() - began < patience:
            if _take(listener, came, needs):
                latest = time.monotonic()
            elif needs and time.monotonic() - latest > spec["quiet"]:
                break  # alone, too: the others may be out of reach, which its pairs then show
        slots = sorted(one for one in needs.values() if 0 < one < 1e3) or [1.0]
        go = json.dumps({"slot": slots[len(slots) * 9 // 10]}).encode() + b"\n"
        over = time.monotonic() + _LATE
        while came or time.monotonic() < over:
            for connection in came:
                with contextlib.suppress(OSError), connection:  # it may be gone
                    connection.sendall(go)
            came = []
            _take(listener, came, needs)


def _take(listener, came, needs):
    """Whether another machine has come, which says its index and how many seconds it needs for a round."""
    connection = None
    try:
        connection = listener.accept()[0]
        connection.settimeout(1.0)
        index, seconds = connection.makefile("rb").readline(_LINE).split()
        needs[int(index)] = float(seconds)
    except (OSError, ValueError):
        if connection is not None:
            connection.close()
        return False
    came.append(connection)
    return True


def join(_join, spec, tell):
    """A machine's child that waits for one hub. spec: {"address", "port", "index", "needs", "patience"}."""
    with connected((spec["address"], spec["port"]), spec["patience"]) as connection:
        connection.sendall(b"%d %.3f\n" % (spec["index"], spec["needs"]))
        tell.result(json.loads(connection.makefile("r").readline(_LINE)), "go")


def connected(place, seconds):
    """A connection with another machine, which may begin later."""
    until = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(place, seconds)
        except ConnectionError:
            if time.monotonic() > until:
                raise
            time.sleep(4 * _LOOK)
