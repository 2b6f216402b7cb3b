"""Runs the rows that core has planned: group by group, the rows of a group in turn."""

import time

from ...worker.messages import one_line
from .group import GroupRun
from .largest import LargestBatch
from .left import TimeLeft
from .machinery import Machinery

_PAUSE = 0.002  # seconds between two looks
_TOLD = 0.3  # seconds between two events about the same
# Variables that change what is measured; they are told in the result.
SETTINGS = (
    "NVIDIA_TF32_OVERRIDE",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_GPU_THREAD_MODE",
    "TF_CUDNN_USE_AUTOTUNE",
    "CUDA_LAUNCH_BLOCKING",
    "OMP_NUM_THREADS",
)


class BenchRunner(object):
    """All rows of a request."""

    def __init__(self, request, documents, python, start, environ, root, **more):
        """request: {"asked", "options", "rows", "repetitions", "seconds": of one, "folder", "limit",
        "busy_ok", "left_out": by the plan}.

        limit: seconds after which no row is begun any more. python: the target's. start(argv, deadline,
        cwd, env, …): a process.Child. more: as Machinery has it.
        """
        self.request = request
        self.repetitions = request["repetitions"]
        self.seconds = request["seconds"]
        self._limit = request.get("limit") or float("inf")
        self._documents = documents
        self._environ = environ
        self.machinery = Machinery(request, documents, python, start, environ, root, **more)
        self.clock = self.machinery.clock
        self.stopped = False  # by the user
        self.open = []  # RowsAtWork whose processes may run
        self.runs = []  # of rows that are over
        self._told = (None, 0.0)

    def run(self, devices, watch, event, pause=time.sleep):
        """Fill in ``bench`` of the target's document.

        devices: of kernels.selection. watch(names of what runs, done, total) is called between looks.
        event(record): what goes on, for whoever waits: {"row", "phase": "import", "build", "warm-up",
        "measure", "losses" or "batch", "round", "rounds", "rate": samples a second or None, "left":
        seconds that all still takes, about}. A row that failed is told with "phase": "over", "outcome"
        and "reason".
        """
        self._watch, self._event, self._pause = watch, event, pause
        self.began = self.clock()
        self.left = TimeLeft(self.request["rows"], self.repetitions, self.seconds)
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.machinery.open(devices, self.request["rows"])
        try:
            self._run_all()
        finally:
            self.machinery.close()
        seconds = round(self.clock() - self.began, 3)
        environ = self._environ
        order = {row["name"]: place for place, row in enumerate(self.request["rows"])}
        self._documents["target"]["bench"] = {
            "outcome": "ok",
            "seconds": seconds,
            "sources": {"*": "the models, run"},
            "facts": {
                "asked": self.request["asked"],
                "options": self.request.get("options") or [],
                "began": started,
                "seconds": seconds,
                "interrupted": self.stopped,
                "busy_ok": bool(self.request.get("busy_ok")),
                "settings": {name: one_line(environ[name]) for name in SETTINGS if name in environ},
                "left_out": self.request.get("left_out") or [],
                "rows": sorted(self.runs, key=lambda run: order.get(run["row"]["name"], 0)),
            },
        }

    def failed(self, reason):
        """Nothing came of it but the rows that are over."""
        self._documents["target"]["bench"] = {"outcome": "crashed", "reason": one_line(reason)}

    def name_stuck(self, left):
        """Name the processes that had to be left behind: (session, ``stuck`` of a Result)."""
        left = self.machinery.left_behind + left
        if left:
            section = self._documents["target"]["bench"]
            section.setdefault("stuck", []).extend(told for _session, told in left)

    def stop(self):
        """End after what is done: the rows that are there are kept."""
        self.stopped = True

    def _run_all(self):
        for rows in groups(self.request["rows"]):
            rows = [row for row in rows if self._may_run(row)]
            searched = []
            for row in rows:
                if row["largest"] and not self.stopped:
                    searched.append(LargestBatch(self, row).run())
                elif not row["largest"]:
                    searched.append((row, [], {}))
            GroupRun(self, [one for one in searched if one is not None]).run()
            self.machinery.sweep()
            if self.stopped:
                return

    def _may_run(self, row):
        """Whether anything can come of it; else it is told why not."""
        outcome, reason = self.machinery.cannot(row)
        if not outcome and self.clock() - self.began > self._limit:
            outcome, reason = "not-run", "no time left for it"
        if outcome:
            self.without(row, outcome, reason)
        return not outcome

    def without(self, row, outcome, reason, **more):
        """A row of which nothing was run any further."""
        self.runs.append(dict(more, row=row, outcome=outcome, reason=one_line(reason)))
        self._count(self.runs[-1])

    def over(self, one):
        """A RowAtWork is over for good."""
        self.runs.append(one.told(self.began))
        self._count(self.runs[-1])

    def _count(self, run):
        """One row less to wait for; where nothing came of it, that is told."""
        self.left.over(run["row"]["name"])
        if run["outcome"] not in ("ok", "interrupted"):
            self._event(
                {
                    "row": run["row"]["name"],
                    "phase": "over",
                    "outcome": run["outcome"],
                    "reason": run["reason"],
                    "left": round(self.left.seconds, 1),
                }
            )

    def until(self, reached):
        """Look after all that is open until something is reached, or the user wants no more."""
        while True:
            for one in self.open:
                if self.stopped:
                    one.end("interrupted", "stopped by its user")
                one.step()
            self.open = [one for one in self.open if not one.is_over]
            self._watch([one.row["name"] for one in self.open], len(self.runs), self._total)
            self.machinery.poll()
            if reached():
                return
            self._pause(_PAUSE)

    @property
    def _total(self):
        return len(self.request["rows"])

    def settle(self, one):
        """Until it has done what it was told, or is over: whether it may be told more."""
        self.until(lambda: one.is_waiting or one.is_over)
        return not one.is_over

    def tell(self, one, phase, number=0, rounds=0):
        """What goes on, for whoever waits: not more often than anybody can read."""
        key, now = (one.row["name"], phase, number), self.clock()
        if self._told[0] == key and now - self._told[1] < _TOLD:
            return
        self._told = key, now
        rate = one.rate
        self._event(
            {
                "row": one.row["name"],
                "phase": phase,
                "round": number,
                "rounds": rounds,
                "rate": None if rate is None else rate * one.row["batch"] * one.devices,
                "left": round(self.left.seconds, 1),
            }
        )


def groups(rows):
    """The rows, those of one group together, in their order; a row without a group is one."""
    found = []
    for row in rows:
        if found and row["group"] and found[-1][0]["group"] == row["group"]:
            found[-1].append(row)
        else:
            found.append([row])
    return found
