"""One row at work: its process, what it has told, and the orders that it is given."""

import contextlib
import json
import os
import tempfile
import time

from .. import framework
from ..acceleration.telling import line
from . import telling

IMPORT = 120.0  # seconds for a framework to be imported
BUILD = 300.0  # seconds from there until it is warm: compilers are slow
WARM_UP = 20.0  # seconds at most of warm-up
ANSWER = 60.0  # seconds beyond what an order should take
ENDING = 60.0  # seconds for the memory and the accuracy to be told


class RowProcess(object):
    """``open`` it, call ``step`` again and again, ``order`` once it ``is_waiting``, ``told`` at the end."""

    def __init__(self, row, launch, clock=time.monotonic, device="cpu"):
        """launch(row, orders): a process.Child whose standard input is the path ``orders``."""
        self.row = row
        self.device = device
        self.heard = telling.RowHeard()
        self.in_turn = False
        self.interrupted = False
        self.stuck = None  # a Result's, of a process that could not be killed
        self._launch = launch
        self._clock = clock
        self._child = self._orders = self._folder = None
        self._answers = 0  # that were had before the last order
        self._ordered = None  # (when, the seconds that it may take)
        self._late = ""
        self._began = []  # of each repetition, by the clock
        self._log = []

    def open(self):
        self._folder = tempfile.mkdtemp(prefix="envcheck-row-")
        path = os.path.join(self._folder, "orders")
        os.mkfifo(path)
        # Held open for both, so that neither side waits for the other to open it.
        self._orders = os.open(path, os.O_RDWR)
        self._expect(IMPORT)
        self._child = self._launch(self.row, path)

    @property
    def is_over(self):
        return self._child is not None and self._child.result is not None

    @property
    def is_waiting(self):
        """Whether it has done what it was told, and waits for the next order."""
        return self._ordered is None and not self.is_over

    def order(self, expected=0.0, **words):
        """Give it an order that takes about so many seconds."""
        self._answers = self._answered()
        if "measure" in words:
            self._began.append(self._clock())
        os.write(self._orders, (json.dumps(words) + "\n").encode("ascii"))
        self._expect(ENDING if "end" in words else 3 * expected + ANSWER)

    def step(self):
        """Look once, without waiting. Whether it runs on."""
        result = self._child.poll()
        was_ready = self.heard.ready
        self.heard.hear(self._child.new_stdout())
        if result is not None:
            self._end(result)
            return False
        if self.heard.ready and not was_ready:
            self._expect(BUILD)
        if self._ordered is not None:
            self._look_at_the_order()
        return True

    def _look_at_the_order(self):
        since, seconds = self._ordered
        begun = self.heard.warm if not self.row["steps"] else "build_seconds" in self.heard.run
        if self._answered() > self._answers or (self._answers == 0 and begun and not self._began):
            self._ordered = None
        elif self._clock() - since > seconds and not self._late:
            self._late = "no answer within %g s" % seconds
            self._child.stop()

    def stop(self):
        """The user wants no more."""
        self.interrupted = True
        if not self.is_over:
            self._child.stop()

    def _answered(self):
        return len(self.heard.repetitions) + (1 if self.row["steps"] and self.heard.losses else 0)

    def _expect(self, seconds):
        self._ordered = self._clock(), seconds

    def _end(self, result):
        if self._orders is None:
            return
        os.close(self._orders)
        self._orders = None
        with contextlib.suppress(OSError):
            os.unlink(os.path.join(self._folder, "orders"))
            os.rmdir(self._folder)
        log = framework.about_gpus(result.stderr.decode("utf-8", "replace"))
        self._log = [line(text) for text in log]
        self.stuck = result.stuck
        run = self.heard.run
        if self.heard.done or "outcome" in run:
            return
        if self.interrupted:
            run.update(outcome="interrupted", reason="stopped by its user")
        elif self._late:
            run.update(outcome="timeout", reason=self._late)
        elif result.outcome == "not-started":
            run.update(outcome="error", reason="could not be started: %s" % result.error)
        else:
            run.update(outcome="crashed", reason=line("its process " + result.describe()))

    def told(self, began):
        """The RowRun. began: when the bench began, by the clock."""
        run = {"row": self.row, "outcome": "ok", "in_turn": self.in_turn, "log": self._log}
        run.update(self.heard.run, losses=self.heard.losses)
        run["repetitions"] = [
            dict(one, began=round(when - began, 3))
            for when, one in zip(self._began, self.heard.repetitions)
        ]
        return run
