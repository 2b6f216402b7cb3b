"""Runs the rows that core has planned: group by group, the rows of a group in turn."""

import json
import time

from . import styles
from .child import BOOTSTRAP
from .row_process import WARM_UP, RowProcess

_PAUSE = 0.005  # seconds between two looks
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

    def __init__(self, request, documents, python, start, environ, root, clock=time.monotonic):
        """request: {"asked", "rows", "repetitions", "seconds": of one, "folder"}. python: the target's.

        start(argv, deadline, cwd, env, …): a process.Child.
        """
        self._request = request
        self._documents = documents
        self._python = python
        self._start = start
        self._environ = environ
        self._root = root
        self._clock = clock
        self.stopped = False  # by the user

    def run(self, devices, watch, event, pause=time.sleep):
        """Fill in ``bench`` of the target's document.

        devices: of kernels.selection. watch(names of what runs, done, total) is called between looks.
        event(record): what goes on, for whoever waits: {"row", "rate": samples a second}.
        """
        self._devices = {device.seed.get("pci_address"): device for device in devices}
        self._watch, self._event, self._pause = watch, event, pause
        self._began = self._clock()
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        rows = self._request["rows"]
        self._total, self._done = len(rows), 0
        runs = []
        for group in _groups(rows):
            if self.stopped:
                break
            runs += [one.told(self._began) for one in self._together(group)]
        environ = self._environ
        self._documents["target"]["bench"] = {
            "outcome": "ok",
            "seconds": round(self._clock() - self._began, 3),
            "sources": {"*": "the models, run"},
            "facts": {
                "asked": self._request["asked"],
                "began": started,
                "seconds": round(self._clock() - self._began, 3),
                "interrupted": self.stopped,
                "settings": {name: environ[name] for name in SETTINGS if name in environ},
                "rows": runs,
            },
        }

    def stop(self):
        """End after what is done: the rows that are there are kept."""
        self.stopped = True

    def _together(self, rows):
        """The RowProcesses of a group: warmed up one after the other, then measured in turn."""
        working = []
        for row in rows:
            if self.stopped:
                break
            one = RowProcess(row, self._launch, self._clock, "gpu" if row["gpus"] else "cpu")
            one.open()
            working.append(one)
            self._until(working, lambda one=one: one.is_waiting or one.is_over)
        timed = [one for one in working if not one.row["steps"]]
        for one in timed:
            one.in_turn = len(timed) > 1
        for _round in range(self._request["repetitions"]):
            for one in timed:
                self._have(working, one, self._request["seconds"])
        for one in working:
            if one.row["steps"] and one.is_waiting:
                one.order(ANSWER_TO_STEPS, losses=one.row["steps"])
                self._until(working, lambda one=one: one.is_waiting or one.is_over)
        for one in working:
            if one.is_waiting:
                one.order(end=True)
        self._until(working, lambda: all(one.is_over for one in working))
        self._done += len(rows)
        return working

    def _have(self, working, one, seconds):
        from .measure import steps_in

        if one.is_waiting:
            one.order(seconds, measure=steps_in(seconds, one.heard.rate))
            self._until(working, lambda: one.is_waiting or one.is_over)
            rate = (one.heard.rate or 0.0) * one.row["batch"] * max(1, len(one.row["gpus"]))
            self._event({"row": one.row["name"], "rate": rate})

    def _until(self, working, reached):
        """Look after them all until something is reached, or the user wants no more."""
        while True:
            for one in working:
                if not one.is_over:
                    one.step()
                    if self.stopped:
                        one.stop()
            names = [one.row["name"] for one in working if not one.is_over]
            self._watch(names, self._done, self._total)
            if reached() or all(one.is_over for one in working):
                return
            self._pause(_PAUSE)

    def _launch(self, row, orders):
        style = styles.load(row["style"])
        devices = [self._devices[address] for address in row["gpus"] if address in self._devices]
        env = dict(self._environ)
        env.update(style.environ(row))
        env["CUDA_VISIBLE_DEVICES"] = ",".join(one.visible for one in devices) or "-1"
        place = {
            "device": "gpu" if row["gpus"] else "cpu",
            "gpus": row["gpus"],
            "folder": self._request.get("folder", ""),
        }
        params = {"row": row, "place": place, "warm_up": WARM_UP}
        argv = self._python.argv + ["-c", BOOTSTRAP, self._root, json.dumps(params)]
        return self._start(argv, 1e6, self._python.cwd, env, stdin=orders)


ANSWER_TO_STEPS = 600.0  # seconds that a row's training for its losses may take


def _groups(rows):
    """The rows, those of one group together, in their order; a row without a group is one."""
    groups = []
    for row in rows:
        if groups and row["group"] and groups[-1][0]["group"] == row["group"]:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups
