"""A framework's first steps on a GPU, each tried once: one compiled operation, and small convolutions."""

import sys

from . import worker
from .worker import messages

LIMIT = 60.0  # seconds for all: a first compilation and a cold cuDNN take their time
_LEAST = 10.0  # seconds, with less it is not begun


def run(context, name, seconds, device="gpu"):
    """([a Trial's facts], what the framework wrote to stderr); empty where nothing was tried."""
    if seconds < _LEAST:
        return [], ""
    params = {"framework": name, "device": device}
    argv = worker.command([sys.executable, "-B"], "envcheck.collector.trial_steps", params)
    result = context.run(argv, min(seconds, LIMIT))
    trials = parse(result.stdout)
    for trial in trials:
        if "outcome" not in trial:
            trial["outcome"] = "timeout" if result.outcome == "timeout" else "crashed"
            trial["error"] = result.describe()
    return trials, result.stderr.decode("utf-8", "replace")


def parse(stdout):
    """The trials in a process's output (bytes), the last of which may have no outcome yet."""
    trials = []
    for message in messages.read(stdout.splitlines()):
        if "stage" in message:
            trials.append({"name": message["stage"]})
        elif isinstance(message.get("result"), dict) and trials:
            trials[-1].update(message["result"])
    return trials
