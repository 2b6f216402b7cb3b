"""NCCL: a process for each GPU, an all-reduce whose sum is exact, how fast it is, and by which way it went.

Control: the same all-reduce in a communicator of one rank, which gives each GPU's own numbers back. Where
the GPUs fail together, the likely causes are taken away one at a time: multicast, then direct transfers.
"""

import array
import contextlib
import glob
import os
import struct
import tempfile
import threading
import time

from ...kernels.driver import Driver
from .. import ranks, telling
from ..nccl import log as nccl_log
from ..nccl.library import FLOAT16, FLOAT32, INT32, MAX, Nccl, NcclError

SYSTEM = "nccl"
GPUS = 2
ALONE = True
LIBRARIES = ("libnccl",)
DEADLINE = 85.0

NVLS_OFF, P2P_OFF = "NCCL_NVLS_ENABLE=0", "NCCL_P2P_DISABLE=1"
_FIRST, _AGAIN = 0.36, 0.24  # of the whole time, for all ranks of a trial
_PATIENCE = 5.0  # seconds that the others still get once a rank has failed
_BOOTSTRAP = 15.0  # seconds until rank 0 has made the id that all join by

_COUNT = 1 << 20  # elements of each type
_PERIOD = 8191  # a prime: what comes back shifted is not what was sent
_KINDS = (("int32", INT32, "i", 4), ("float32", FLOAT32, "f", 4), ("float16", FLOAT16, "e", 2))

_SIZES = tuple(mib << 20 for mib in (1, 32, 256, 1024, 8192))
_MEMORY_MIB = 256  # where nobody knows what is free
_ROUNDS = 3
_ROUND = 0.15  # seconds
_SIZE_TAKES = 2.0  # seconds: no size is begun that is likely to take longer

_STAGE = "@nccl-stage "
_SEGMENT = "@nccl-segment "
_SEGMENTS = "/dev/shm/nccl-"
_DIRECT = ("P2P", "p2p", "IPC", "Ipc", "CUMEM", "peer access")
_MULTICAST = ("NVLS", "nvls", "ulticast")


def run(_framework, params, tell):
    paths = (params.get("libraries") or {}).get("libnccl")
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    if not paths:
        raise telling.NotApplicable("the target has no libnccl")
    if "MIG-" in visible:
        raise telling.NotApplicable("MIG instances: NCCL joins whole GPUs")
    number = len(visible.split(","))
    if number < 2:
        raise telling.NotApplicable("one GPU")
    params = dict(params, library=paths[0])
    first = _Attempt(params, number, params["seconds"] * _FIRST, {})
    again = params["seconds"] * _AGAIN
    with tell.trial("all-reduce") as trial:
        trial["library"] = paths[0]
        if len(paths) > 1:
            trial["others"] = paths[1:]
        first.go(trial)
    with tell.trial("one rank", control=True) as trial:
        first.alone(trial)
    if first.needs(_MULTICAST) or (first.right and first.log.get("nvls")):
        second = _Attempt(params, number, again, {"NCCL_NVLS_ENABLE": "0"})
        with tell.trial(NVLS_OFF) as trial:
            second.go(trial)
        if second.right:
            return
    if (first.needs(_DIRECT) or first.hung or first.wrong) and not first.has("NCCL_P2P_DISABLE"):
        with tell.trial(P2P_OFF) as trial:
            third = {"NCCL_P2P_DISABLE": "1"}
            _Attempt(dict(params, rates=False), number, again, third).go(trial)


class _Attempt(object):
    """All ranks together, once."""

    def __init__(self, params, number, seconds, settings):
        self._params = params
        self._number = number
        self._seconds = seconds
        self._settings = settings
        self._ranks = []
        self.log = {}
        self.wrong = self.hung = self.right = False

    def go(self, trial):
        """Run the ranks, and tell; raises RuntimeError where one did not come to its end."""
        trial["ranks"] = self._number
        with tempfile.TemporaryDirectory(prefix="nccl-") as folder:
            environ = dict(nccl_log.ENVIRON, **self._settings)
            self._ranks = ranks.run(
                dict(self._params, folder=folder, until=self._seconds),
                self._number,
                self._seconds,
                lambda rank: dict(environ, NCCL_DEBUG_FILE=_log_of(folder, rank)),
                patience=_PATIENCE,
            )
            self._read(folder)
        _remove(self._ranks)
        for name, value in sorted(self.log.items()):
            trial[name] = value
        self._tell_sums(trial)
        self._tell_rates(trial)
        self._raise(trial)
        self.right = not self.wrong

    def alone(self, trial):
        """What each rank got in a communicator of its own."""
        trial["ranks"] = 1
        told = [one.answer["alone"] for one in self._ranks if one.answer]
        told = told or [_said(one, "alone") for one in self._ranks if _said(one, "alone")]
        if not told:
            raise RuntimeError(_failed(self._ranks) or "no rank came so far")
        trial["own_numbers"] = sum(one == "own" for one in told)

    def needs(self, words):
        """Whether it failed, and its warnings name one of these."""
        lines = self.log.get("warnings", []) + [one.reason for one in self._ranks]
        return not self.right and any(word in line for line in lines for word in words)

    def has(self, variable):
        """Whether NCCL found it set."""
        return any(one.startswith(variable + "=") for one in self.log.get("settings", []))

    def _read(self, folder):
        whole, together = "", ""
        for one in self._ranks:
            text = _content(_log_of(folder, one.number)) + one.stderr
            since = _said(one, "join")
            whole += text
            together += text[int(since) :] if since.isdecimal() else ""
        self.log = nccl_log.read(together)
        for name in ("version", "built_cuda", "settings", "warnings"):
            found = nccl_log.read(whole).get(name)
            if found:
                self.log[name] = found

    def _tell_sums(self, trial):
        answers = [one for one in self._ranks if one.answer]
        wrong = [
            "rank %d, %s: %d of %d" % (one.number, kind, count, _COUNT)
            for one in answers
            for kind, count in sorted(one.answer["wrong"].items())
            if count
        ]
        self.wrong = bool(wrong)
        if answers:
            trial["compared"] = sum(len(one.answer["wrong"]) * _COUNT for one in answers)
            trial["wrong"] = sum(sum(one.answer["wrong"].values()) for one in answers)
        if wrong:
            trial["wrong_in"] = wrong

    def _tell_rates(self, trial):
        """Bus bandwidth in GB/s: the slowest rank's time in the best round."""
        times = [one.answer["seconds"] for one in self._ranks if one.answer]
        if len(times) < self._number:
            return
        for size in sorted(times[0], key=int):
            rounds = zip(*[one[size] for one in times if size in one])
            best = min(max(of_all) for of_all in rounds)
            if best > 0:
                rate = int(size) / best * 2 * (self._number - 1) / self._number
                trial["bus_%d_mib" % (int(size) >> 20)] = round(rate / 1e9, 2)

    def _raise(self, trial):
        lacking = [one for one in self._ranks if one.answer is None]
        if not lacking:
            return
        trial["stages"] = ["rank %d: %s" % (one.number, _stage(one)) for one in lacking]
        reason = _failed(self._ranks)
        if not reason:
            self.hung = trial["hung"] = True
            reason = "no end within %g s" % self._seconds
        raise RuntimeError(reason)


def _failed(found):
    """The first reason of a rank that failed by itself; "" where those without an answer just hung."""
    for one in found:
        if one.answer is None and not _was_stopped(one):
            return "rank %d: %s" % (one.number, one.reason)
    return ""


def _was_stopped(one):
    return (
        "gave no answer within" in one.reason or "was stopped" in one.reason or _HANGS in one.reason
    )


def _stage(one):
    lines = [line for line in one.stderr.splitlines() if line.startswith(_STAGE)]
    return lines[-1][len(_STAGE) :].split(" ", 1)[0] if lines else "start"


def _said(one, stage):
    """What a rank told with that stage; "" where it did not come to it."""
    for line in one.stderr.splitlines():
        name, _space, told = line[len(_STAGE) :].partition(" ")
        if line.startswith(_STAGE) and name == stage:
            return told.strip()
    return ""


def _log_of(folder, rank):
    return os.path.join(folder, "log.%d" % rank)


def _content(path):
    try:
        with open(path, "rb") as file:
            return file.read(8 << 20).decode("utf-8", "replace")
    except OSError:
        return ""


def _remove(found):
    """Shared memory that killed ranks left behind: of those files that they themselves had mapped."""
    for one in found:
        for line in one.stderr.splitlines():
            path = line[len(_SEGMENT) :].strip()
            if line.startswith(_SEGMENT) and path.startswith(_SEGMENTS) and ".." not in path:
                with contextlib.suppress(OSError):
                    os.unlink(path)


# -- a rank


def rank(_framework, params):
    threading.Thread(target=_watch_segments, daemon=True).start()
    try:
        return _as_rank(params)
    finally:
        _tell_segments()


def _as_rank(params):
    place, number = params["rank"], params["ranks"]
    until = time.monotonic() + params["until"] * 0.9
    _say("cuda")
    driver = Driver()
    driver.open(place)
    _say("load")
    library = Nccl(params["library"])
    work = _Rank(driver, library, until)
    _say("one-rank")
    work.join(library.unique_id(), 1, 0)
    alone = "own" if not any(work.wrong(1, place).values()) else "other"
    _say("alone", alone)
    library.leave(work.communicator)
    log = os.environ.get("NCCL_DEBUG_FILE", "")
    _say("join", len(_content(log)) if os.path.exists(log) else 0)
    work.join(_shared_id(library, params["folder"], place), number, place)
    _say("sum")
    wrong = work.wrong(number, None, place)
    seconds = {}
    if params.get("rates", True) and not any(wrong.values()):
        _say("bandwidth")
        most = (params.get("memory_mib") or _MEMORY_MIB) << 20
        seconds = work.rates(most // 2)
    _say("end")
    return {"alone": alone, "wrong": wrong, "seconds": seconds, "version": library.version()}


_HANGS = "no end of"


class _Rank(object):
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
            pointer = self._driver.allocate(_COUNT * width)
            try:
                self._driver.upload(pointer, _numbers(code, width, [place]))
                self._library.all_reduce(pointer, _COUNT, kind, self.communicator)
                self._wait()
                got = self._driver.download(pointer, _COUNT * width)
            finally:
                self._driver.free(pointer)
            found[name] = _different(got, _numbers(code, width, summed), width)
        return found

    def rates(self, most):
        """{bytes: [seconds of one all-reduce, a round each]} for the sizes that memory and time allow."""
        sizes = [size for size in _SIZES if size <= most] or [_SIZES[0]]
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
                raise NcclError("%s an all-reduce" % _HANGS)
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
    return (data * (_COUNT // _PERIOD + 1))[: _COUNT * width]


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
            raise NcclError("%s rank 0's way to the others" % _HANGS)
        time.sleep(0.005)
    with open(path, "rb") as file:
        return file.read()


def _watch_segments():
    while True:
        time.sleep(0.5)
        _tell_segments()


def _tell_segments():
    """Tell which of NCCL's files in /dev/shm this process has mapped."""
    if not glob.glob(_SEGMENTS + "*"):
        return
    with contextlib.suppress(OSError), open("/proc/self/maps", errors="replace") as file:
        lines = [line for line in file if _SEGMENTS in line and "(deleted)" not in line]
        for path in sorted({line[line.index(_SEGMENTS) :].strip() for line in lines}):
            _write(_SEGMENT + path)


def _say(stage, told=""):
    _write("%s%s %s" % (_STAGE, stage, told))


def _write(line):
    os.write(2, ("\n%s\n" % line).encode("utf-8"))
