"""One pair of machines: they connect, send small and large messages each way, and add up numbers.

Each step is announced before it begins: where the child hangs or dies, the last one is to blame. Every large
message has a header with its size, so that the sender alone decides how much fits into the time.
"""

import time

SIZES = (4 << 10, 64 << 10, 1 << 20, 4 << 20)  # bytes
GPU_SIZES = SIZES[:3] + (64 << 20,)
_REPEATS = 3
_PINGS = 12
_SHARE = 0.25  # of the time, for each direction and for the sums


def run(join, spec, tell):
    """join: what makes a Link of the framework. spec: {"rank", "place", "seconds", "gpu"}. Reports
    {"latency_us", "offset", "rtt"}, {"sent": {bytes: best seconds}}, {"reduced": the same}, {"wrong": numbers
    that came damaged}."""
    link = join(spec["rank"], 2, spec["place"], spec["seconds"], spec["gpu"], tell)
    tell.stage("small", "step")
    tell.result(_small(link), "facts")
    wrong = 0
    for sender in (0, 1):
        if link.rank == sender:
            _send(link, 0.25 + _SHARE * (sender + 1))
        else:
            wrong += _receive(link)
    tell.stage("sum", "step")
    wrong += _sum(link)
    tell.result({"wrong": wrong}, "facts")
    return link


def _small(link):
    """The latency of the smallest message, and the other machine's clock by this one's."""
    seen = []
    for _ in range(_PINGS):
        if link.rank == 0:
            before = time.time()
            link.say(0)
            theirs = link.hear() / 1e6
            after = time.time()
            seen.append((after - before, theirs - (before + after) / 2))
        else:
            link.hear()
            link.say(int(time.time() * 1e6))
    if link.rank:
        return {}
    rtt, offset = min(seen)
    return {"latency_us": rtt * 5e5, "offset": offset, "rtt": rtt}


def _send(link, until):
    rate, best = None, {}
    for size in SIZES if link.gpu is None else GPU_SIZES:
        for _ in range(_REPEATS):
            if not link.fits(size / rate if rate else 0.0, until):
                break
            link.tell.stage("send %d" % size, "step")
            link.say(size)
            data = link.ready(link.numbers(size, link.rank))
            began = link.now()
            link.send(data)
            link.hear()
            best[size] = min(link.now() - began, best.get(size, 1e9))
            rate = size / best[size]
            link.tell.result({"sent": best}, "facts")
    link.say(0)


def _receive(link):
    wrong = 0
    while True:
        link.tell.stage("receive", "step")
        size = link.hear()
        if not size:
            return wrong
        link.tell.stage("receive %d" % size, "step")
        data = link.receive(size)
        link.say(1)
        wrong += link.differ(data, link.numbers(size, 1 - link.rank))


def _sum(link):
    wrong, best = 0, {}
    for size in (64 << 10, 1 << 20):
        took = 0.0
        for _ in range(_REPEATS):
            if not link.word(int(link.fits(4 * took, 1.0 - _SHARE / 5)), 0):
                break
            data = link.ready(link.numbers(size, link.rank))
            began = link.now()
            found = link.collective("all-reduce", data)
            took = link.now() - began
            best[size] = min(took, best.get(size, 1e9))
            wrong += link.differ(found, 2 * link.numbers(size) + 1)
    link.tell.result({"reduced": best}, "facts")
    return wrong
