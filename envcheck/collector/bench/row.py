"""A row while it is run: its process, or a process a GPU."""

import signal
import time

from .. import framework
from ..systems.running.records import is_out_of_memory
from ..worker.messages import one_line
from ..worker.parent import Limits, Worker
from .records import OUTCOMES, RowReader

IMPORT = 120.0  # seconds for a framework to be imported
BUILD = 300.0  # seconds for a model to be built, and for its first step: compilers are slow
ANSWER = 60.0  # seconds beyond what a stage should take
_BEREFT = 10.0  # seconds that the other ranks still get once one has ended
_LAST = 16384  # bytes of a log in which a death's reason is looked for
_MOST_LOG = 60  # lines
# Of processes that ended one after the other, the first that did by itself says why.
_OTHERS = "another rank had ended"


def limits(request, patience):
    """Of each of a row's processes. patience: what they are multiplied by on a busy machine."""
    spent = request["repetitions"] * request["seconds"]
    stages = {
        "build": BUILD,
        "warm-up": BUILD + 3 * request["warm_up"] + ANSWER,
        "evidence": BUILD,
        "measure": 3 * spent + ANSWER,
    }
    stages = {name: seconds * patience for name, seconds in stages.items()}
    return Limits(start=IMPORT * patience, stage=ANSWER * patience, stages=stages)


class RowAtWork(object):
    """``step`` it again and again until it is over; then ``facts``."""

    def __init__(self, row, children, request, patience=1, clock=time.monotonic):
        """children: a process.Child a rank. request: {"repetitions", "seconds", "warm_up"}."""
        self.row = row
        self.outcome, self.reason = "", ""  # once it is over
        self.samples = []
        self.readers = [RowReader() for _child in children]
        self._workers = [
            Worker(child, limits(request, patience), reader.take, clock=clock)
            for child, reader in zip(children, self.readers)
        ]
        self._clock = clock
        self._first = None  # the worker that ended first, and when

    @property
    def phase(self):
        """ "import", "build", "warm-up", "evidence" or "measure": of the process that stands for all."""
        first = self._workers[0]
        if first.begun is None:
            return "import"
        return first.stage[0] if first.stage is not None else ""

    @property
    def rate(self):
        """Samples per second of the whole job, None before there is one."""
        rates = [reader.rate for reader in self.readers]
        devices = max(1, len(self.row["gpus"]))
        return None if None in rates else min(rates) * self.row["batch"] * devices

    def step(self):
        """Look once, without waiting. Whether it runs on."""
        running = [one for one in self._workers if one.step()]
        over = [one for one in self._workers if not one.runs]
        if over and self._first is None:
            self._first = over[0], self._clock()
        if running and self._first is not None and self._clock() - self._first[1] > _BEREFT:
            self.stop("error", _OTHERS)
        if not running:
            self.outcome, self.reason = self._why()
        return bool(running)

    def stop(self, outcome, reason):
        """Begin to end it, with that as the reason."""
        for one in self._workers:
            one.stop(outcome, reason)

    def _why(self):
        """(outcome, reason) of the process that failed first by itself."""
        ends = [_end_of(one) for one in self._workers]
        failed = [number for number, (outcome, _reason) in enumerate(ends) if outcome != "ok"]
        if not failed:
            return "ok", ""
        by_itself = [number for number in failed if ends[number][1] != _OTHERS] or failed
        outcome, reason = ends[by_itself[0]]
        if len(ends) > 1 and outcome != "interrupted":
            reason = one_line("rank %d: %s" % (by_itself[0], reason))
        return outcome, reason

    def facts(self, began):
        """The RowRun. began: when the bench began, by the clock."""
        now = self._clock()
        of_ranks = [reader.repetitions for reader in self.readers]
        repetitions = []
        for several in zip(*of_ranks):  # one repetition is over when the last rank's is
            slowest = dict(max(several, key=lambda one: one["seconds"]))
            slowest["began"] = round(min(max(slowest["began"], began), now) - began, 3)
            repetitions.append(slowest)
        first = self.readers[0]
        log = [one_line(text) for one in self._workers for text in framework.about_gpus(one.log)]
        return dict(
            first.run,
            row=self.row,
            outcome=self.outcome,
            reason=self.reason,
            repetitions=repetitions,
            losses=first.losses[: len(repetitions)],
            samples=self.samples,
            log=log[:_MOST_LOG],
        )


def _end_of(worker):
    """(outcome, reason); the log may explain a death by the kernel, or by a framework that gives up."""
    outcome, reason, log = worker.outcome, worker.reason, worker.log[-_LAST:]
    if outcome == "timeout" and worker.begun is None:
        reason += " while the framework was imported"
    elif outcome == "crashed":
        lines = [text.strip() for text in log.splitlines() if text.strip()]
        if worker.result.code in (-signal.SIGKILL, -signal.SIGABRT):
            memory = [line for line in lines if is_out_of_memory(line)]
            if memory:
                return "out-of-memory", one_line("%s: %s" % (reason, memory[-1]))
        reason = one_line(": ".join([reason] + lines[-1:]))
    return outcome if outcome in OUTCOMES else "error", reason
