"""One process of a row: a Worker that is given orders, and what became of it."""

import shutil
import signal
import tempfile
import time

from ... import framework
from ...systems.running.records import is_out_of_memory
from ...worker.messages import one_line
from ...worker.parent import Limits, Worker
from ...worker.pipes import OrderPipe
from .. import records

IMPORT = 120.0  # seconds for a framework to be imported
BUILD = 300.0  # seconds for a model to be built, and for its first step: compilers are slow
ANSWER = 60.0  # seconds beyond what an order should take
ENDING = 60.0  # seconds for the accuracy to be computed
_LAST = 16384  # bytes of a log in which a death's reason is looked for


def ample(seconds):
    """The limit of an order that should take so many seconds."""
    return 3 * seconds + ANSWER


class RowProcess(object):
    """``open`` it, call ``step`` again and again, ``order`` once it ``is_waiting``."""

    def __init__(self, launch, clock=time.monotonic, patience=1, scratch=None):
        """launch(orders, folder): a process.Child whose standard input is the path ``orders``.

        folder: of its own, for its temporary files; removed with it. patience: what its limits are
        multiplied by.
        """
        self.reader = records.RowReader()
        self.began = []  # of each repetition that was ordered, by the clock
        self.log = []
        self.outcome, self.reason = "", ""  # once it is over
        self._launch, self._clock = launch, clock
        self._patience, self._scratch = patience, scratch
        self._worker = self._folder = None

    def open(self):
        """Raises OSError where there is no room for its files."""
        self._folder = tempfile.mkdtemp(prefix="row-", dir=self._scratch)
        orders = OrderPipe(self._folder)
        limits, take = Limits(IMPORT * self._patience), self.reader.take
        child = self._launch(orders.path, self._folder)
        self._worker = Worker(child, limits, take, orders=orders, clock=self._clock)

    @property
    def pid(self):
        return self._worker.child.pid

    @property
    def is_open(self):
        return self._worker is not None

    @property
    def is_over(self):
        return bool(self.outcome)

    @property
    def is_waiting(self):
        """Whether it has done everything that it was ordered to."""
        return not self.is_over and self._worker is not None and self._worker.is_waiting

    def order(self, seconds, **words):
        """Give it an order that may take so many seconds."""
        if "measure" in words:
            self.began.append(self._clock())
        self._worker.order(seconds * self._patience, **words)

    def step(self):
        """Look once, without waiting. Whether it runs on."""
        if self.is_over:
            return False
        if self._worker.step():
            return True
        shutil.rmtree(self._folder, ignore_errors=True)
        self.log = [one_line(text) for text in framework.about_gpus(self._worker.log)]
        self.outcome, self.reason = self._why()
        return False

    def stop(self, outcome, reason):
        """End it, with that as the reason."""
        if not self.is_over:
            self._worker.stop(outcome, reason)

    def _why(self):
        worker = self._worker
        outcome, reason, log = worker.outcome, worker.reason, worker.log[-_LAST:]
        if outcome == "timeout" and worker.begun is None:
            reason += " while the framework was imported"
        elif outcome == "crashed":
            lines = [text.strip() for text in log.splitlines() if text.strip()]
            if worker.result.code in (-signal.SIGKILL, -signal.SIGABRT):
                # By the kernel, or by a framework that gives up: some say why before.
                memory = [line for line in lines if is_out_of_memory(line)]
                if memory:
                    return "out-of-memory", one_line("%s: %s" % (reason, memory[-1]))
            reason = one_line(": ".join([reason] + lines[-1:]))
        known = outcome in records.OUTCOMES or outcome in ("interrupted",)
        return outcome if known else "error", reason
