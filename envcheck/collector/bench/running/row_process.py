"""One process of a row: what it is ordered, what it has told, and what became of it."""

import contextlib
import json
import os
import shutil
import signal
import tempfile
import time

from ... import framework
from ...acceleration.telling import is_out_of_memory, line
from .. import telling

IMPORT = 120.0  # seconds for a framework to be imported
BUILD = 300.0  # seconds for a model to be built, and for its first step: compilers are slow
ANSWER = 60.0  # seconds beyond what an order should take
ENDING = 60.0  # seconds for the accuracy to be told
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
        self.heard = telling.RowHeard()
        self.began = []  # of each repetition that was ordered, by the clock
        self.log = []
        self.outcome, self.reason = "", ""  # once it is over
        self.stuck = None  # a Result's, of a process that could not be killed
        self.pid = None
        self._launch = launch
        self._clock = clock
        self._patience = patience
        self._scratch = scratch
        self._child = self._orders = self._folder = None
        self._ordered = 0  # orders so far
        self._since, self._limit = 0.0, 0.0
        self._late = ""
        self._why_stopped = None

    def open(self):
        """Raises OSError where there is no room for its files."""
        self._folder = tempfile.mkdtemp(prefix="row-", dir=self._scratch)
        path = os.path.join(self._folder, "orders")
        os.mkfifo(path)
        # Held open for both, so that neither side waits for the other to open it.
        self._orders = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        self._expect(IMPORT)
        self._child = self._launch(path, self._folder)
        self.pid = self._child.pid

    @property
    def is_open(self):
        return self._child is not None

    @property
    def is_over(self):
        return bool(self.outcome)

    @property
    def is_waiting(self):
        """Whether it has done what it was told, and waits for the next order."""
        return self.heard.ready and self.heard.did >= self._ordered and not self.is_over

    def order(self, seconds, **words):
        """Give it an order that may take so many seconds."""
        if "measure" in words:
            self.began.append(self._clock())
        self._ordered += 1
        self._expect(seconds)
        with contextlib.suppress(OSError):  # a process that is stuck does not read: it will be late
            os.write(self._orders, (json.dumps(words) + "\n").encode("ascii"))

    def step(self):
        """Look once, without waiting. Whether it runs on."""
        if self.is_over:
            return False
        result = self._child.poll()
        told = self._told()
        self.heard.hear(self._child.new_stdout())
        if self._told() != told:  # a long order tells on its way
            self._since = self._clock()
        if result is not None:
            self._end(result)
            return False
        if not self.is_waiting and self._clock() - self._since > self._limit and not self._late:
            self._late = "no answer within %g s" % self._limit
            self._child.stop()
        return True

    def stop(self, outcome, reason):
        """End it, with that as the reason."""
        if not self.is_over and self._why_stopped is None:
            self._why_stopped = outcome, reason
            self._child.stop()

    def _told(self):
        return len(self.heard.losses) + self.heard.rounds

    def _expect(self, seconds):
        self._since, self._limit = self._clock(), seconds * self._patience

    def _end(self, result):
        os.close(self._orders)
        shutil.rmtree(self._folder, ignore_errors=True)
        stderr = result.stderr.decode("utf-8", "replace")
        self.log = [line(text) for text in framework.about_gpus(stderr)]
        self.stuck = result.stuck
        self.outcome, self.reason = self._why(result, stderr)

    def _why(self, result, stderr):
        run = self.heard.run
        if self.heard.done:  # whatever became of it afterwards
            return "ok", ""
        if "outcome" in run:
            return run["outcome"], run.get("reason", "")
        if self._why_stopped is not None:
            return self._why_stopped
        if self._late or result.outcome == "timeout":
            where = "while the framework was imported" if not self.heard.ready else ""
            return "timeout", " ".join([self._late or "no answer", where]).strip()
        if result.outcome == "not-started":
            return "error", line("its process could not be started: %s" % result.error)
        words = line("its process " + result.describe())
        killed = result.outcome == "exited" and result.code in (-signal.SIGKILL, -signal.SIGABRT)
        if killed:  # by the kernel, or by a framework that gives up: some say why before
            said = _out_of_memory(stderr[-_LAST:])
            if said:
                return "out-of-memory", line("%s: %s" % (words, said))
        last = [text.strip() for text in stderr[-_LAST:].splitlines() if text.strip()][-1:]
        return "crashed", line(": ".join([words] + last))


def _out_of_memory(text):
    """The last line that says so, "" without one."""
    found = [one for one in text.splitlines() if is_out_of_memory(one)]
    return found[-1].strip() if found else ""
