"""One collection: a list of stages, each of which fills in its part of a Snapshot's documents."""

import importlib
import os
import sys

from .documents import document
from .linux import device_nodes
from .runtime import orphans, process, scratch
from .worker import PythonCommand

# In the order in which they run: what loads the GPUs comes after the probes, which are to see them idle.
# Each is a module with a function of that name, imported only where it is needed: (module, function).
STAGES = (
    (".probing", "probe"),
    (".gpu_work", "micro_kernels"),
    (".gpu_work", "systems"),
    (".gpu_work", "soak"),
    (".gpu_work", "bench"),
)


class BadTarget(Exception):
    """What was asked for cannot be looked at: one sentence that names it and says why."""


class Run(object):
    """One collection: its processes, its documents and its progress.

    documents: {"machine", "target"}, unredacted. python: a PythonCommand for each of them. names: of other
    hosts and users, to be redacted: [(host, user, home)]. stopped: the user wants no more of the work.
    worker: what does the work now, while there is any.
    """

    def __init__(self, request, on_progress=None, on_event=None):
        """request: main.Request. on_progress(names of what runs, done, total) may raise to stop."""
        self.request = request
        self.documents = {"machine": document("live", "machine"), "target": None}
        self.python = {"machine": PythonCommand("machine", isolated(), "/"), "target": None}
        self.names = []
        self.look = None  # an inside.Look into a container, which does all further stages itself
        self.devices = None  # what kernels.selection chose for the micro-kernels and systems
        self.worker = None
        self.stopped = False
        self.event = on_event or (lambda record: None)
        self._on_progress = on_progress
        self._children = []
        self._stuck = set()
        self._nodes = device_nodes.present()
        self._before = self._now = (0, 0)  # (done, total) of the stages before, and of this one

    def collect(self):
        """The documents."""
        for module, function in STAGES:
            if function == "probe" or (self.look is None and self._is_wanted(function)):
                getattr(importlib.import_module(module, __package__), function)(self)
                done, total = self._before
                self._before = done + self._now[0], total + self._now[1]
                self._now = (0, 0)
        return self.documents

    def _is_wanted(self, stage):
        options, work = self.request.kernels, self.request.work or {}
        if stage in ("micro_kernels", "systems"):
            chosen = "levels" if stage == "micro_kernels" else "systems"
            return options is not None and bool(getattr(options, chosen))
        return stage in work and (stage == "soak" or self.python["target"] is not None)

    def start(self, argv, deadline, cwd, env=None, **more):
        """A process.Child, which ends with this collection."""
        child = process.Child(argv, deadline, cwd=cwd, env=env, tied=True, **more)
        self._children.append(child)
        return child

    def wait(self, children, watch):
        process.run_all(children, watch)

    def progress(self, running, done=0, total=0):
        """Names of what runs, and how much of this stage is over."""
        self._now = (done, total)
        if self._on_progress is not None:
            self._on_progress(running, self._before[0] + done, self._before[1] + total)

    def work(self, part, work):
        """Do ``work()``; should it fail, ``part.failed`` says so, and all other facts are kept."""
        try:
            work()
        except Exception as error:
            process.stop_all(self._children)
            part.failed(our_fault(error))

    def stop_work(self):
        """The user wants no more: what is done is kept. Called from a signal's handler."""
        self.stopped = True
        if self.worker is not None:
            self.worker.stop()
        elif self.look is not None and self.request.work:
            self.look.interrupt()

    @property
    def ours(self):
        """Ids of processes that this collection has started."""
        return self._stuck | {child.pid for child in self._children}

    def sweep(self):
        """[(session, stuck process)] of what processes that are over left behind and could not be ended."""
        for child in self._children:
            if child.result is not None and child.result.stuck:
                self._stuck.add(child.result.stuck["pid"])
        running = {child.pid for child in self._children if child.result is None}
        stuck_processes = orphans.sweep(spare=self._stuck | running)
        self._stuck.update(stuck["pid"] for _session, stuck in stuck_processes)
        return stuck_processes

    def close(self):
        """End what still runs, and leave nothing behind."""
        process.stop_all(self._children)
        if self.look is not None:
            self.look.close()
        self.sweep()
        device_nodes.remove_useless(self._nodes)
        scratch.remove(self.request.scratch)


def our_fault(error):
    return "envcheck's own part of it failed: %s: %s" % (type(error).__name__, error)


def isolated():
    """envcheck's own Python, out of reach of the user's settings for Python."""
    return [sys.executable or "python3", "-I", "-S"]


def environment():
    return dict(os.environ)
