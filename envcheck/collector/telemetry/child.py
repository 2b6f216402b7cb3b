"""The inside of the process that samples: a thread a GPU, so that one that hangs costs its own samples.

Each result is [the GPU's place among those that were asked for, CLOCK_MONOTONIC's seconds, value], of:
  "sample"   the values of NAMES
  "errors"   {name: value}: errors and states that have changed
  "xid"      a number
  "missing"  why it cannot be opened
  "lost"     why it is lost
"""

import os
import threading
import time

from ..nvml.binding import Binding, load, reason_fact, words_of
from ..probes.nvml import VENDORED
from .quantities import GpuAsked, Lost

_SECOND = 1.0  # between two looks at errors
_PARENT = 1.0  # seconds between two looks whether the parent lives


def work(params, tell):
    """params: {"pynvml", "gpus": [PCI address], "interval", "errors", "ours"}."""

    def report(kind, place, value):
        tell.result([place, round(time.monotonic(), 4), value], kind)

    tell.begin()
    try:
        nvml = Binding(load(params["pynvml"] or VENDORED))
        nvml.call("nvmlInit")
    except Exception as error:
        for place in range(len(params["gpus"])):
            report("missing", place, words_of(error)[:300])
        raise
    threads = [
        threading.Thread(target=_sample_one, args=(nvml, place, address, params, report))
        for place, address in enumerate(params["gpus"])
    ]
    for thread in threads:
        thread.daemon = True
        thread.start()
    parent = os.getppid()
    while any(thread.is_alive() for thread in threads) and os.getppid() == parent:
        time.sleep(_PARENT)


def _sample_one(nvml, place, address, params, report):
    try:
        handle = nvml.call("nvmlDeviceGetHandleByPciBusId", address.encode("ascii"))
        gpu = GpuAsked(nvml, handle, params["ours"])
        if params["errors"]:
            gpu.watch_xids()
    except Exception as error:
        lost = reason_fact(error)["unavailable"] == "lost"
        report("lost" if lost else "missing", place, words_of(error)[:300])
        return
    try:
        _sample_on(gpu, place, params, report)
    except Lost as error:
        report("lost", place, str(error)[:300])
    except Exception as error:
        report("missing", place, ("%s: %s" % (type(error).__name__, error))[:300])


def _sample_on(gpu, place, params, report):
    due = time.monotonic()
    looked, latest = None, {}
    while True:
        report("sample", place, gpu.sample())
        now = time.monotonic()
        if params["errors"] and (looked is None or now - looked >= _SECOND):
            looked = now
            errors = gpu.errors()
            changed = {name: value for name, value in errors.items() if latest.get(name) != value}
            if changed:
                latest.update(changed)
                report("errors", place, changed)
            for xid in gpu.xids():
                report("xid", place, xid)
        due = max(due + params["interval"], time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
