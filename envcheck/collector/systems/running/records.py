"""What a system's process reports while it works, and what its parent makes of it.

In messages of the worker protocol: "begin" has facts of the run and the seconds of the framework's import; a
trial is a stage, and its result a SystemTrial; the other results are ranks' answers.
Parent and child bound what is reported: a Snapshot has well under a megabyte.
"""

import contextlib
import time

from ...facts import REASONS, dumps, is_unavailable, unavailable
from ...kernels.failures import NotSupported
from ...worker import messages
from ...worker.messages import one_line

IMPORT = 90.0  # seconds for a framework to be imported
KEYS = 60  # of a trial's evidence
WORDS = 40  # of a list
TRIALS = 100  # of a process
TOTAL = 128 * 1024  # bytes of all evidence
_NAME = 80  # characters
_BIGGEST = 2**63 - 1
# Of a run, and of a trial: as in facts/acceleration.py.
OUTCOMES = ("ok", "not-applicable", "not-run", "busy", "error", "timeout", "crashed")
TRIAL_OUTCOMES = ("ok", "error", "out-of-memory", "timeout", "crashed", "not-supported")
_NO_MEMORY = ("out of memory", "resource exhausted", "resourceexhausted", "oom when")
TRIAL, CONTROL, RANK = "trial", "control", "rank"  # keys of results


class NotApplicable(messages.Ended):
    """Raised outside of trials: the system is not there, or this machine has no use for it."""

    outcome = "not-applicable"


class CouldNotRun(messages.Ended):
    """Raised outside of trials: what the system needs is missing."""

    outcome = "not-run"


class SystemWriter(object):
    """The child's side, which a system gets as ``tell``."""

    def __init__(self, tell):
        self._tell = tell

    def begin(self, seconds, version=None):
        """The framework is imported, and the work begins."""
        facts = {} if version is None else {"framework_version": version}
        self._tell.begin(import_seconds=round(seconds, 3), **facts)

    @contextlib.contextmanager
    def trial(self, name, control=False):
        """What is run in ``with tell.trial(...) as trial:``; ``trial[...] = ...`` is its evidence."""
        name, key, trial = one_line(name, _NAME), CONTROL if control else TRIAL, Trial()
        self._tell.stage(name, key)
        began, found = time.monotonic(), {"name": name, "outcome": "ok"}
        try:
            yield trial
        except Exception as error:
            found["outcome"], found["reason"] = outcome_of(error)
        found.update(seconds=round(time.monotonic() - began, 3), evidence=evidence_of(trial))
        self._tell.result(found, key)

    def stage(self, name):
        """What a rank does next, for the one who waits for it."""
        self._tell.stage(name, RANK)

    def answer(self, value):
        """A rank's, which goes into no Snapshot."""
        self._tell.result(value, RANK)


class Trial(dict):
    """The evidence of a trial, while it runs."""

    def compare(self, values, reference):
        """How far an array is off, as a share of the largest value; reference: None without one."""
        if reference is not None:
            largest = float(abs(reference).max())
            self["difference"] = float(abs(values - reference).max()) / largest


def evidence_of(given):
    """A trial's evidence as a Snapshot can hold it: what has no value is left out."""
    values = ((one_line(name, _NAME), _value(given[name])) for name in list(given)[:KEYS])
    return {name: value for name, value in values if value is not None}


def _value(value):
    """A count, a number, a word, a flag or a list of words; None where there is nothing."""
    if isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if isinstance(value, (list, tuple)):
        return [one_line(item) for item in list(value)[:WORDS]]
    if not isinstance(value, (bool, int, float, str, bytes)) and hasattr(value, "item"):
        try:
            value = value.item()  # of numpy's, or of a framework's
        except Exception:  # an array
            return one_line(value)
    if isinstance(value, float):  # or of a subclass
        finite = value == value and value not in (float("inf"), float("-inf"))
        return float(value) if finite else str(float(value))
    if value is None or isinstance(value, bool):
        return value
    return int(value) if isinstance(value, int) and abs(value) <= _BIGGEST else one_line(value)


def outcome_of(error):
    """(outcome, reason) of a trial that ended with this exception."""
    if isinstance(error, NotSupported):
        return "not-supported", one_line(error)
    words = messages.describe(error)
    if isinstance(error, MemoryError) or is_out_of_memory(one_line(error, 4000)):
        return "out-of-memory", words
    return "error", words


def is_out_of_memory(words):
    """Whether a framework's words say that it had no memory left."""
    plain = words.lower().replace("_", " ")
    return any(word in plain for word in _NO_MEMORY)


class SystemReader(object):
    """The parent's side: ``take`` is a Worker's."""

    def __init__(self):
        self.run = {}  # fields of the SystemRun
        self.trials = []
        self.answer = None
        self.full = False  # it reported more than fits: the rest is left out
        self._size = 0

    def take(self, kind, value, key):
        if kind == "begin":
            self.run["import_seconds"] = seconds(value.get("import_seconds", 0.0))
            version = value.get("framework_version")
            if isinstance(version, str):
                self.run["framework_version"] = one_line(version, _NAME)
            elif is_unavailable(version) and version["unavailable"] in REASONS:
                why = one_line(version.get("detail", ""))
                self.run["framework_version"] = unavailable(version["unavailable"], why)
        elif key == RANK:
            self.answer = value
        elif key in (TRIAL, CONTROL):
            trial = trial_of(value, key)
            self._size += len(dumps(trial))
            self.full = self.full or len(self.trials) >= TRIALS or self._size > TOTAL
            if not self.full:
                self.trials.append(trial)


def trial_of(given, key):
    """The fields of a SystemTrial. Raises ValueError for anything else."""
    if given["outcome"] not in TRIAL_OUTCOMES:
        raise ValueError("no outcome of a trial")
    found = {
        "name": one_line(given["name"], _NAME),
        "outcome": given["outcome"],
        "reason": one_line(given.get("reason", "")),
        "seconds": seconds(given.get("seconds", 0.0)),
        "evidence": evidence_of(dict(given.get("evidence", {}))),
    }
    return dict(found, control=True) if key == CONTROL else found


def seconds(given):
    """A number of seconds, bounded. Raises ValueError, TypeError for anything else."""
    found = float(given)
    if not 0.0 <= found < 1e6:
        raise ValueError("no number of seconds")
    return round(found, 3)
