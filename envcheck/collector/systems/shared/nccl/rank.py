"""One rank of NCCL, in a process of its own: it joins the others, sums with them, and is timed."""

import array
import os
import struct
import time

from ....kernels.timing import marks
from ..transfers.device import TransferDevice
from .library import FLOAT16, FLOAT32, INT32, MAX, Nccl, NcclError

COUNT = 1 << 20  # elements of each type that are summed
HANGS = "no end of"
_BOOTSTRAP = 15.0  # seconds until rank 0 has made the id that all join by
_PERIOD = 8191  # a prime: what comes back shifted is not what was sent
_KINDS = (("int32", INT32, "i", 4), ("float32", FLOAT32, "f", 4), ("float16", FLOAT16, "e", 2))

_SIZES = tuple(mib << 20 for mib in (1, 32, 256, 1024, 8192))
_MEMORY_MIB = 256  # where nobody knows what is free
_ROUNDS = 3
_ROUND = 0.15  # seconds
_SIZE_TAKES = 2.0  # seconds: no size is begun that is likely to take longer


def work(_framework, params, tell):
    """{"wrong": {type: elements}, "seconds": {bytes: [seconds of a round]}}."""
    place, number = params["rank"], params["ranks"]
    until = time.monotonic() + params["until"] * 0.9
    tell.stage("cuda")
    device = TransferDevice(place)
    tell.stage("load")
    own = NcclRank(device, Nccl(params["library"]), until)
    with tell.trial("one rank") as trial:
        own.communicator = own.library.join(own.library.unique_id(), 1, 0)
        trial["own"] = not any(own.wrong([place], place).values())
        own.library.leave(own.communicator)
    tell.stage("join")
    unique_id = _shared_id(own.library, params["folder"], place)
    own.communicator = own.library.join(unique_id, number, place)
    tell.stage("sum")
    answer = {"wrong": own.wrong(range(number), place), "seconds": {}}
    if params.get("rates", True) and not any(answer["wrong"].values()):
        tell.stage("bandwidth")
        most = (params.get("memory_mib") or _MEMORY_MIB) << 19
        answer["seconds"] = own.rates(most, _SIZES)
    return answer


class NcclRank(object):
    def __init__(self, device, library, until):
        self._device, self.library, self._until = device, library, until
        self.communicator = None

    def wrong(self, summed, place):
        """{type: elements of the all-reduce that are not the exact sum}. summed: the ranks."""
        found = {}
        for name, kind, code, width in _KINDS:
            with self._device.areas(COUNT * width) as (pointer,):
                self._device.upload(pointer, _numbers(code, width, [place]))
                self.library.all_reduce(pointer, COUNT, kind, self.communicator)
                self._wait()
                got = self._device.download(pointer, COUNT * width)
            found[name] = _different(got, _numbers(code, width, summed), width)
        return found

    def rates(self, most, sizes):
        """{bytes: [seconds of one all-reduce, a round each]} for the sizes that memory and time allow."""
        sizes = [size for size in sizes if size <= most] or [sizes[0]]
        seconds, found = 0.0, {}
        with self._device.areas(sizes[-1], 4) as (pointer, own):
            self._device.fill(pointer, 0, sizes[-1])
            for place, size in enumerate(sizes):
                likely = seconds * size / sizes[place - 1] if place else 0.0
                if likely * (_ROUNDS + 2) > _SIZE_TAKES:
                    break
                self._timed(pointer, size, 1)
                seconds = self._slowest(own, self._timed(pointer, size, 1))
                often = max(1, min(50, int(_ROUND / seconds))) if seconds > 0 else 1
                found[size] = [self._timed(pointer, size, often) for _ in range(_ROUNDS)]
        return found

    def _timed(self, pointer, size, often):
        """Seconds of one all-reduce, of so many one after another, by this GPU's own events."""
        with marks(self._device) as mark:
            first = mark()
            for _ in range(often):
                self.library.all_reduce(pointer, size // 4, FLOAT32, self.communicator)
            last = mark()
            self._wait(last)
            return self._device.elapsed(first, last) / often

    def _slowest(self, pointer, seconds):
        """The most that any rank says: all go on with the same number."""
        self._device.upload(pointer, struct.pack("f", seconds))
        self.library.all_reduce(pointer, 1, FLOAT32, self.communicator, MAX)
        self._wait()
        return struct.unpack("f", self._device.download(pointer, 4))[0]

    def _wait(self, event=None):
        """Until all work before is done; raises NcclError where that does not come to an end."""
        with marks(self._device) as mark:
            event = mark() if event is None else event
            pause = 0.0001
            while not self._device.query(event):
                self.library.check(self.communicator)
                if time.monotonic() > self._until:
                    raise NcclError("%s an all-reduce" % HANGS)
                time.sleep(pause)
                pause = min(pause * 2, 0.005)


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
        with open(path + ".draft", "wb") as file:
            file.write(library.unique_id())
        os.rename(path + ".draft", path)
    until = time.monotonic() + _BOOTSTRAP
    while not os.path.exists(path):
        if time.monotonic() > until:
            raise NcclError("%s rank 0's way to the others" % HANGS)
        time.sleep(0.005)
    with open(path, "rb") as file:
        return file.read()
