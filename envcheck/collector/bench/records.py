"""What a row's process reports, and what its parent takes of it, bounded and made safe.

Messages of the worker protocol. "begin" has the framework's version and the seconds of its import. Results,
by their keys: "built" {"seconds", "parameters"}; "ran" {"steps", "seconds"} of the warm-up; "repetition"
{"steps", "seconds", "skipped"}; "losses" [float]; "evidence" {…}; "memory" {…}; "shapes", all ShapeRates so
far; "accuracy". Orders: {"build": true}; {"warm": steps}; {"memory": true}; {"evidence": true}; {"measure":
steps} one repetition; {"losses": steps}; {"end": true}.
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
)
MEMORY = ("tensors_mib", "pool_mib", "process_mib")
MOST_LOSSES = 2000
MOST_SHAPES = 200
MOST_ROUNDS = 100
MOST_REPETITIONS = 1000
_MOST_MIB = 1 << 30
_MOST_PARAMETERS = 1 << 50
_MOST_STEPS = 1 << 40
_NAME = 80  # characters
_KERNELS = 8  # of a shape
_MOST_SIZE = 1 << 24


class RowFailed(messages.Ended):
    """A row that cannot be run any further, by what its training raised."""

    def __init__(self, error):
        self.outcome, reason = outcome_of(error)
        messages.Ended.__init__(self, reason)


class RowReader(object):
    """The parent's side: what a row's process has reported so far. ``take`` is a Worker's."""

    def __init__(self):
        self.run = {}  # fields of the RowRun
        self.repetitions = []
        self.losses = []
        self.ran = None  # the warm-up's last (steps, seconds)
        self.rate = None  # steps per second, the last that is known

    def take(self, kind, value, key):
        if kind == "begin":
            self.run["import_seconds"] = seconds(value["import_seconds"])
            if isinstance(value.get("framework_version"), str):
                self.run["framework_version"] = one_line(value["framework_version"], _NAME)
        elif key in _TAKEN:
            _TAKEN[key](self, value)

    def _take_built(self, value):
        self.run["build_seconds"] = seconds(value["seconds"])
        self.run["parameters"] = _count(value["parameters"], _MOST_PARAMETERS)

    def _take_ran(self, value):
        self.ran = _count(value["steps"], _MOST_STEPS), _time(value["seconds"])
        self.rate = self.ran[0] / max(self.ran[1], 1e-9)

    def _take_repetition(self, value):
        found = {"seconds": _time(value["seconds"]), "steps": _count(value["steps"], _MOST_STEPS)}
        found["skipped"] = _count(value["skipped"], found["steps"])
        if len(self.repetitions) < MOST_REPETITIONS:
            self.rate = found["steps"] / max(found["seconds"], 1e-9)
            self.repetitions.append(found)

    def _take_losses(self, value):
        room = max(0, MOST_LOSSES - len(self.losses))
        self.losses += [_number(loss) for loss in list(value)[:room]]

    def _take_evidence(self, value):
        self.run["evidence"] = evidence_of(dict(value))

    def _take_memory(self, value):
        found = self.run.setdefault("memory", {})
        for name in MEMORY:
            if name in value:
                found[name] = _fact(value[name], lambda given: _count(given, _MOST_MIB))

    def _take_shapes(self, value):
        self.run["shapes"] = [_shape(one) for one in list(value)[:MOST_SHAPES]]

    def _take_accuracy(self, value):
        self.run["accuracy"] = _fact(value, lambda given: _bounded(given, 1.0 + 1e-9))


_TAKEN = {
    name[len("_take_") :]: function
    for name, function in vars(RowReader).items()
    if name.startswith("_take_")
}


def _fact(given, value):
    """A known or an unavailable fact."""
    if is_unavailable(given):
        return unavailable("error", one_line(given.get("detail", "")))
    try:
        return value(given)
    except (ValueError, TypeError, OverflowError):
        return unavailable("error", one_line("reported as %r" % (given,)))


def _shape(given):
    """The fields of a ShapeRate. Raises ValueError, KeyError, TypeError for anything else."""
    if given["operation"] not in ("product", "convolution"):
        raise ValueError("no operation")
    kernels = given["kernels"]
    if is_unavailable(kernels):
        kernels = unavailable(kernels["unavailable"], one_line(kernels.get("detail", "")))
    else:
        kernels = [one_line(name) for name in list(kernels)[:_KERNELS]]
    return {
        "operation": given["operation"],
        "sizes": [_count(size, _MOST_SIZE) for size in list(given["sizes"])[:5]],
        "edge": _count(given["edge"], _MOST_SIZE),
        "around": _count(given["around"], _MOST_SIZE),
        "dtype": one_line(given["dtype"], _NAME),
        # One operation may take less than a microsecond.
        "seconds": [float("%.4g" % _bounded(one)) for one in list(given["seconds"])[:MOST_ROUNDS]],
        "kernels": kernels,
        "reason": one_line(given["reason"]),
    }


def _bounded(given, most=1e6):
    """A float from 0 to below ``most``. Raises ValueError, TypeError for anything else."""
    value = float(given)
    if not 0.0 <= value < most:
        raise ValueError("out of bounds")
    return value


def _count(given, most):
    """A whole number of at least 0. Raises ValueError, TypeError for anything else."""
    value = int(given)
    if isinstance(given, str) or not 0 <= value <= most:
        raise ValueError("no count")
    return value


def _time(given):
    """Seconds, as exact as a short repetition needs them."""
    return round(_bounded(given), 6)


def _number(given):
    """A float; None where it is NaN or infinite, which dumps makes an unavailable fact of."""
    value = float("nan") if given is None or isinstance(given, dict) else float(given)
    return value if abs(value) < float("inf") else None
