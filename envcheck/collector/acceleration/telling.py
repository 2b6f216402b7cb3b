"""What a system's process tells while it works, a line a record, and what its parent makes of it.

Records: {"run": {...}} fields of the SystemRun; {"ready": seconds} when the framework is imported and the
work begins; {"begin": {...}} a Trial without an outcome; {"trial": {...}} the same with one; {"answer": ...}
of a rank; {"done": true} at the end.
"""

import json
import os
import time

from ..facts import dumps
from ..kernels.failures import NotSupported

MARK = b"@envcheck-system "
_REASON = 400  # characters
_NO_MEMORY = (
    "out of memory",
    "out_of_memory",
    "resourceexhausted",
    "resource_exhausted",
    "oom when",
)


class NotApplicable(Exception):
    """Raised outside of trials: the system is not there, or this machine has no use for it."""


class CouldNotRun(Exception):
    """Raised outside of trials: what the system needs is missing."""


class SystemTeller(object):
    """The child's side: writes records to a file descriptor of its own, past every buffer."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def run(self, **facts):
        """Fields of the SystemRun."""
        self.tell(run=facts)

    def trial(self, name, control=False):
        """What is run in ``with tell.trial(...) as trial:``; ``trial[...] = ...`` is its evidence."""
        return _Trial(self, name, control)

    def tell(self, **record):
        data = b"\n" + MARK + dumps(record).encode("utf-8") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


class _Trial(object):
    def __init__(self, teller, name, control):
        self._teller = teller
        self._told = {"name": name}
        if control:
            self._told["control"] = True
        self._evidence = {}

    def __setitem__(self, name, value):
        self._evidence[name] = _plain(value)

    def __enter__(self):
        self._teller.tell(begin=self._told)
        self._began = time.monotonic()
        return self

    def __exit__(self, _kind, error, _trace):
        self._told["seconds"] = round(time.monotonic() - self._began, 3)
        self._told["outcome"] = "ok"
        if self._evidence:
            self._told["evidence"] = self._evidence
        if isinstance(error, Exception):
            self._told["outcome"], self._told["reason"] = outcome_of(error)
        if error is None or isinstance(error, Exception):
            self._teller.tell(trial=self._told)
        return isinstance(error, Exception)


def _plain(value):
    """A count, a number, a word, a flag or a list of words, as JSON can hold it."""
    if isinstance(value, (list, tuple)):
        return [line(item) for item in value]
    if hasattr(value, "item"):  # a scalar of numpy's, or of a framework's
        value = value.item()
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value if isinstance(value, (bool, int, float)) else line(value)


def outcome_of(error):
    """(outcome, reason) of a Trial that ended with this exception."""
    if isinstance(error, NotSupported):
        return "not-supported", line(error)
    words = "%s: %s" % (type(error).__name__, error)
    if isinstance(error, MemoryError) or any(word in words.lower() for word in _NO_MEMORY):
        return "out-of-memory", line(words)
    return "error", line(words)


def line(words):
    """The words on one line, not too long."""
    return " ".join(str(words).split())[:_REASON]


class SystemHeard(object):
    """The parent's side: what a process has told so far."""

    def __init__(self):
        self.run = {}
        self.trials = []
        self.begun = None  # a Trial that was announced and has no outcome yet
        self.ready = False
        self.done = False
        self.answer = None

    def hear(self, stdout):
        """Take in whole lines of a process's output (bytes)."""
        for text in stdout.splitlines():
            if text.startswith(MARK):
                try:
                    self._take(json.loads(text[len(MARK) :].decode("utf-8")))
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue  # cut off by its death

    def _take(self, record):
        if "run" in record:
            self.run.update(record["run"])
        elif "ready" in record:
            self.ready = True
            self.run["import_seconds"] = record["ready"]
        elif "begin" in record:
            self.begun = dict(record["begin"])
        elif "trial" in record:
            self.trials.append(record["trial"])
            self.begun = None
        elif "answer" in record:
            self.answer = record["answer"]
        elif "done" in record:
            self.done = True
