"""Further processes of a system, its ranks: copies of itself that work together, and end with it."""

import os
import sys
import time

from ... import worker
from ...runtime import process
from ...worker.parent import Limits, Worker
from . import records
from .work import MODULE

_BACKSTOP = 10.0  # seconds beyond the ranks' time; RankWait ends them before


class Rank(object):
    """One of them. answer: what its ``rank(framework, params, tell)`` returned; None without an answer."""

    def __init__(self, number, child):
        self.number = number
        self.reason = ""  # why there is no answer
        self.stopped = False  # the reason is that others were waited for, or that time was over
        self.reader = records.SystemReader()
        self.worker = Worker(child, Limits(), self.reader.take)

    @property
    def answer(self):
        return self.reader.answer

    def end(self, why):
        """Once its process is over. why: the reason where it was stopped."""
        self.worker.step()
        if self.answer is not None:
            return
        self.stopped = self.worker.result.outcome == "stopped"
        self.reason = why if self.stopped else self.worker.why


def run(params, number, seconds, environ, patience=None, tell=None):
    """Start that many ranks side by side and wait for them: a list of Rank, in their order.

    params["rank"] and params["ranks"] tell each which it is, and how many there are. environ(rank): variables
    of a rank beside this process's own; None takes one away. patience: seconds that the others still get once
    one has failed; None: all the time there is. tell: the writer of a system that lets its ranks import the
    framework: it reports when all of them have done so, and their seconds begin only then.
    """
    children = []
    try:
        for rank in range(number):
            own = dict(params, rank=rank, ranks=number, parent=os.getpid())
            env = dict(os.environ, **environ(rank))
            env = {name: value for name, value in env.items() if value is not None}
            deadline = seconds + _BACKSTOP + (records.IMPORT if tell is not None else 0.0)
            argv = worker.command(python(), MODULE, own)
            # In this process's group, which is ended as a whole.
            children.append(process.Child(argv, deadline, env=env, own_session=False))
        ranks = [Rank(place, child) for place, child in enumerate(children)]
        wait = RankWait(ranks, seconds, patience, tell)
        process.run_all(children, wait.look)
    finally:
        process.stop_all(children)
    for rank in ranks:
        rank.end(wait.why)
    wait.report_ready()
    return ranks


def answers(ranks):
    """What all of them answered. Raises RuntimeError with the first reason where one did not."""
    without = sorted((one for one in ranks if one.answer is None), key=lambda one: one.stopped)
    if without:
        raise RuntimeError("rank %d: %s" % (without[0].number, without[0].reason))
    return [one.answer for one in ranks]


def python():
    """How this interpreter is started once more."""
    flags = [("isolated", "-I"), ("no_site", "-S"), ("ignore_environment", "-E")]
    given = [option for name, option in flags if getattr(sys.flags, name)]
    return [sys.executable] + given + ["-B"]


class RankWait(object):
    """Looks at ranks again and again, and stops them once their time is over. why: the reason for that."""

    def __init__(self, ranks, seconds, patience, tell):
        self.why = "no answer within %g s" % seconds
        self._ranks, self._seconds, self._patience, self._tell = ranks, seconds, patience, tell
        self._until = None if tell is not None else time.monotonic() + seconds
        self._over = False

    def look(self):
        if self._over:
            return
        now = time.monotonic()
        for rank in self._ranks:
            rank.worker.step()
        imports = [one for one in self._ranks if one.worker.begun is None and one.worker.runs]
        if self._until is None and not imports:
            self._until = now + self._seconds
            self.report_ready()
        failed = any(not rank.worker.runs and rank.answer is None for rank in self._ranks)
        if self._patience is not None and failed:
            soon = now + self._patience
            self._until = min(soon, self._until or soon)  # which only the first look can change
            self.why = "another rank had failed"
        if self._until is not None and now > self._until:
            self._over = True
            for rank in self._ranks:
                rank.worker.child.stop()

    def report_ready(self):
        """Once, with the longest import."""
        if self._tell is None:
            return
        runs = [rank.reader.run for rank in self._ranks]
        versions = [one["framework_version"] for one in runs if "framework_version" in one]
        seconds = max(one.get("import_seconds", 0.0) for one in runs)
        self._tell.begin(seconds, versions[0] if versions else None)
        self._tell = None
