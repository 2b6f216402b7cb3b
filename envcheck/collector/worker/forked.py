"""Dangerous calls in forked children: what hangs or dies there costs nothing else."""

import json
import os
import resource
import time
from functools import partial

from ..facts import from_error, unavailable
from ..runtime import process
from . import messages
from .parent import Limits, Worker

_OUTPUT = 128 << 20  # bytes of one child


class Answer(object):
    """facts: what the item reported, merged. failure: None, or the unavailable fact of why it ended early.

    tried: whether it was its turn.
    """

    def __init__(self):
        self.tried = True
        self.facts = {}
        self.failure = None


def call_all(functions, deadline):
    """Call them side by side, each in a child of its own, and come back after ``deadline`` seconds.

    What a function returns must be JSON. A list of ("ok", what it returned), ("error", the unavailable fact
    that its exception stands for) or ("timeout", None). Whoever started this process names a stuck child.
    """
    children = [_child(partial(_call, one), deadline) for one in functions]
    process.run_all(children)
    return [_answer(child.result) for child in children]


def _child(work, deadline):
    return process.Child(["look"], deadline, own_session=False, tied=True, work=work, limit=_OUTPUT)


def _call(function):
    try:
        answer = ["ok", function()]
    except Exception as error:
        answer = ["error", from_error(error)]
    with open(1, "w") as output:
        output.write(json.dumps(answer))
    os._exit(0)


def _answer(result):
    if result.outcome == "timeout":
        return "timeout", None
    if not result.ok or not result.stdout:
        return "error", unavailable("error", "the child that looked %s" % result.describe())
    return tuple(json.loads(result.stdout.decode("ascii")))


def each(items, work, limit, budget, doing, prepare=None, start=None, answers=None):
    """One Answer for each of ``items``, in their order; an item that kills its child or hangs costs itself.

    ``work(item, tell)`` runs in a child. It calls ``tell(dict)`` with what it knows so far, as often as
    it likes, and returns whether the child is still as good as new for the next item. limit: seconds
    for one item; budget: seconds for all. doing: what an item undergoes ("loaded"), for its failure.
    prepare: called first in each child, and may take ``start`` seconds. answers: an empty list to use, in
    which a child sees what became of the items before its own.
    """
    answers = [] if answers is None else answers
    answers += [Answer() for _ in items]
    work = partial(_work_on, items, work, prepare)
    limits = partial(Limits, start=start or limit, stage=limit)
    stop = time.monotonic() + budget
    position = 0
    while position < len(items) and time.monotonic() < stop:
        position = _attend(work, answers, position, limits(), stop, doing)
    for answer in answers[position:]:
        answer.tried = False
        answer.failure = unavailable("timeout", "not tried: the others took all the time")
    return answers


def _work_on(items, work, prepare, position):
    """In a child: one item after the other, until one has changed this process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    tell = messages.Writer(os.dup(1))
    os.dup2(2, 1)  # what a library prints from here on is no message
    if prepare is not None:
        prepare()
    for item in items[position:]:
        tell.begin()
        failure, fresh = None, False
        try:
            fresh = work(item, partial(tell.result, key="facts"))
        except Exception as error:
            failure = from_error(error)
        tell.result(failure, "end")
        if not fresh:
            break
    tell.done()
    os._exit(0)


def _attend(work, answers, position, limits, stop, doing):
    """See one child through. The position of the item that comes next."""
    at = [position]

    def take(_kind, value, key):
        if key == "facts":
            answers[at[0]].facts.update(value)
        elif key == "end":
            answers[at[0]].failure = value
            at[0] += 1

    child = _child(partial(work, position), max(0.0, stop - time.monotonic()))
    worker = Worker(child, limits, take)
    process.run_all([child], worker.step)
    worker.step()
    if worker.done or at[0] == len(answers):
        return at[0]
    if worker.outcome == "timeout":
        failure = unavailable("timeout", "did not come back while being %s" % doing)
    else:
        words = "%s while being %s" % (child.result.describe(), doing)
        failure = unavailable("error", words)
    answers[at[0]].failure = failure
    return at[0] + 1
