"""Further processes of a system, its ranks: copies of itself that work together, and end with it."""

import json
import os
import sys
import time

from ..runtime import process
from . import telling
from .child import BOOTSTRAP


class Rank(object):
    """What became of one. answer: what its ``rank(framework, params)`` returned; None without an answer."""

    def __init__(self, number, result):
        heard = telling.SystemHeard()
        heard.hear(result.stdout)
        self.number = number
        self.answer = heard.answer
        self.stderr = result.stderr.decode("utf-8", "replace")
        self.reason = "" if self.answer is not None else _why(heard, result)


def run(params, number, seconds, environ=None, more=None, patience=None):
    """Start that many ranks side by side and wait for them: a list of Rank, in their order.

    environ(rank): variables of a rank beside this process's own. more(rank): params of its own.
    patience: seconds that the others still get once one has failed; None: all the time there is.
    params["rank"] and params["ranks"] tell each which it is, and how many there are.
    """
    children = []
    try:
        for rank in range(number):
            own = dict(params, rank=rank, ranks=number, **(more(rank) if more else {}))
            own["parent"] = os.getpid()
            argv = python() + ["-c", BOOTSTRAP, params["root"], params["module"], json.dumps(own)]
            env = dict(os.environ, **(environ(rank) if environ else {}))
            # In this process's group, which is ended as a whole.
            children.append(process.Child(argv, seconds, env=env, own_session=False))
        process.run_all(children, _impatient(children, patience))
    finally:
        process.stop_all(children)
    return [Rank(place, child.result) for place, child in enumerate(children)]


def python():
    """How this interpreter is started once more."""
    flags = [("isolated", "-I"), ("no_site", "-S"), ("ignore_environment", "-E")]
    given = [option for name, option in flags if getattr(sys.flags, name)]
    return [sys.executable] + given + ["-B"]


def _impatient(children, patience):
    """A tick that stops all children so many seconds after the first that failed."""
    since = []

    def tick():
        if patience is None:
            return
        if not since and any(_failed(one.result) for one in children):
            since.append(time.monotonic())
        if since and time.monotonic() - since[0] > patience:
            for child in children:
                child.stop()

    return tick


def _failed(result):
    return result is not None and not (result.ok and b'{"answer": ' in result.stdout)


def _why(heard, result):
    if heard.run.get("reason"):
        return heard.run["reason"]
    last = result.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
    return telling.line("%s%s" % (result.describe(), ": " + last[0] if last else ""))
