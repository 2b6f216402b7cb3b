"""What the parent takes of a row's process, bounded and made safe.

"begin" has the framework's version and the seconds of its import. Results, by their keys: "built" {"seconds",
"parameters"}; "warm" {"steps", "seconds", "steady", "rate"}; "memory" {…}; "evidence" {…}; "repetition"
{"t", "seconds", "steps", "skipped", "loss"}, t by CLOCK_MONOTONIC.
"""

from ..facts import is_unavailable, unavailable
from ..systems.running.records import evidence_of, outcome_of, seconds
from ..worker import messages
from ..worker.messages import one_line

OUTCOMES = (
    "ok",
    "out-of-memory",
    "not-supported",
    "not-applicable",
    "not-run",
    "error",
    "timeout",
    "crashed",
    "interrupted",
)
MOST_REPETITIONS = 1000
_MOST = {"mib": 1 << 30, "parameters": 1 << 50, "steps": 1 << 40}
_NAME = 80  # characters


class RowFailed(messages.Ended):
    """A row that cannot be run any further, by what its training raised."""

    def __init__(self, error):
        self.outcome, reason = outcome_of(error)
        messages.Ended.__init__(self, reason)


class RowReader(object):
    """The parent's side: what a row's process has reported so far. ``take`` is a Worker's."""

    def __init__(self):
        self.run = {}  # fields of the RowRun
        self.repetitions = []  # "began" is the clock's
        self.losses = []
        self.rate = None  # steps per second, the last that is known

    def take(self, kind, value, key):
        if kind == "begin":
            self.run["import_seconds"] = seconds(value["import_seconds"])
            if isinstance(value.get("framework_version"), str):
                self.run["framework_version"] = one_line(value["framework_version"], _NAME)
        elif key == "built":
            self.run["build_seconds"] = seconds(value["seconds"])
            self.run["parameters"] = _count(value["parameters"], "parameters")
        elif key == "warm":
            steps, spent = _count(value["steps"], "steps"), _bounded(value["seconds"])
            steady = value["steady"] is True
            self.run["warm_up"] = {"steps": steps, "seconds": round(spent, 3), "steady": steady}
            self.rate = None if value["rate"] is None else _bounded(value["rate"], 1e12)
        elif key == "evidence":
            self.run["evidence"] = evidence_of(dict(value))
        elif key == "memory":
            names = ("tensors_mib", "pool_mib")
            self.run["memory"] = {name: _mib(value[name]) for name in names if name in value}
        elif key == "repetition" and len(self.repetitions) < MOST_REPETITIONS:
            self._take_repetition(value)

    def _take_repetition(self, value):
        steps, spent = _count(value["steps"], "steps"), _bounded(value["seconds"])
        found = {"began": _bounded(value["t"], 1e12), "seconds": round(spent, 6), "steps": steps}
        found["skipped"] = min(_count(value["skipped"], "steps"), steps)
        self.rate = steps / max(spent, 1e-9)
        self.repetitions.append(found)
        loss = value["loss"]
        self.losses.append(loss if isinstance(loss, float) and abs(loss) < 1e300 else None)


def _mib(given):
    """A known or an unavailable fact."""
    if is_unavailable(given):
        return unavailable("error", one_line(given.get("detail", "")))
    try:
        return _count(given, "mib")
    except (ValueError, TypeError, OverflowError):
        return unavailable("error", one_line("reported as %r" % (given,)))


def _bounded(given, most=1e6):
    """A float from 0 to below ``most``. Raises ValueError, TypeError for anything else."""
    value = float(given)
    if not 0.0 <= value < most:
        raise ValueError("out of bounds")
    return value


def _count(given, of):
    """A whole number of at least 0. Raises ValueError, TypeError for anything else."""
    value = int(given)
    if isinstance(given, str) or not 0 <= value <= _MOST[of]:
        raise ValueError("no count")
    return value
