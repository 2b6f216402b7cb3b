"""A row while it is run: its process, or a process a GPU, which are given the same orders."""

import time

from ...worker.messages import one_line
from .measure import Warming
from .row_process import BUILD, ENDING, ample

CONTEXT = 600  # MiB of a process beyond its pool, where the driver does not count
_BEREFT = 5.0  # seconds that the other ranks still get once one has ended
_MOST_LOG = 60  # lines
# Of processes that ended one after the other, the first that did by itself says why.
_OTHERS = "another rank had ended"


class RowAtWork(object):
    """``open`` it, call ``step`` again and again, ``order`` once it ``is_waiting``, ``told`` at the end."""

    def __init__(self, row, processes, warm_up, clock=time.monotonic):
        """processes: RowProcesses, a rank each. warm_up: seconds, at most."""
        self.row = row
        self.processes = processes
        self.warming = Warming(warm_up)
        self.in_turn = False
        self.outcome, self.reason = "", ""  # once it is over
        self.tried = []  # BatchTried
        self.evidence = {}  # of the runner's own
        self.process_mib = None  # the driver's count, of the GPU where it is most
        self.samples = []
        self._clock = clock
        self._first = None  # the rank that ended first, and when
        self._ended = None  # why all of them were

    def open(self):
        """Start its processes. What cannot be started is the row's reason."""
        try:
            for process in self.processes:
                process.open()
        except OSError as error:
            self.end("error", "no files for its process: %s" % (error.strerror or error))

    @property
    def first(self):
        """The process that stands for all of them where they tell the same."""
        return self.processes[0]

    @property
    def is_open(self):
        return self.first.is_open

    @property
    def is_over(self):
        return bool(self.outcome)

    @property
    def is_waiting(self):
        return not self.is_over and all(one.is_waiting for one in self.processes)

    @property
    def rate(self):
        """Steps per second of the slowest, None before there is one."""
        rates = [one.reader.rate for one in self.processes]
        return None if None in rates else min(rates)

    @property
    def devices(self):
        """How many GPUs, or ranks on the CPU, take ``batch`` samples each at every step."""
        return max(1, len(self.row["gpus"]), len(self.processes))

    @property
    def pool_mib(self):
        """The most that one of its GPUs holds, None where nobody tells."""
        pools = [(one.reader.run.get("memory") or {}).get("pool_mib") for one in self.processes]
        known = [pool for pool in pools + [self.process_mib] if isinstance(pool, int)]
        return max(known) if known else None

    @property
    def repetitions(self):
        return min(len(one.reader.repetitions) for one in self.processes)

    def order(self, seconds, **words):
        """Give it an order that may take so many seconds."""
        for process in self.processes:
            process.order(seconds, **words)

    def warm(self):
        """Order the next steps of the warm-up. Whether there are any."""
        ran = [one.reader.ran for one in self.processes]
        if None not in ran:
            self.warming.ran(ran[0][0], max(seconds for _steps, seconds in ran))
            for process in self.processes:
                process.reader.ran = None
        steps = self.warming.next()
        if steps:
            rate = self.warming.rate
            self.order(BUILD if rate is None else ample(steps / rate), warm=steps)
        return bool(steps)

    def step(self):
        """Look once, without waiting. Whether it runs on."""
        if self.is_over:
            return False
        at_work = [one for one in self.processes if one.is_open and one.step()]
        over = [one for one in self.processes if one.is_over]
        if over and self._first is None:
            self._first = over[0], self._clock()
        if at_work and self._first is not None:
            first, when = self._first
            if self._clock() - when > (ENDING if first.outcome == "ok" else _BEREFT):
                for one in at_work:
                    one.stop("error", _OTHERS)
        if not at_work:
            self._conclude(over)
        return bool(at_work)

    def end(self, outcome, reason):
        """End it, with that as the reason."""
        if self.is_over:
            return
        self._ended = self._ended or (outcome, reason)
        opened = [one for one in self.processes if one.is_open]
        for one in opened:
            one.stop(outcome, reason)
        if not opened:
            self.outcome, self.reason = outcome, reason

    def _conclude(self, over):
        failed = [(one.outcome, one.reason, one) for one in over if one.outcome != "ok"]
        if self._ended is not None and not all(one.outcome == "ok" for one in over):
            self.outcome, self.reason = self._ended
        elif failed:
            by_itself = [one for one in failed if one[1] != _OTHERS] or failed
            self.outcome, self.reason, which = by_itself[0]
            if len(self.processes) > 1:
                self.reason = one_line("rank %d: %s" % (self.processes.index(which), self.reason))
        else:
            self.outcome, self.reason = "ok", ""

    def told(self, began):
        """The RowRun. began: when the bench began, by the clock."""
        reader = self.first.reader
        run = {"row": self.row, "in_turn": self.in_turn}
        run.update(reader.run, outcome=self.outcome, reason=self.reason, losses=reader.losses)
        run["warm_up"] = self.warming.told()
        run["evidence"] = dict(reader.run.get("evidence", {}), **self.evidence)
        run["memory"] = self._memory()
        run["log"] = [text for one in self.processes for text in one.log][:_MOST_LOG]
        run["tried"] = self.tried
        run["samples"] = self.samples
        of_ranks = [_repetitions(one, began) for one in self.processes]
        run["repetitions"] = [_slowest(several) for several in zip(*of_ranks)]
        if len(self.processes) > 1:
            run["ranks"] = [
                _rank(gpu, repetitions) for gpu, repetitions in zip(self._gpus(), of_ranks)
            ]
        return run

    def _gpus(self):
        return self.row["gpus"] or [None] * len(self.processes)

    def _memory(self):
        """Of each kind the most that a process has told."""
        found = {}
        for process in self.processes:
            for name, value in (process.reader.run.get("memory") or {}).items():
                if isinstance(value, int) or name not in found:
                    before = found.get(name)
                    found[name] = max(value, before) if isinstance(before, int) else value
        if self.process_mib is not None:
            found["process_mib"] = self.process_mib
        return found


def _repetitions(process, began):
    return [
        dict(one, began=round(when - began, 3))
        for when, one in zip(process.began, process.reader.repetitions)
    ]


def _slowest(several):
    """One repetition of all ranks: over when the last of them was."""
    skipped = max(one["skipped"] for one in several)
    return dict(max(several, key=lambda one: one["seconds"]), skipped=skipped)


def _rank(gpu, repetitions):
    return {"gpu": gpu, "repetitions": repetitions} if gpu else {"repetitions": repetitions}
