"""What a row's process tells, a line a record, and what it is told: orders, a line each, by its stdin.

Records: {"ready": seconds} when the framework is imported; {"built": {...}} when the model is there;
{"warm": {...}} a WarmUp with the rate; {"evidence": {...}}; {"repetition": {...}}; {"losses": [...]};
{"memory": {...}}; {"run": {...}} fields of the RowRun; {"done": true} at the end.
Orders: {"measure": steps} one repetition; {"losses": steps}; {"end": true}.

What is told is bounded and made safe by whoever hears it.
"""

import json
import os

from ..acceleration.telling import evidence_of, line, outcome_of, seconds
from ..facts import dumps

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
MOST_LOSSES = 2000
_NAME = 80  # characters


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
        self.rate = None  # steps per second, the last that is known
        self.ready = self.warm = self.done = False

    def hear(self, stdout):
        """Take in whole lines of a process's output (bytes)."""
        for text in stdout.split(b"\n"):
            if text.startswith(MARK):
                try:
                    self._take(json.loads(text[len(MARK) :].decode("utf-8")))
                except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                    continue  # cut off by its death

    def _take(self, record):
        if "done" in record:
            self.done = True
        elif "ready" in record:
            self.run["import_seconds"] = seconds(record["ready"])
            self.ready = True
        elif "run" in record:
            self._take_run(record["run"])
        elif "built" in record:
            self.run["build_seconds"] = seconds(record["built"]["seconds"])
            self.run["parameters"] = int(record["built"]["parameters"])
        elif "warm" in record:
            told = record["warm"]
            self.run["warm_up"] = {
                "steps": int(told["steps"]),
                "seconds": seconds(told["seconds"]),
                "steady": told["steady"] is True,
            }
            self.rate = float(told["rate"])
            self.warm = True
        elif "evidence" in record:
            self.run["evidence"] = evidence_of(dict(record["evidence"]))
        elif "repetition" in record:
            told = record["repetition"]
            found = {"seconds": seconds(told["seconds"]), "steps": int(told["steps"])}
            found["skipped"] = int(told["skipped"])
            self.rate = found["steps"] / max(found["seconds"], 1e-9)
            self.repetitions.append(found)
        elif "losses" in record:
            told = [_number(loss) for loss in record["losses"]]
            self.losses += told[: MOST_LOSSES - len(self.losses)]
        elif "memory" in record:
            told = {name: int(value) for name, value in record["memory"].items()}
            known = ("tensors_mib", "pool_mib", "process_mib")
            self.run["memory"] = {name: told[name] for name in known if name in told}

    def _take_run(self, told):
        if told.get("outcome") in OUTCOMES:
            self.run["outcome"] = told["outcome"]
        if "reason" in told:
            self.run["reason"] = line(told["reason"])
        if isinstance(told.get("framework_version"), str):
            self.run["framework_version"] = line(told["framework_version"], _NAME)
        if "accuracy" in told:
            self.run["accuracy"] = float(told["accuracy"])


def _number(told):
    """A float; None where it is NaN or infinite, which dumps makes an unavailable fact of."""
    value = float("nan") if told is None or isinstance(told, dict) else float(told)
    return value if abs(value) < float("inf") else None
