"""What a row's process tells, a line a record, and what it is told: orders, a line each, by its stdin.

Records: {"ready": seconds} when the framework is imported; {"built": {...}} when the model is there;
{"ran": {...}} steps of the warm-up; {"repetition": {...}}; {"losses": [...]}; {"evidence": {...}};
{"memory": {...}}; {"shapes": [...]} all ShapeRates so far; {"run": {...}} fields of the RowRun; {"did":
number of orders} after each order; {"done": true} at the end.
Orders: {"build": true}; {"warm": steps}; {"memory": true}; {"evidence": true}; {"measure": steps} one
repetition; {"losses": steps}; {"end": true}.

What is told is bounded and made safe by whoever hears it.
"""

import json
import os

from ..acceleration.telling import evidence_of, line, outcome_of, seconds
from ..facts import dumps, is_unavailable, unavailable

MARK = b"@envcheck-row "
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


class RowTeller(object):
    """The child's side: writes records to a file descriptor of its own, past every buffer."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def tell(self, **record):
        data = b"\n" + MARK + dumps(record).encode("utf-8") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]

    def failed(self, error):
        outcome, reason = outcome_of(error)
        self.tell(run={"outcome": outcome, "reason": reason})


class RowHeard(object):
    """The parent's side: what a row's process has told so far. What is no record of ours is not heard."""

    def __init__(self):
        self.run = {}  # fields of the RowRun
        self.repetitions = []
        self.losses = []
        self.ran = None  # the warm-up's last (steps, seconds)
        self.rate = None  # steps per second, the last that is known
        self.did = 0  # orders
        self.rounds = 0  # of all shapes
        self.ready = self.done = False

    def hear(self, stdout):
        """Take in whole lines of a process's output (bytes)."""
        for text in stdout.split(b"\n"):
            if text.startswith(MARK):
                try:
                    self._take(json.loads(text[len(MARK) :].decode("utf-8")))
                except (
                    ValueError,
                    KeyError,
                    TypeError,
                    AttributeError,
                    ArithmeticError,
                    RecursionError,
                ):
                    continue  # cut off by its death, or none of ours

    def _take(self, record):
        for name in record:
            take = getattr(self, "_take_" + name, None)
            if take is not None:
                take(record[name])

    def _take_done(self, told):
        self.done = told is True

    def _take_did(self, told):
        self.did = _count(told, _MOST_STEPS)

    def _take_ready(self, told):
        self.run["import_seconds"] = seconds(told)
        self.ready = True

    def _take_built(self, told):
        self.run["build_seconds"] = seconds(told["seconds"])
        self.run["parameters"] = _count(told["parameters"], _MOST_PARAMETERS)

    def _take_ran(self, told):
        self.ran = _count(told["steps"], _MOST_STEPS), _time(told["seconds"])
        self.rate = self.ran[0] / max(self.ran[1], 1e-9)

    def _take_repetition(self, told):
        found = {"seconds": _time(told["seconds"]), "steps": _count(told["steps"], _MOST_STEPS)}
        found["skipped"] = _count(told["skipped"], found["steps"])
        if len(self.repetitions) < MOST_REPETITIONS:
            self.rate = found["steps"] / max(found["seconds"], 1e-9)
            self.repetitions.append(found)

    def _take_losses(self, told):
        room = MOST_LOSSES - len(self.losses)
        self.losses += [_number(loss) for loss in list(told)[: max(0, room)]]

    def _take_evidence(self, told):
        self.run["evidence"] = evidence_of(dict(told))

    def _take_memory(self, told):
        found = self.run.setdefault("memory", {})
        for name in MEMORY:
            if name in told:
                found[name] = _fact(told[name], lambda value: _count(value, _MOST_MIB))

    def _take_shapes(self, told):
        self.run["shapes"] = [_shape(one) for one in list(told)[:MOST_SHAPES]]
        self.rounds += 1

    def _take_run(self, told):
        if told.get("outcome") in OUTCOMES:
            self.run["outcome"] = told["outcome"]
        if "reason" in told:
            self.run["reason"] = line(told["reason"])
        if isinstance(told.get("framework_version"), str):
            self.run["framework_version"] = line(told["framework_version"], _NAME)
        if "accuracy" in told:
            self.run["accuracy"] = _fact(told["accuracy"], _share)


def _fact(told, value):
    """A known or an unavailable fact out of what was told."""
    if is_unavailable(told):
        return unavailable("error", line(told.get("detail", "")))
    try:
        return value(told)
    except (ValueError, TypeError, OverflowError):
        return unavailable("error", line("told as %r" % (told,)))


def _shape(told):
    """The fields of a ShapeRate. Raises ValueError, KeyError, TypeError where it is none."""
    if told["operation"] not in ("product", "convolution"):
        raise ValueError("no operation")
    return {
        "operation": told["operation"],
        "sizes": [_count(size, _MOST_SIZE) for size in list(told["sizes"])[:5]],
        "edge": _count(told["edge"], _MOST_SIZE),
        "around": _count(told["around"], _MOST_SIZE),
        "dtype": line(told["dtype"], _NAME),
        "seconds": [_short_time(one) for one in list(told["seconds"])[:MOST_ROUNDS]],
        "kernels": _kernels(told["kernels"]),
        "reason": line(told["reason"]),
    }


def _kernels(told):
    if is_unavailable(told):
        return unavailable(told["unavailable"], line(told.get("detail", "")))
    return [line(name) for name in list(told)[:_KERNELS]]


def _short_time(told):
    """Seconds of one operation, which may take less than a microsecond."""
    value = float(told)
    if not 0.0 <= value < 1e6:
        raise ValueError("no number of seconds")
    return float("%.4g" % value)


def _count(told, most):
    """A whole number of at least 0. Raises ValueError, TypeError where it is none."""
    value = int(told)
    if isinstance(told, str) or not 0 <= value <= most:
        raise ValueError("no count")
    return value


def _time(told):
    """Seconds, as exact as a short repetition needs them."""
    value = float(told)
    if not 0.0 <= value < 1e6:
        raise ValueError("no number of seconds")
    return round(value, 6)


def _share(told):
    value = float(told)
    if not 0.0 <= value <= 1.0:
        raise ValueError("not of 0 to 1")
    return value


def _number(told):
    """A float; None where it is NaN or infinite, which dumps makes an unavailable fact of."""
    value = float("nan") if told is None or isinstance(told, dict) else float(told)
    return value if abs(value) < float("inf") else None
