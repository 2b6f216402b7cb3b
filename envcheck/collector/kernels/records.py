"""What a level's process tells while it works, a line a record, and what its parent makes of it.

The process may die or hang at any point: what it told before stays, and the stage that it had announced
is the one that is to blame.

Records: {"run": {...}} facts of the LevelRun; {"begin": KEY, "stage": WORD} before anything that may fail;
{"mode": {...}} a ModeRun, which replaces an earlier one of the same key; {"done": true} at the end.
KEY is "mode" or "mode/setting".
"""

import json
import os

from ..facts import dumps

MARK = b"@envcheck-record "

# The stage in which a framework compiles: it takes as long as it takes, and what hangs is not the GPU.
COMPILE = "compile"

# A level's exit status after an error that sticks to its CUDA context: nothing more can run in it.
DEAD_CONTEXT = 3


def key(mode, setting=""):
    return mode + ("/" + setting if setting else "")


class Teller(object):
    """The child's side: writes records to a file descriptor of its own, past every buffer."""

    def __init__(self, descriptor):
        self._descriptor = descriptor

    def run(self, **facts):
        """Facts of this run: fields of LevelRun."""
        self._tell({"run": facts})

    def begin(self, mode, stage, setting=""):
        self._tell({"begin": key(mode, setting), "stage": stage})

    def mode(self, **facts):
        """A ModeRun, whole or as far as it is known: fields of ModeRun."""
        self._tell({"mode": facts})

    def done(self):
        self._tell({"done": True})

    def _tell(self, record):
        data = b"\n" + MARK + dumps(record).encode("utf-8") + b"\n"
        while data:
            data = data[os.write(self._descriptor, data) :]


class Heard(object):
    """The parent's side: what a level's processes have told so far, over all restarts."""

    def __init__(self):
        self.run = {}
        self.modes = {}  # key: ModeRun
        self.latest = None  # key of the mode that was told of last
        self.begun = None  # (key, stage) of what was announced and not reported since
        self.done = False

    def hear(self, stdout):
        """Take in all of a process's output (bytes)."""
        for line in stdout.splitlines():
            if line.startswith(MARK):
                try:
                    self._take(json.loads(line[len(MARK) :].decode("utf-8")))
                except (ValueError, KeyError, TypeError, AttributeError):
                    continue  # cut off by its death

    def _take(self, record):
        if "run" in record:
            self.run.update(record["run"])
        elif "begin" in record:
            self.begun = (record["begin"], record["stage"])
        elif "mode" in record:
            mode = record["mode"]
            this = key(mode["mode"], mode.get("setting", ""))
            self.modes[this] = mode
            self.latest = this
            if self.begun is not None and self.begun[0] == this:
                self.begun = None
        elif "done" in record:
            self.done = True
            self.begun = None
