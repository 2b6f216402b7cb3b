"""A framework's first steps on a GPU, each tried once: one compiled operation, and small convolutions.

They run in a process of their own, one after the other, and each is announced before it begins: a crash or
a hang costs the trials and nothing that the framework has told so far.
"""

import json
import os
import sys

from .runtime.child import PACKAGE

LIMIT = 60.0  # seconds for all: a first compilation and a cold cuDNN take their time
_LEAST = 10.0  # seconds, with less it is not begun
MARK = "envcheck trial "
_START = (
    PACKAGE + "from envcheck.collector.trial_steps import main\nmain(sys.argv[2], sys.argv[3])\n"
)


def run(context, name, seconds, device="gpu"):
    """([a Trial's facts], what the framework wrote to stderr); empty where nothing was tried."""
    if seconds < _LEAST:
        return [], ""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    argv = [sys.executable, "-B", "-c", _START, root, name, device]
    result = context.run(argv, min(seconds, LIMIT))
    trials = parse(result.stdout.decode("utf-8", "replace"))
    for trial in trials:
        if "outcome" not in trial:
            trial["outcome"] = "timeout" if result.outcome == "timeout" else "crashed"
            trial["error"] = result.describe()
    return trials, result.stderr.decode("utf-8", "replace")


def parse(text):
    """The trials in a process's output, the last of which may have no outcome yet."""
    trials = {}
    order = []
    for line in text.splitlines():
        if not line.startswith(MARK):
            continue
        try:
            told = json.loads(line[len(MARK) :])
        except ValueError:
            continue
        if told["name"] not in trials:
            order.append(told["name"])
        trials[told["name"]] = told
    return [trials[name] for name in order]
