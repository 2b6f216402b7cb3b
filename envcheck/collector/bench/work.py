"""The inside of a row's process: imports the framework, then builds, warms up and measures by orders."""

import contextlib
import resource
import time

from ..facts import from_error
from ..runtime import shadows
from ..worker import messages
from . import shapes, styles
from .records import RowFailed

MODULE = __name__  # which worker.command runs


def work(params, tell):
    """params: {"row", "place"}."""
    row = params["row"]
    style = styles.load(row["style"])
    began = time.monotonic()
    with shadows.hidden():
        from .. import framework
    module, problem = framework.load(style.FRAMEWORK)
    if module is None:
        raise RowFailed(ImportError("import %s: %s" % (style.FRAMEWORK, problem)))
    version = framework.ask(framework.version_of, module)
    spent = round(time.monotonic() - began, 3)
    tell.begin(framework_version=version, import_seconds=spent)
    at_work = RowWork(style, module, row, styles.Place(**params["place"]), tell)
    for order in messages.orders(tell):
        try:
            if not at_work.obey(order):
                return
        except Exception as error:
            raise RowFailed(error)


class RowWork(object):
    """What a row's process does at each order.

    A memory, an evidence, an accuracy or a loss that cannot be had costs no more than itself: the row is
    measured all the same.
    """

    def __init__(self, style, framework, row, place, tell):
        self._style, self._framework = style, framework
        self._row, self._place = row, place
        self._tell = tell.result
        self._training = None

    def obey(self, order):
        """Whether more may come."""
        if "build" in order:
            self._build()
        elif "warm" in order:
            self._tell(self._run(order["warm"]), "ran")
        elif "memory" in order:
            self._report_memory()
        elif "evidence" in order:
            self._report_evidence()
        elif "measure" in order:
            self._tell(self._run(order["measure"]), "repetition")
            with contextlib.suppress(Exception):
                self._tell([self._training.loss()], "losses")
        elif "losses" in order:
            for _step in range(order["losses"]):
                self._training.run(1)
                if self._row["model"] == shapes.MODEL:
                    self._tell(self._training.shapes(), "shapes")
                else:
                    self._tell([self._training.loss()], "losses")
        else:
            self._end()
            return False
        return True

    def _build(self):
        began = time.monotonic()
        build = shapes.build if self._row["model"] == shapes.MODEL else self._style.build
        self._training = build(self._framework, self._row, self._place)
        seconds = round(time.monotonic() - began, 3)
        self._tell({"seconds": seconds, "parameters": int(self._training.parameters)}, "built")

    def _run(self, steps):
        began = time.monotonic()
        skipped = self._training.run(steps)
        seconds = time.monotonic() - began
        return {"seconds": round(seconds, 6), "steps": steps, "skipped": int(skipped or 0)}

    def _report_evidence(self):
        try:
            self._tell(self._training.evidence(), "evidence")
        except Exception as error:
            self._tell({"problem": messages.describe(error)}, "evidence")

    def _report_memory(self):
        try:
            found = dict(self._training.memory())
        except Exception as error:
            found = {name: from_error(error) for name in ("tensors_mib", "pool_mib")}
        if self._place.device == "cpu":  # the most that this process has had
            found["process_mib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        self._tell(found, "memory")

    def _end(self):
        if hasattr(self._training, "accuracy"):
            try:
                accuracy = float(self._training.accuracy())
            except Exception as error:
                accuracy = from_error(error)
            self._tell(accuracy, "accuracy")
