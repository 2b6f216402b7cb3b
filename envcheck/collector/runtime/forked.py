"""Dangerous calls in forked children: what hangs or dies there costs nothing else."""

import json
import os
import resource
import select
import signal
import time
import warnings
from functools import partial

from ..facts import from_error, unavailable
from . import orphans, process
from .process import signal_name

_GRACE = 0.5  # seconds that a killed child may take to die; then it is left behind


class Answer(object):
    """facts: what the item reported, merged. failure: None, or the unavailable fact of why it ended early."""

    def __init__(self):
        self.facts = {}
        self.failure = None


class _Child(object):
    """A fork that runs ``work(send, descriptor)``; its messages are JSON, a line each. Raises OSError."""

    def __init__(self, work):
        bind = orphans.tie(os.getpid())
        self._reader, writer = os.pipe()
        self._lines = [b""]
        self.is_late = False
        try:
            with warnings.catch_warnings():
                # A framework has threads by now. The child calls into libraries and leaves by _exit;
                # should a lock that some thread held keep it waiting for ever, the limit ends it.
                warnings.simplefilter("ignore")
                self.pid = os.fork()
        except OSError:
            os.close(self._reader)
            os.close(writer)
            raise
        if self.pid == 0:
            try:
                if bind is not None:
                    bind()
                os.close(self._reader)
                resource.setrlimit(
                    resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1])
                )
                work(lambda message: _send(writer, message), writer)
            finally:
                os._exit(
                    0
                )  # nothing of the parent's (its buffers, its exit handlers) is the child's
        os.close(writer)

    def next(self, deadline):
        """The next message; None at its end, or at the deadline, a time.monotonic(): then ``is_late``."""
        poll = (
            select.poll()
        )  # select() knows no descriptor above 1023, and a framework may hold many
        poll.register(self._reader, select.POLLIN)
        while len(self._lines) < 2:
            seconds = deadline - time.monotonic()
            if seconds < -1.0 or not poll.poll(max(0.0, seconds) * 1000):  # what is there counts
                self.is_late = True
                return None
            data = os.read(self._reader, 1 << 16)
            if not data:
                return None
            self._lines = (self._lines.pop() + data).split(b"\n")
        return json.loads(self._lines.pop(0).decode("ascii"))

    def end(self):
        """Its wait status, or None where it does not die: it goes with the probe's process group."""
        os.close(self._reader)
        if self.is_late:
            os.kill(self.pid, signal.SIGKILL)
        status = self._wait()
        if status is None and not self.is_late:
            self.is_late = True
            os.kill(self.pid, signal.SIGKILL)
            status = self._wait()
        return status

    def _wait(self):
        end = time.monotonic() + _GRACE
        while True:
            found, status = os.waitpid(self.pid, os.WNOHANG)
            if found:
                return status
            if time.monotonic() > end:
                return None
            time.sleep(0.0005)


def _send(descriptor, message):
    line = (json.dumps(message) + "\n").encode("ascii")
    while line:
        line = line[os.write(descriptor, line) :]


def call_all(functions, deadline):
    """Call them side by side, each in a child of its own, and come back after ``deadline`` seconds.

    What a function returns must be JSON. A list of ("ok", what it returned), ("error", the unavailable fact
    that its exception stands for) or ("timeout", None). Whoever started this process names a stuck child.
    """
    children = [
        process.Child(["look"], deadline, own_session=False, tied=True, work=partial(_call, one))
        for one in functions
    ]
    process.run_all(children)
    return [_answer(child.result) for child in children]


def _call(function):
    try:
        answer = ["ok", function()]
    except Exception as error:
        answer = ["error", from_error(error)]
    _send(1, answer)
    os._exit(0)


def _answer(result):
    if result.outcome == "timeout":
        return "timeout", None
    if not result.ok or not result.stdout:
        return "error", unavailable("error", "the child that looked %s" % result.describe())
    return tuple(json.loads(result.stdout.decode("ascii")))


def each(items, work, limit, budget, doing):
    """One Answer for each of ``items``, in their order; an item that kills its child or hangs costs itself.

    ``work(item, tell)`` runs in a child. It calls ``tell(dict)`` with what it knows so far, as often as
    it likes, and returns whether the child is still as good as new for the next item. limit: seconds
    for one item; budget: seconds for all. doing: what an item undergoes ("loaded"), for its failure.
    """
    answers = [Answer() for _ in items]
    stop = time.monotonic() + budget
    position = 0
    while position < len(items):
        failure = None
        if time.monotonic() >= stop:
            failure = unavailable("timeout", "not tried: the others took all the time")
        else:
            try:
                child = _Child(partial(_work_on, items, work, position))
            except OSError as error:  # no room for another process or pipe
                failure = from_error(error)
        if failure is not None:
            for answer in answers[position:]:
                answer.failure = failure
            break
        position = _attend(child, answers, position, limit, stop, doing)
    return answers


def _work_on(items, work, position, send, _descriptor):
    for index in range(position, len(items)):
        send({"begin": index})
        failure, fresh = None, False
        try:
            fresh = work(items[index], lambda facts: send({"facts": facts}))
        except Exception as error:
            failure = from_error(error)
        last = not fresh or index + 1 == len(items)
        send({"end": failure, "last": last})
        if last:
            break


def _attend(child, answers, position, limit, stop, doing):
    """See one child through. The position of the item that comes next."""
    while True:
        message = child.next(min(stop, time.monotonic() + limit))
        if message is None:  # it died or hangs, within this item
            break
        if "begin" in message:
            position = message["begin"]
        elif "facts" in message:
            answers[position].facts.update(message["facts"])
        elif "end" in message:  # foreign code may have spoilt what comes
            answers[position].failure = message["end"]
            position += 1
            if message["last"]:  # a process that a library has left behind may keep the pipe open
                child.end()
                return position
    late = child.is_late
    answers[position].failure = _why(child.end(), late, doing)
    return position + 1


def _why(status, late, doing):
    if late:
        return unavailable("timeout", "did not come back while being %s" % doing)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        words = "died by signal %d (%s) while being %s" % (number, signal_name(number), doing)
        return unavailable("error", words)
    return unavailable("error", "ended its process while being %s" % doing)
