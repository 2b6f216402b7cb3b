"""Further processes of a system, its ranks: copies of itself that work together, and end with it."""

import json
import os
import sys
import time

from ..runtime import process
from . import telling
from .child import BOOTSTRAP


class Rank(object):
    """One of them. answer: what its ``rank(framework, params)`` returned; None without an answer."""

    def __init__(self, number, child):
        self.number = number
        self.reason = ""  # why there is no answer
        self.stopped = False  # the reason is that others were waited for, or that time was over
        self.stderr = ""
        self._child = child
        self._heard = telling.SystemHeard()

    @property
    def answer(self):
        return self._heard.answer

    @property
    def told(self):
        """Fields of the SystemRun that it knows: the framework's version, the seconds of its import."""
        return self._heard.run

    def look(self):
        """(whether it is ready or over, whether it is over without an answer)."""
        result = self._child.poll()
        self._heard.hear(self._child.new_stdout())
        return self._heard.ready or result is not None, result is not None and self.answer is None

    def stop(self):
        self._child.stop()

    def end(self, why):
        """Once its process is over. why: what it is said of it where it was stopped."""
        self.look()
        result = self._child.result
        self.stderr = result.stderr.decode("utf-8", "replace")
        if self.answer is None:
            self.stopped = result.outcome == "stopped"
            self.reason = why if self.stopped else _why(self._heard, result)


def run(params, number, seconds, environ=None, more=None, patience=None, tell=None):
    """Start that many ranks side by side and wait for them: a list of Rank, in their order.

    environ(rank): variables of a rank beside this process's own; None takes one away. more(rank): params
    of its own.
    patience: seconds that the others still get once one has failed; None: all the time there is.
    tell: the teller of a system that lets its ranks import the framework. It hears when all of them have
    done so, and their seconds begin only then.
    params["rank"] and params["ranks"] tell each which it is, and how many there are.
    """
    children = []
    try:
        for rank in range(number):
            own = dict(params, rank=rank, ranks=number, **(more(rank) if more else {}))
            own["parent"] = os.getpid()
            argv = python() + ["-c", BOOTSTRAP, params["root"], params["module"], json.dumps(own)]
            env = dict(os.environ, **(environ(rank) if environ else {}))
            env = {name: value for name, value in env.items() if value is not None}
            deadline = seconds + (telling.IMPORT if tell is not None else 0.0)
            # In this process's group, which is ended as a whole.
            children.append(process.Child(argv, deadline, env=env, own_session=False))
        ranks = [Rank(place, child) for place, child in enumerate(children)]
        wait = _Wait(ranks, seconds, patience, tell)
        process.run_all(children, wait.look)
    finally:
        process.stop_all(children)
    for rank in ranks:
        rank.end(wait.why)
    wait.tell_ready()
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


class _Wait(object):
    """Looks at ranks again and again, and stops them once their time is over. why: the reason for that."""

    def __init__(self, ranks, seconds, patience, tell):
        self.why = "it was stopped"
        self._ranks = ranks
        self._seconds = seconds
        self._patience = patience
        self._tell = tell
        self._until = None if tell is not None else time.monotonic() + seconds
        self._bereft = False
        self._over = self._told = False

    def look(self):
        if self._over:
            return
        now = time.monotonic()
        looks = [rank.look() for rank in self._ranks]
        if self._tell is not None and not self._told and all(ready for ready, _over in looks):
            self._until = self._until or now + self._seconds
            self.tell_ready()
        if self._patience is not None and not self._bereft and any(over for _ready, over in looks):
            self._bereft = True
            self._until = min(now + self._patience, self._until or now + self._patience)
        if self._until is not None and now > self._until:
            words = "no answer within %g s" % self._seconds
            self.why = "another rank had failed" if self._bereft else words
            self._over = True
            for rank in self._ranks:
                rank.stop()

    def tell_ready(self):
        if self._tell is None or self._told:
            return
        self._told = True
        told = [rank.told for rank in self._ranks]
        versions = [one["framework_version"] for one in told if "framework_version" in one]
        if versions:
            self._tell.run(framework_version=versions[0])
        self._tell.tell(ready=max(one.get("import_seconds", 0.0) for one in told))


def _why(heard, result):
    if heard.run.get("reason"):
        return heard.run["reason"]
    last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return telling.line("%s%s" % (result.describe(), ": " + last[0] if last else ""))
