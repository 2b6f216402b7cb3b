"""The side of whoever wants to know: starts the process that samples, and keeps its latest samples."""

import collections
import json
import math
import os
import sys
import time

from ..runtime.line_pipe import LinePipe
from .child import BOOTSTRAP
from .quantities import ERRORS, NAMES

KEPT = 4000  # samples of a GPU
SHOWN = 600  # of a GPU, in what ``between`` returns
_FOREVER = 1e9  # seconds


class Telemetry(object):
    """``open`` it, ``poll`` it again and again, ask for what was ``between`` two times, ``close`` it.

    Times are CLOCK_MONOTONIC's, which all processes share (time.monotonic()). Never raises: what cannot
    be had is not there.

    lost: {GPU: (time, why)}, told once by NVML. missing: {GPU: why} there are no samples, or no more.
    errors: {GPU: {name of quantities.ERRORS: the latest value}}. xids: [(time, GPU, number)].
    """

    def __init__(self, start, root, pynvml=None, folder=None):
        """start(argv, deadline, cwd, env, …): a process.Child. folder: for its files, as LinePipe has it."""
        self._start = start
        self._root = root
        self._pynvml = pynvml
        self._folder = folder
        self._child = self._pipe = None
        self._gpus = []
        self._samples = {}
        self.lost, self.missing, self.errors = {}, {}, {}
        self.xids = []

    def open(self, gpus, interval=0.1, errors=False):
        """gpus: PCI addresses. interval: seconds. errors: counters of errors and Xids, too."""
        self._gpus = list(gpus)
        self._samples = {gpu: collections.deque(maxlen=KEPT) for gpu in gpus}
        self.errors = {gpu: {} for gpu in gpus}
        if not self._gpus:
            return
        try:
            self._pipe = LinePipe(self._folder)
        except OSError as error:
            self.missing = dict.fromkeys(gpus, "no pipe to sample through: %s" % error.strerror)
            return
        params = {
            "pynvml": self._pynvml,
            "gpus": self._gpus,
            "interval": interval,
            "errors": errors,
            "pipe": self._pipe.path,
            "ours": os.getpid(),
        }
        argv = [sys.executable or "python3", "-I", "-S", "-c", BOOTSTRAP, self._root]
        self._child = self._start(argv + [json.dumps(params)], _FOREVER, "/", None)

    def poll(self):
        """Take in what has come since, without waiting: [(kind, GPU, time, value)], as child.py tells it."""
        if self._pipe is None:
            return []
        over = self._child is not None and self._child.poll() is not None
        found = [record for record in map(self._record, self._pipe.lines()) if record]
        for kind, gpu, when, value in found:
            if kind == "s":
                self._samples[gpu].append((when, value))
            elif kind == "e":
                self.errors[gpu].update(value)
            elif kind == "x":
                self.xids = self.xids[-999:] + [(when, gpu, value)]
            elif kind == "l":
                self.lost.setdefault(gpu, (when, value))
            else:
                self.missing[gpu] = value
        if over and not found:
            words = self._child.result.describe()
            for gpu in self._gpus:
                self.missing.setdefault(gpu, "the process that samples " + words)
        return found

    def silent(self, seconds):
        """The GPUs of which nothing has come for so many seconds, and that are not known to be lost."""
        now = time.monotonic()
        return [
            gpu
            for gpu in self._gpus
            if gpu not in self.lost
            and self._samples[gpu]
            and now - self._samples[gpu][-1][0] > seconds
        ]

    def between(self, first, last, since=0.0):
        """GpuSamples (facts/telemetry.py) of each GPU that has some. since: what their seconds count from."""
        self.poll()
        found = []
        for gpu in self._gpus:
            here = [one for one in self._samples[gpu] if first <= one[0] <= last]
            here = here[:: -(-len(here) // SHOWN) or 1]
            if here:
                columns = zip(*[values for _when, values in here])
                values = {name: list(column) for name, column in zip(NAMES, columns)}
                there = {
                    name: column
                    for name, column in values.items()
                    if any(value is not None for value in column)
                }
                times = [round(when - since, 3) for when, _values in here]
                found.append({"gpu": gpu, "seconds": times, "values": there})
        return found

    def close(self):
        """End the process; what was sampled stays."""
        if self._child is not None:
            self._child.stop()
            ended = time.monotonic()
            while self._child.poll() is None and time.monotonic() - ended < 10.0:
                time.sleep(0.005)
            self.poll()
        if self._pipe is not None:
            self._pipe.close()
        self._child = self._pipe = None

    def _record(self, line):
        """(kind, GPU, time, value) of a line; None of one that is cut off or not ours."""
        try:
            kind, place, when, value = json.loads(line.decode("ascii"))
            gpu, when = self._gpus[place], float(when)
        except (ValueError, TypeError, IndexError, RecursionError):
            return None
        fits = _FITS.get(kind, _never) if isinstance(kind, str) else _never
        return (kind, gpu, when, value) if math.isfinite(when) and fits(value) else None


def _number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


def _sample(value):
    fits = isinstance(value, list) and len(value) == len(NAMES)
    return fits and all(one is None or _number(one) for one in value)


def _errors(value):
    return isinstance(value, dict) and all(
        name in ERRORS and _number(one) for name, one in value.items()
    )


def _text(value):
    return isinstance(value, str)


def _never(_value):
    return False


_FITS = {"s": _sample, "e": _errors, "x": _number, "n": _text, "l": _text}
