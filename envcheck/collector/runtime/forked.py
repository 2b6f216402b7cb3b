"""Does dangerous work in forked children, and comes back with what each piece of it came to.

A piece that kills its child or hangs costs that child; the pieces after it go on in a new one.
"""

import json
import os
import resource
import select
import signal
import time
import warnings

from ..facts import dumps, from_error, unavailable
from . import orphans
from .process import signal_name

_GRACE = 0.5  # seconds that a killed child may take to die


class Answer(object):
    """facts: what the piece told, merged. failure: None, or the unavailable fact of why it ended early."""

    def __init__(self):
        self.facts = {}
        self.failure = None


class _Progress(object):
    """Where one child stands: the item it is at (None between two), and the one that comes next."""

    def __init__(self, position):
        self.first = self.next = position
        self.current = None
        self.over = False  # the child does no other item

    def take(self, line, answers):
        message = json.loads(line.decode("ascii"))
        if "begin" in message:
            self.current = message["begin"]
            return
        answers[self.current].facts.update(message.get("tell", {}))
        if "end" in message:
            answers[self.current].failure = message["end"]
            self.next = self.current + 1
            self.current = None
            self.over = message["last"]


def each(items, work, limit, budget, doing):
    """One Answer for each of ``items``, in their order.

    ``work(item, tell)`` runs in a child. It calls ``tell(dict)`` with what it knows so far, as often as
    it likes, and returns whether the child is still as good as new for the next item. limit: seconds
    for one item; budget: seconds for all. doing: what an item undergoes ("loaded"), for its epitaph.
    """
    answers = [Answer() for _ in items]
    stop = time.monotonic() + budget
    bind = orphans.tie(os.getpid())
    position = 0
    while position < len(items):
        if time.monotonic() >= stop:
            for answer in answers[position:]:
                answer.failure = unavailable("timeout", "not tried: the others took all the time")
            break
        progress = _Progress(position)
        try:
            pid, reader, writer = _fork()
        except OSError as error:  # no room for another process or pipe
            for answer in answers[position:]:
                answer.failure = from_error(error)
            break
        if pid == 0:
            try:
                if bind is not None:
                    bind()
                os.close(reader)
                _work_on(items, work, position, writer)
            finally:
                os._exit(0)
        os.close(writer)
        status, hung = _attend(pid, reader, answers, progress, limit, stop)
        position = progress.next
        if progress.current is not None or progress.next == progress.first:
            position = progress.first if progress.current is None else progress.current
            answers[position].failure = _epitaph(status, hung, doing)
            position += 1
    return answers


def _fork():
    """(0 in the child, else its process id; reader; writer). Raises OSError."""
    reader, writer = os.pipe()
    try:
        with warnings.catch_warnings():
            # A framework has threads by now. The child calls into libraries and leaves by _exit; should
            # a lock that some thread held keep it waiting for ever, the limit ends it.
            warnings.simplefilter("ignore")
            pid = os.fork()
    except OSError:
        os.close(reader)
        os.close(writer)
        raise
    return pid, reader, writer


def _attend(pid, reader, answers, progress, limit, stop):
    """See one child through: (its wait status or None, whether it hung)."""
    try:
        hung = not _listen(reader, answers, progress, limit, stop)
    finally:
        os.close(reader)
    return _bury(pid, hung), hung


def _work_on(items, work, position, writer):
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))

    def send(message):
        line = (dumps(message) + "\n").encode("ascii")
        while line:
            line = line[os.write(writer, line) :]

    for index in range(position, len(items)):
        send({"begin": index})
        failure, fresh = None, False
        try:
            fresh = work(items[index], lambda facts: send({"tell": facts}))
        except Exception as error:
            failure = from_error(error)
        last = not fresh or index + 1 == len(items)
        send({"end": failure, "last": last})
        if last:
            break


def _listen(reader, answers, progress, limit, stop):
    """Take in what a child sends; False when it had to be given up."""
    pending = b""
    deadline = min(stop, time.monotonic() + limit)
    poll = select.poll()  # select() knows no descriptor above 1023, and a framework may hold many
    poll.register(reader, select.POLLIN)
    while True:
        left = deadline - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            return False
        chunk = os.read(reader, 65536)
        if not chunk:
            return True
        lines = (pending + chunk).split(b"\n")
        pending = lines.pop()
        for line in lines:
            progress.take(line, answers)
        if progress.over:
            return True  # a process that a library has left behind may keep the pipe open
        if lines:
            deadline = min(stop, time.monotonic() + limit)


def _bury(pid, hung):
    """Wait for a child, not for ever: its status, or None where it would not die."""
    if hung:
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + _GRACE
    while True:
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            return status
        if time.monotonic() > end:
            if hung:
                return None  # stuck in the kernel: it goes with the probe's process group
            hung, end = True, time.monotonic() + _GRACE
            os.kill(pid, signal.SIGKILL)
        time.sleep(0.0005)


def _epitaph(status, hung, doing):
    if hung:
        return unavailable("timeout", "did not come back while being %s" % doing)
    if status is not None and os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return unavailable(
            "error", "died by signal %d (%s) while being %s" % (number, signal_name(number), doing)
        )
    return unavailable("error", "ended its process while being %s" % doing)
