"""How machines find a common start without a clock that they share.

Three of the machines, the hubs, keep a store each (torch's TCPStore). Every machine registers at all of them,
and starts at the first "go" that it gets from any: a hub that hangs, or cannot be reached, delays none. A
hub says "go" once all are there, or when none has come for a while.
"""

import datetime
import json
import time

HUBS = 3
_LATE = 1.0  # seconds after "go" in which a machine may still start
_LOOK = 0.05


def hubs(machines):
    """The indices of the machines that keep a store."""
    return sorted({machines * one // HUBS for one in range(HUBS)})


def host(torch, spec, tell):
    """A hub's child. spec: {"port", "machines", "patience", "quiet"}."""
    store = _store(torch, "127.0.0.1", spec["port"], spec["patience"], True)
    began = latest = time.monotonic()
    seen, patience, quiet = 0, spec["patience"] * 0.8, spec["quiet"]
    while seen < spec["machines"] and time.monotonic() - began < patience:
        count = store.add("count", 0)
        if count != seen:
            seen, latest = count, time.monotonic()
        if seen and time.monotonic() - latest > quiet:
            break  # alone, too: the others may be out of reach, which its pairs then show
        time.sleep(_LOOK)
    came = [one for one in range(spec["machines"]) if store.check(["needs/%d" % one])]
    needs = sorted(float(store.get("needs/%d" % one)) for one in came) or [1.0]
    store.set("go", json.dumps({"slot": needs[len(needs) * 9 // 10]}))
    tell.result({"seen": seen}, "hub")
    time.sleep(_LATE)
    store.set("closed", "1")
    time.sleep(2 * _LATE)


def join(torch, spec, tell):
    """A machine's child that waits for one hub. spec: {"address", "port", "index", "needs", "patience"}."""
    store = _store(torch, spec["address"], spec["port"], spec["patience"], False)
    if store.check(["closed"]):
        raise RuntimeError("the others had begun before it came")
    store.set("needs/%d" % spec["index"], "%.3f" % spec["needs"])
    store.add("count", 1)
    tell.result(json.loads(store.get("go").decode()), "go")


def _store(torch, address, port, seconds, is_hub):
    limit = datetime.timedelta(seconds=seconds)
    return torch.distributed.TCPStore(address, port, 1, is_hub, limit, False)
