"""Samples of GPUs while something else runs: starts the process that takes them, and keeps the latest."""

import collections
import math
import os
import sys
import time

from .. import worker
from ..worker.parent import Limits, Worker
from ..worker.pipes import LinePipe
from .quantities import ERRORS, NAMES

KEPT = 4000  # samples of a GPU
SHOWN = 600  # of a GPU, in what ``between`` returns
_FOREVER = 1e9  # seconds
_ENDING = 10.0  # seconds for the process to end


class Telemetry(object):
    """``open`` it, ``poll`` it again and again, ask for what was ``between`` two times, ``close`` it.

    Times are CLOCK_MONOTONIC's, which all processes share (time.monotonic()). Never raises: what cannot
    be had is not there. missing: {GPU: why} there are no samples, or no more.
    """

    def __init__(self, start, pynvml=None, folder=None):
        """start(argv, deadline, cwd, env, …): a process.Child. folder: for its files, as LinePipe has it."""
        self._start, self._pynvml, self._folder = start, pynvml, folder
        self._worker = None
        self._samples = {}  # in the order of the GPUs
        self._fresh = []
        self.missing = {}

    def open(self, gpus, interval=0.1, errors=False):
        """gpus: PCI addresses. interval: seconds. errors: counters of errors and Xids, too."""
        self._samples = {gpu: collections.deque(maxlen=KEPT) for gpu in gpus}
        if not gpus:
            return
        try:
            pipe = LinePipe(self._folder)
        except OSError as error:
            self.missing = dict.fromkeys(gpus, "no pipe to sample through: %s" % error.strerror)
            return
        params = {"pynvml": self._pynvml, "gpus": list(gpus), "interval": interval}
        params.update(errors=errors, ours=os.getpid(), pipe=pipe.path, loses=True)
        python = [sys.executable or "python3", "-I", "-S"]
        argv = worker.command(python, "envcheck.collector.telemetry.child", params)
        self._worker = Worker(self._start(argv, _FOREVER, "/", None), Limits(), self.take, pipe)

    def poll(self):
        """Take in what has come since, without waiting: [(kind, GPU, time, value)], as child.py has them."""
        if self._worker is not None and self._worker.runs and not self._worker.step():
            words = "the process that samples " + self._worker.result.describe()
            for gpu in self._samples:
                self.missing.setdefault(gpu, words)
        fresh, self._fresh = self._fresh, []
        return fresh

    def take(self, kind, value, name):
        """A message of the process. Raises ValueError, TypeError, … where it makes no sense."""
        if kind != "result":
            return
        place, when, value = value
        if not _is_number(place) or not math.isfinite(when) or not _FITS[name](value):
            raise ValueError("no sample")
        gpu = dict(enumerate(self._samples))[place]
        if name == "sample":
            self._samples[gpu].append((when, value))
        elif name == "missing":
            self.missing[gpu] = value
        self._fresh.append((name, gpu, when, value))

    def between(self, first, last, since=0.0):
        """GpuSamples (facts/telemetry.py) of each GPU that has some. since: what their seconds count from."""
        self._fresh = self.poll()
        found = []
        for gpu, samples in self._samples.items():
            here = [one for one in samples if first <= one[0] <= last]
            here = here[:: -(-len(here) // SHOWN) or 1]
            columns = zip(NAMES, zip(*[values for _when, values in here]))
            values = {name: list(column) for name, column in columns if set(column) != {None}}
            times = [round(when - since, 3) for when, _values in here]
            if here:
                found.append({"gpu": gpu, "seconds": times, "values": values})
        return found

    def close(self):
        """End the process; what was sampled stays."""
        if self._worker is not None:
            self._worker.stop()
            ended = time.monotonic()
            while self._worker.step() and time.monotonic() - ended < _ENDING:
                time.sleep(0.005)
        self._worker = None


def _is_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e18


def _is_sample(value):
    fits = isinstance(value, list) and len(value) == len(NAMES)
    return fits and all(one is None or _is_number(one) for one in value)


def _are_errors(value):
    return all(name in ERRORS and _is_number(one) for name, one in value.items())


def _is_text(value):
    return isinstance(value, str)


_FITS = {
    "sample": _is_sample,
    "errors": _are_errors,
    "xid": _is_number,
    "missing": _is_text,
    "lost": _is_text,
}
