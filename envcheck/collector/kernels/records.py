"""What a level's process reports: facts of its run, and a ModeRun of each mode as far as it is known.

KEY is "mode" or "mode/setting". A stage is announced before anything that may fail; a ModeRun of the same
key ends it, and replaces an earlier one.
"""

import importlib

# The stage in which a framework compiles: it takes as long as it takes, and what hangs is not the GPU.
COMPILE = "compile"
RUN = "run"  # the key of facts of the run

# A level's exit status after an error that sticks to its CUDA context: nothing more can run in it.
DEAD_CONTEXT = 3


def key(mode, setting=""):
    return mode + ("/" + setting if setting else "")


def work(params, tell):
    """Run a level in its worker's process."""
    level = importlib.import_module("." + params["module"], __package__)
    level.run(params, Teller(tell))


class Teller(object):
    """The child's side. The work begins with the first stage or mode, after a framework's import."""

    def __init__(self, tell):
        self._tell = tell
        self._begun = False

    def run(self, **facts):
        """Facts of this run: fields of LevelRun."""
        self._tell.result(facts, RUN)

    def begin(self, mode, stage, setting=""):
        self._begin()
        self._tell.stage(stage, key(mode, setting))

    def mode(self, **facts):
        """A ModeRun: fields of ModeRun."""
        self._begin()
        self._tell.result(facts, key(facts["mode"], facts.get("setting", "")))

    def _begin(self):
        if not self._begun:
            self._begun = True
            self._tell.begin()


class PartReport(object):
    """The parent's side: what the processes of a part have reported so far, over all restarts."""

    def __init__(self):
        self.run = {}
        self.modes = {}  # key: ModeRun
        self.latest = None  # key of the mode that was reported last

    def take(self, kind, value, name):
        if kind == "result" and name == RUN:
            self.run.update(value)
        elif kind == "result":
            self.latest = key(value["mode"], value.get("setting", ""))
            self.modes[self.latest] = value
