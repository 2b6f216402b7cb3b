"""The inside of the process that samples: a thread a GPU, so that one that hangs costs its own samples.

Each line is a JSON list, of the GPU's place among those that were asked for, and CLOCK_MONOTONIC's seconds:
  ["s", place, seconds, [values of NAMES]]   a sample
  ["e", place, seconds, {name: value}]       errors and states that have changed
  ["x", place, seconds, Xid]
  ["n", place, seconds, why]                 it cannot be opened
  ["l", place, seconds, why]                 it is lost
"""

import json
import os
import sys
import threading
import time

from ..nvml.binding import Binding, load, reason_fact, words_of
from ..probes.nvml import VENDORED
from ..runtime import line_pipe, shadows
from ..runtime.child import PACKAGE
from .quantities import GpuAsked, Lost

BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.telemetry.child import main\n"
    "main(sys.argv[2])\n"
)
_SECOND = 1.0  # between two looks at errors
_PARENT = 1.0  # seconds between two looks whether the parent lives


def main(params):
    """params: JSON of {"pynvml", "gpus": [PCI address], "interval", "errors", "pipe", "ours"}."""
    params = json.loads(params)
    teller = LineTeller(line_pipe.open_to_write(params["pipe"], waits=False))
    code = 0
    try:
        _sample_all(params, teller)
    except Exception as error:
        code = 1
        sys.stderr.write("%s: %s\n" % (type(error).__name__, words_of(error)))
        for place in range(len(params["gpus"])):
            teller.tell("n", place, words_of(error)[:300])
    os._exit(code)  # threads may hang in NVML


class LineTeller(object):
    """Lines shorter than a pipe's atom are never mixed; those that it has no room for are lost."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def tell(self, kind, place, value):
        record = [kind, place, round(time.monotonic(), 4), value]
        try:
            os.write(self._descriptor, json.dumps(record).encode("ascii") + b"\n")
        except BlockingIOError:
            pass


def _sample_all(params, teller):
    with shadows.hidden():
        nvml = Binding(load(params["pynvml"] or VENDORED))
    nvml.call("nvmlInit")
    threads = []
    for place, address in enumerate(params["gpus"]):
        work = threading.Thread(target=_sample_one, args=(nvml, place, address, params, teller))
        work.daemon = True
        work.start()
        threads.append(work)
    parent = os.getppid()
    while any(one.is_alive() for one in threads) and os.getppid() == parent:
        time.sleep(_PARENT)


def _sample_one(nvml, place, address, params, teller):
    try:
        handle = nvml.call("nvmlDeviceGetHandleByPciBusId", address.encode("ascii"))
        asked = GpuAsked(nvml, handle, params["ours"])
        if params["errors"]:
            asked.watch_xids()
    except Exception as error:
        lost = reason_fact(error)["unavailable"] == "lost"
        teller.tell("l" if lost else "n", place, words_of(error)[:300])
        return
    try:
        _sample_on(asked, place, params, teller)
    except Lost as error:
        teller.tell("l", place, str(error)[:300])
    except Exception as error:
        teller.tell("n", place, ("%s: %s" % (type(error).__name__, error))[:300])


def _sample_on(asked, place, params, teller):
    due = time.monotonic()
    looked, told = None, {}
    while True:
        teller.tell("s", place, asked.sample())
        now = time.monotonic()
        if params["errors"] and (looked is None or now - looked >= _SECOND):
            looked = now
            errors = asked.errors()
            changed = {name: value for name, value in errors.items() if told.get(name) != value}
            if changed:
                told.update(changed)
                teller.tell("e", place, changed)
            for xid in asked.xids():
                teller.tell("x", place, xid)
        due = max(due + params["interval"], time.monotonic())
        time.sleep(max(0.0, due - time.monotonic()))
