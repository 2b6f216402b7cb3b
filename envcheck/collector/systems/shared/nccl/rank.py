"""One rank of NCCL, in a process of its own: it joins the others, sums with them, and is timed."""

import array
import os
import struct
import threading
import time

from ....kernels.driver import Driver
from ..transfers import by_size
from .library import FLOAT16, FLOAT32, INT32, MAX, Nccl, NcclError
from .words import COUNT, HANGS, content, say, tell_segments, watch_segments

_BOOTSTRAP = 15.0  # seconds until rank 0 has made the id that all join by

_PERIOD = 8191  # a prime: what comes back shifted is not what was sent
_KINDS = (("int32", INT32, "i", 4), ("float32", FLOAT32, "f", 4), ("float16", FLOAT16, "e", 2))

_SIZES = tuple(mib << 20 for mib in (1, 32, 256, 1024, 8192))
_MEMORY_MIB = 256  # where nobody knows what is free
_ROUNDS = 3
_ROUND = 0.15  # seconds
_SIZE_TAKES = 2.0  # seconds: no size is begun that is likely to take longer


def work(params):
    """What this rank saw."""
    threading.Thread(target=watch_segments, daemon=True).start()
    try:
        return _as_rank(params)
    finally:
        tell_segments()


def _as_rank(params):
    place, number = params["rank"], params["ranks"]
    until = time.monotonic() + params["until"] * 0.9
    say("cuda")
    driver = Driver()
    driver.open(place)
    say("load")
    library = Nccl(params["library"])
    own = NcclRank(driver, library, until)
    say("one-rank")
    own.join(library.unique_id(), 1, 0)
    alone = "own" if not any(own.wrong(1, place).values()) else "other"
    say("alone", alone)
    library.leave(own.communicator)
    log = os.environ.get("NCCL_DEBUG_FILE", "")
    say("join", len(content(log)) if os.path.exists(log) else 0)
    own.join(_shared_id(library, params["folder"], place), number, place)
    say("sum")
    wrong = own.wrong(number, None, place)
    seconds, swept = {}, {}
    if params.get("rates", True) and not any(wrong.values()):
        say("bandwidth")
        most = (params.get("memory_mib") or _MEMORY_MIB) << 20
        seconds = own.rates(most // 2)
        if params.get("sweep"):
            say("by-size")
            swept = own.rates(most // 2, by_size.SIZES)
    say("end")
    answer = {"alone": alone, "wrong": wrong, "seconds": seconds, "by_size": swept}
    return dict(answer, version=library.version())


class NcclRank(object):
    def __init__(self, driver, library, until):
        self._driver = driver
        self._library = library
        self._until = until
        self.communicator = None

    def join(self, unique_id, number, place):
        self.communicator = self._library.join(unique_id, number, place)

    def wrong(self, number, only, place=None):
        """{type: elements of the all-reduce that are not the exact sum}; only: the one rank that sums."""
        found = {}
        place = only if place is None else place
        summed = range(number) if only is None else [only]
        for name, kind, code, width in _KINDS:
            pointer = self._driver.allocate(COUNT * width)
            try:
                self._driver.upload(pointer, _numbers(code, width, [place]))
                self._library.all_reduce(pointer, COUNT, kind, self.communicator)
                self._wait()
                got = self._driver.download(pointer, COUNT * width)
            finally:
                self._driver.free(pointer)
            found[name] = _different(got, _numbers(code, width, summed), width)
        return found

    def rates(self, most, sizes=_SIZES):
        """{bytes: [seconds of one all-reduce, a round each]} for the sizes that memory and time allow."""
        sizes = [size for size in sizes if size <= most] or [sizes[0]]
        pointer = self._driver.allocate(sizes[-1])
        own = self._driver.allocate(4)
        seconds, found = 0.0, {}
        try:
            self._driver.fill(pointer, 0, sizes[-1])
            for place, size in enumerate(sizes):
                likely = seconds * size / sizes[place - 1] if place else 0.0
                if likely * (_ROUNDS + 2) > _SIZE_TAKES:
                    break
                self._timed(pointer, size, 1)
                seconds = self._slowest(own, self._timed(pointer, size, 1))
                often = max(1, min(50, int(_ROUND / seconds))) if seconds > 0 else 1
                found[size] = [self._timed(pointer, size, often) for _ in range(_ROUNDS)]
        finally:
            self._driver.free(own)
            self._driver.free(pointer)
        return found

    def _timed(self, pointer, size, often):
        """Seconds of one all-reduce, of so many one after another, by this GPU's own events."""
        first, last = self._driver.event(), self._driver.event()
        self._driver.record(first)
        for _ in range(often):
            self._library.all_reduce(pointer, size // 4, FLOAT32, self.communicator)
        self._driver.record(last)
        self._wait(last)
        seconds = self._driver.elapsed(first, last) / often
        self._driver.destroy_event(first)
        self._driver.destroy_event(last)
        return seconds

    def _slowest(self, pointer, seconds):
        """The most that any rank says: all go on with the same number."""
        self._driver.upload(pointer, struct.pack("f", seconds))
        self._library.all_reduce(pointer, 1, FLOAT32, self.communicator, MAX)
        self._wait()
        return struct.unpack("f", self._driver.download(pointer, 4))[0]

    def _wait(self, event=None):
        """Until all work before is done; raises NcclError where that does not come to an end."""
        made = None
        if event is None:
            event = made = self._driver.event()
            self._driver.record(event)
        pause = 0.0001
        while not self._driver.query(event):
            self._library.check(self.communicator)
            if time.monotonic() > self._until:
                raise NcclError("%s an all-reduce" % HANGS)
            time.sleep(pause)
            pause = min(pause * 2, 0.005)
        if made is not None:
            self._driver.destroy_event(made)


def _numbers(code, width, places):
    """The elements' bytes of these ranks' numbers, summed. Every sum on the way to it is exact."""
    most = 32 if code == "e" else 65521  # half precision has all integers up to 2048
    few = [
        sum((number * 7919) % most + place for place in places) * (0.125 if code == "f" else 1)
        for number in range(_PERIOD)
    ]
    data = struct.pack("%d%s" % (_PERIOD, code), *few)
    return (data * (COUNT // _PERIOD + 1))[: COUNT * width]


def _different(got, wanted, width):
    if got == wanted:
        return 0
    code = {2: "H", 4: "I"}[width]
    pairs = zip(array.array(code, got), array.array(code, wanted))
    return sum(one != other for one, other in pairs)


def _shared_id(library, folder, place):
    """The id that rank 0 makes and all others wait for, in a file."""
    path = os.path.join(folder, "id")
    if place == 0:
        made = library.unique_id()
        with open(path + ".draft", "wb") as file:
            file.write(made)
        os.rename(path + ".draft", path)
        return made
    until = time.monotonic() + _BOOTSTRAP
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise NcclError("%s rank 0's way to the others" % HANGS)
        time.sleep(0.005)
    with open(path, "rb") as file:
        return file.read()
