"""What a system's process tells while it works, a line a record, and what its parent makes of it.

Records: {"run": {...}} fields of the SystemRun; {"ready": seconds} when the framework is imported and the
work begins; {"begin": {...}} a Trial without an outcome; {"trial": {...}} the same with one; {"answer": ...}
of a rank; {"done": true} at the end.

What is told is bounded, by the child and once more by its parent: a Snapshot has well under a megabyte.
"""

import json
import os
import time

from ..facts import REASONS, dumps, is_unavailable, plain, unavailable
from ..kernels.failures import NotSupported

MARK = b"@envcheck-system "
IMPORT = 90.0  # seconds for a framework to be imported
LENGTH = 400  # characters of a reason, or of a word of evidence
KEYS = 60  # of a trial's evidence
WORDS = 40  # of a list
TRIALS = 100  # of a process
TOTAL = 128 * 1024  # bytes of all that a process tells
ANSWER = 1024 * 1024  # bytes of a rank's answer, which goes into no Snapshot
DEPTH = 10  # of lists and objects in a rank's answer
_NAME = 80  # characters
_BIGGEST = 2**63 - 1
# Of a run, and of a trial: as in facts/acceleration.py.
OUTCOMES = ("ok", "not-applicable", "not-run", "busy", "error", "timeout", "crashed")
TRIAL_OUTCOMES = ("ok", "error", "out-of-memory", "timeout", "crashed", "not-supported")
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

    def answer(self, value):
        """A rank's answer. Raises ValueError where it is too large, or too deep."""
        value = _tree(value, DEPTH)
        size = len(dumps(value))
        if size > ANSWER:
            raise ValueError("its answer has %d bytes, and may have %d" % (size, ANSWER))
        self.tell(answer=value)

    def tell(self, **record):
        data = b"\n" + MARK + dumps(record).encode("utf-8") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


class _Trial(object):
    def __init__(self, teller, name, control):
        self._teller = teller
        self._told = {"name": line(name, _NAME)}
        if control:
            self._told["control"] = True
        self._evidence = {}

    def __setitem__(self, name, value):
        self._evidence[name] = value

    def __enter__(self):
        self._teller.tell(begin=self._told)
        self._began = time.monotonic()
        return self

    def __exit__(self, _kind, error, _trace):
        self._told["seconds"] = round(time.monotonic() - self._began, 3)
        self._told["outcome"] = "ok"
        self._told["evidence"] = evidence_of(self._evidence)
        if isinstance(error, Exception):
            self._told["outcome"], self._told["reason"] = outcome_of(error)
        if error is None or isinstance(error, Exception):
            self._teller.tell(trial=self._told)
        return isinstance(error, Exception)


def evidence_of(told):
    """A trial's evidence as a Snapshot can hold it: what has no value is left out."""
    found = {}
    for name in list(told)[:KEYS]:
        value = _value(told[name])
        if value is not None:
            found[line(name, _NAME)] = value
    return found


def _value(value):
    """A count, a number, a word, a flag or a list of words; None where there is nothing to tell."""
    if isinstance(value, (list, tuple, set, frozenset)):
        items = sorted(value, key=str) if isinstance(value, (set, frozenset)) else value
        return [line(item) for item in list(items)[:WORDS]]
    return _scalar(value)


def _scalar(value):
    if not isinstance(value, (bool, int, float, str, bytes)) and hasattr(value, "item"):
        try:
            value = value.item()  # of numpy's, or of a framework's
        except Exception:  # an array
            return line(value)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(float(value))
    if isinstance(value, float):
        return float(value)  # of a subclass, too
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) > _BIGGEST:
        return line(value)
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) else line(value)


def _tree(value, depth):
    if isinstance(value, (dict, list, tuple)) and not depth:
        raise ValueError("its answer is nested more than %d deep" % DEPTH)
    if isinstance(value, dict):
        return {line(name): _tree(item, depth - 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_tree(item, depth - 1) for item in value]
    return plain(value) if isinstance(value, str) else _scalar(value)


def outcome_of(error):
    """(outcome, reason) of a Trial that ended with this exception."""
    if isinstance(error, NotSupported):
        return "not-supported", line(error)
    words = line(error, 10 * LENGTH)
    words = "%s: %s" % (type(error).__name__, words) if words else type(error).__name__
    if isinstance(error, MemoryError) or is_out_of_memory(words):
        return "out-of-memory", line(words)
    return "error", line(words)


def is_out_of_memory(words):
    """Whether a framework's words say that it had no memory left."""
    return any(word in words.lower() for word in _NO_MEMORY)


def line(words, length=LENGTH):
    """The words on one line, not too long, with nothing in it that a terminal obeys."""
    try:
        if isinstance(words, bytes):
            words = words[: 20 * length].decode("utf-8", "replace")
        words = plain(str(words)[: 20 * length])
    except Exception as error:  # its own __str__ fails
        words = "%s, which cannot be shown: %s" % (type(words).__name__, type(error).__name__)
    shown = "".join(one if one.isprintable() else " " for one in words)
    return " ".join(shown.split())[:length]


class SystemHeard(object):
    """The parent's side: what a process has told so far. What is no record of ours is not heard."""

    def __init__(self):
        self.run = {}
        self.trials = []
        self.begun = None  # a Trial that was announced and has no outcome yet
        self.ready = False
        self.done = False
        self.answer = None
        self.full = False  # it told more than fits: the rest is left out
        self._size = 0

    def hear(self, stdout):
        """Take in whole lines of a process's output (bytes)."""
        for text in stdout.split(b"\n"):
            if text.startswith(MARK):
                try:
                    self._take(json.loads(text[len(MARK) :].decode("utf-8")), len(text))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    continue  # cut off by its death

    def _take(self, record, size):
        if "answer" in record:
            self.answer = record["answer"]
        elif "done" in record:
            self.done = True
        elif "ready" in record:
            self.run["import_seconds"] = seconds(record["ready"])
            self.ready = True
        elif "run" in record:
            self.run.update(_run_facts(record["run"]))
        elif "begin" in record:
            self.begun = _trial_facts(dict(record["begin"], outcome="ok"))
        elif "trial" in record:
            told = _trial_facts(record["trial"])
            self._size += size
            self.full = self.full or len(self.trials) >= TRIALS or self._size > TOTAL
            if not self.full:
                self.trials.append(told)
            self.begun = None


def _run_facts(told):
    found = {}
    if told.get("outcome") in OUTCOMES:
        found["outcome"] = told["outcome"]
    if "reason" in told:
        found["reason"] = line(told["reason"])
    version = told.get("framework_version")
    if isinstance(version, str):
        found["framework_version"] = line(version, _NAME)
    elif is_unavailable(version) and version["unavailable"] in REASONS:
        found["framework_version"] = unavailable(
            version["unavailable"], line(version.get("detail", ""))
        )
    return found


def _trial_facts(told):
    """The fields of a SystemTrial. Raises ValueError where it is none."""
    if told["outcome"] not in TRIAL_OUTCOMES:
        raise ValueError("no outcome of a trial's")
    found = {
        "name": line(told["name"], _NAME),
        "outcome": told["outcome"],
        "reason": line(told.get("reason", "")),
        "seconds": seconds(told.get("seconds", 0.0)),
        "evidence": evidence_of(dict(told.get("evidence", {}))),
    }
    if told.get("control") is True:
        found["control"] = True
    return found


def seconds(told):
    """A number of seconds, bounded. Raises ValueError, TypeError where it is none."""
    seconds = float(told)
    if not 0.0 <= seconds < 1e6:
        raise ValueError("no number of seconds")
    return round(seconds, 3)
