"""The inside of a row's process: imports the framework, then builds, warms up and measures as it is told."""

import contextlib
import json
import os
import sys
import time

from ..facts import from_error
from ..runtime import shadows
from ..runtime.child import PACKAGE
from . import shapes, styles, telling
from .place import Place

# Started as `python -c BOOTSTRAP ROOT PARAMS`, as a probe is.
BOOTSTRAP = PACKAGE + (
    "from envcheck.collector.runtime.shadows import hidden\n"
    "with hidden():\n"
    "    from envcheck.collector.bench.child import main\n"
    "main(sys.argv[2])\n"
)


def main(params):
    descriptor = os.dup(1)  # which nothing that the framework starts inherits
    os.dup2(2, 1)  # what a library prints from here on is no record
    tell = telling.RowTeller(descriptor)
    code = 0
    try:
        _work(json.loads(params), tell)
        tell.tell(done=True)
    except BaseException as error:  # SystemExit too: some packages end whoever imports them
        code = 1
        tell.failed(error)
    with contextlib.suppress(Exception):  # a framework may have put something of its own there
        sys.stderr.flush()
    # Exit handlers of CUDA and of frameworks may crash or hang: everything is told.
    os._exit(code)


def _work(params, tell):
    """params: {"row", "place"}."""
    row = params["row"]
    style = styles.load(row["style"])
    began = time.monotonic()
    with shadows.hidden():
        from .. import framework
    module, problem = framework.load(style.FRAMEWORK)
    if module is None:
        raise ImportError("import %s: %s" % (style.FRAMEWORK, problem))
    version = framework.ask(framework.version_of, module)
    tell.tell(run={"framework_version": version})
    tell.tell(ready=round(time.monotonic() - began, 3))
    work = RowWork(style, module, row, Place(**params["place"]), tell)
    for number, order in enumerate(_orders(), 1):
        if work.obey(order):
            tell.tell(did=number)
        else:
            break


def _orders():
    """What the parent says, until it says no more. Waits in the kernel, and takes no processor for it."""
    with os.fdopen(os.dup(0), encoding="utf-8") as said:
        for text in iter(said.readline, ""):
            yield json.loads(text)


class RowWork(object):
    """What a row's process does at each order.

    A memory, an evidence, an accuracy or a loss that cannot be had costs no more than itself: the row is
    measured all the same.
    """

    def __init__(self, style, framework, row, place, tell):
        self._style = style
        self._framework = framework
        self._row = row
        self._place = place
        self._tell = tell.tell
        self._training = None

    def obey(self, order):
        """Whether more may come."""
        if "build" in order:
            self._build()
        elif "warm" in order:
            ran = self._ran(order["warm"])
            self._tell(ran={"steps": ran["steps"], "seconds": ran["seconds"]})
        elif "memory" in order:
            self._tell_memory()
        elif "evidence" in order:
            self._tell_evidence()
        elif "measure" in order:
            self._tell(repetition=self._ran(order["measure"]))
            self._tell_loss()
        elif "losses" in order:
            for _step in range(order["losses"]):
                self._training.run(1)
                if self._row["model"] == shapes.MODEL:
                    self._tell(shapes=self._training.shapes())
                else:
                    self._tell(losses=[self._training.loss()])
        else:
            self._end()
            return False
        return True

    def _build(self):
        began = time.monotonic()
        build = shapes.build if self._row["model"] == shapes.MODEL else self._style.build
        self._training = build(self._framework, self._row, self._place)
        seconds = round(time.monotonic() - began, 3)
        self._tell(built={"seconds": seconds, "parameters": int(self._training.parameters)})

    def _ran(self, steps):
        began = time.monotonic()
        skipped = self._training.run(steps)
        seconds = time.monotonic() - began
        return {"seconds": round(seconds, 6), "steps": steps, "skipped": int(skipped or 0)}

    def _tell_evidence(self):
        try:
            self._tell(evidence=self._training.evidence())
        except Exception as error:
            words = "%s: %s" % (type(error).__name__, error)
            self._tell(evidence={"problem": words})

    def _tell_loss(self):
        with contextlib.suppress(Exception):
            self._tell(losses=[self._training.loss()])

    def _tell_memory(self):
        try:
            told = dict(self._training.memory())
        except Exception as error:
            told = {name: from_error(error) for name in ("tensors_mib", "pool_mib")}
        if self._place.device == "cpu":
            told["process_mib"] = _resident()
        self._tell(memory=told)

    def _end(self):
        if self._training is None:
            return
        if hasattr(self._training, "accuracy"):
            try:
                accuracy = float(self._training.accuracy())
            except Exception as error:
                accuracy = from_error(error)
            self._tell(run={"accuracy": accuracy})


def _resident():
    """The most that this process has had in memory, in MiB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
