"""One pair of machines: they connect, send small and large messages each way, and add up numbers.

Each step is announced before it begins: where the child hangs or dies, the last one is to blame. Every large
message has a header with its size, so that the sender alone decides how much fits into the time.
"""

import datetime
import time

SIZES = (4 << 10, 64 << 10, 1 << 20, 4 << 20)  # bytes
GPU_SIZES = SIZES[:3] + (64 << 20,)
_REPEATS = 3
_PINGS = 12
_SHARE = 0.25  # of the time, for each direction and for the sums


class Link(object):
    """This machine's end of a group of ranks."""

    def __init__(self, torch, rank, size, place, seconds, gpu, tell):
        """place: (address, port) of the first rank's store. gpu: its CUDA ordinal, None for the CPU."""
        self.torch, self.dist = torch, torch.distributed
        self.rank, self.seconds, self.tell = rank, seconds, tell
        self.began = time.monotonic()
        self.device = torch.device("cpu" if gpu is None else "cuda:%d" % gpu)
        limit = datetime.timedelta(seconds=seconds)
        torch.set_num_threads(1)
        tell.stage("connect", "step")
        store = self.dist.TCPStore(place[0], place[1], size, rank == 0, limit)
        tell.stage("group", "step")
        if gpu is not None:
            torch.cuda.set_device(gpu)
        backend = "gloo" if gpu is None else "nccl"
        self.dist.init_process_group(
            backend, store=store, rank=rank, world_size=size, timeout=limit
        )

    def numbers(self, size, first=0):
        """Whole numbers whose sums over all ranks are exact: ``size`` bytes of them."""
        torch = self.torch
        return torch.arange(size // 4, dtype=torch.int32, device=self.device) % 65521 + first

    def empty(self, size):
        return self.torch.empty(size // 4, dtype=self.torch.int32, device=self.device)

    def word(self, value=0):
        return self.torch.tensor([value], dtype=self.torch.int64, device=self.device)

    def now(self):
        """Seconds, once all that was given to the GPU is done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()
        return time.monotonic()

    def fits(self, seconds, until):
        """Whether so long a step ends before that share of the time is over."""
        return self.now() - self.began + seconds < self.seconds * until


def run(torch, spec, tell):
    """spec: {"rank", "place", "seconds", "gpu"}. Reports {"latency_us", "offset", "rtt"}, {"sent": {bytes:
    best seconds}}, {"reduced": the same}, {"wrong": numbers that came damaged}."""
    link = Link(torch, spec["rank"], 2, spec["place"], spec["seconds"], spec["gpu"], tell)
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


def _small(link):
    """The latency of the smallest message, and the other machine's clock by this one's."""
    other, seen, word = 1 - link.rank, [], link.word()
    for _ in range(_PINGS):
        if link.rank == 0:
            before = time.time()
            link.dist.send(link.word(), other)
            link.dist.recv(word, other)
            theirs = word.item() / 1e6
            after = time.time()
            seen.append((after - before, theirs - (before + after) / 2))
        else:
            link.dist.recv(word, other)
            word.item()
            link.dist.send(link.word(int(time.time() * 1e6)), other)
    if not seen:
        return {}
    rtt, offset = min(seen)
    return {"latency_us": rtt * 5e5, "offset": offset, "rtt": rtt}


def _send(link, until):
    other, rate, best = 1 - link.rank, None, {}
    for size in SIZES if link.device.type == "cpu" else GPU_SIZES:
        for _ in range(_REPEATS):
            if not link.fits(size / rate if rate else 0.0, until):
                break
            link.tell.stage("send %d" % size, "step")
            link.dist.send(link.word(size), other)
            data = link.numbers(size, link.rank)
            began = link.now()
            link.dist.send(data, other)
            link.dist.recv(link.word(), other)
            best[size] = min(link.now() - began, best.get(size, 1e9))
            rate = size / best[size]
            link.tell.result({"sent": best}, "facts")
    link.dist.send(link.word(0), other)


def _receive(link):
    other, wrong = 1 - link.rank, 0
    while True:
        link.tell.stage("receive", "step")
        header = link.word()
        link.dist.recv(header, other)
        size = header.item()
        if not size:
            return wrong
        link.tell.stage("receive %d" % size, "step")
        data = link.empty(size)
        link.dist.recv(data, other)
        link.dist.send(link.word(1), other)
        wrong += int((data != link.numbers(size, other)).sum())


def _sum(link):
    wrong, best = 0, {}
    for size in (64 << 10, 1 << 20):
        took = 0.0
        for _ in range(_REPEATS):
            go_on = link.word(int(link.fits(4 * took, 1.0 - _SHARE / 5)))
            link.dist.broadcast(go_on, 0)
            if not go_on.item():
                break
            data = link.numbers(size, link.rank)
            began = link.now()
            link.dist.all_reduce(data)
            took = link.now() - began
            best[size] = min(took, best.get(size, 1e9))
            wrong += int((data != 2 * link.numbers(size) + 1).sum())
    link.tell.result({"reduced": best}, "facts")
    return wrong
