"""Runs the micro-kernels after all probes have come back: GPU by GPU, level by level.

Within one GPU strictly one process after the other; MIG instances of one GPU count as one. GPUs side by
side only as far as there are processors, so that none waits for one to start its kernels.
"""

import os
import time

from .. import worker
from ..facts import known
from . import jobs
from .attempts import LIMITS, NO_TIME, Attempt

LIMIT = 900.0  # seconds after which nothing is started any more
MOST_PATIENCE = 2  # times the limits of systems and rows, where the machine has much else to do
_CORES = 2  # for each GPU at work
_NO_TARGET = "L1 and L2 run in a target, and there is none"
_NO_FRAMEWORK = "the target has none of the frameworks"
_PAUSE = 0.005  # seconds between two looks
_MODULE = "envcheck.collector.kernels.records"


class Campaign(object):
    """All levels on all chosen GPUs."""

    def __init__(self, options, documents, start, environ, pynvml=None):
        """documents: {"machine", "target"}. start(argv, deadline, cwd, env): a process.Child."""
        self.options = options
        self.documents = documents
        self.died = False  # whether a process of it ended before it was done
        self._sessions = {}  # of the processes: the document that each belongs to
        self._start = start
        self._environ = environ
        self._pynvml = pynvml

    def run(self, chosen, pythons, watch, clock=time.monotonic, pause=time.sleep):
        """Fill in ``micro_kernels`` of both documents.

        chosen: of selection.choose. pythons: {"machine": PythonCommand, "target": PythonCommand or None}.
        watch(names of what runs, done, total) is called between looks.
        """
        devices, self._reason = chosen
        self._pythons, self._clock = pythons, clock
        planned = jobs.plan(devices, self.documents["target"], self.options)
        began = clock()
        lanes = self._lanes(planned, lambda: clock() - began > LIMIT)
        width = max(1, cores(self.documents["machine"]) // _CORES)
        working, waiting = lanes[:width], lanes[width:]
        while working:
            for lane in list(working):
                if not lane.step():
                    working.remove(lane)
                    working += [waiting.pop(0)] if waiting else []
            done = sum(lane.done for lane in lanes)
            watch([lane.name for lane in working if lane.name], done, len(planned))
            if working:
                pause(_PAUSE)
        attempts = [attempt for lane in lanes for attempt in lane.attempts]
        self.died = any(attempt.died for attempt in attempts)
        self._write(attempts, round(clock() - began, 3))

    def _lanes(self, planned, late):
        by_gpu = {}
        for job in planned:
            by_gpu.setdefault(job.device.lane if job.device else "", []).append(job)
        return [Lane(mine, self._attempt, late) for mine in by_gpu.values()]

    def _attempt(self, job):
        params = {
            "modes": self.options.modes,
            "pynvml": self._pynvml,
            "pci_address": job.device.seed.get("pci_address") if job.device else None,
            "uuid": job.device.seed.get("uuid") if job.device else None,
            "libraries": job.libraries,
            "framework": job.framework,
        }
        return Attempt(job, params, self._launch, LIMITS[job.level], self._clock)

    def _launch(self, job, part, params, deadline):
        python = self._pythons["machine" if job.level == "L0" else "target"]
        argv = worker.command(python.argv, _MODULE, params)
        env = dict(self._environ, CUDA_VISIBLE_DEVICES=job.device.visible, **part.environ)
        child = self._start(argv, deadline, python.cwd, env)
        if child.pid is not None:
            self._sessions[child.pid] = python.document
        return child

    def _write(self, attempts, seconds):
        for name, levels in self._asked():
            chosen = [attempt for attempt in attempts if attempt.job.level in levels]
            section = {
                "outcome": "ok",
                "seconds": seconds,
                "sources": {"*": "micro-kernels"},
                "facts": {
                    "levels": levels,
                    "modes": self.options.modes,
                    "busy_ok": self.options.busy_ok,
                    "runs": [attempt.run() for attempt in chosen],
                },
            }
            if not chosen and (levels or self.documents["target"] is None):
                section["reason"] = self._reason or (_NO_FRAMEWORK if levels else _NO_TARGET)
            words = ["%s: %s" % (one.job.name, one.evidence) for one in chosen if one.evidence]
            if words:
                section["evidence"] = "\n".join(words)[:2000]
            stuck = [attempt.stuck for attempt in chosen if attempt.stuck is not None]
            if stuck:
                section["stuck"] = stuck
            self.documents[name]["micro_kernels"] = section

    def _asked(self):
        """[(document's name, its levels)]; no levels say that they were left out."""
        asked = [("machine", [level for level in self.options.levels if level == "L0"])]
        if self.documents["target"]:
            asked.append(("target", [level for level in self.options.levels if level != "L0"]))
        return asked

    def failed(self, reason):
        """Nothing came of it."""
        for name, _levels in self._asked():
            self.documents[name]["micro_kernels"] = {"outcome": "crashed", "reason": reason}

    def name_stuck(self, processes):
        """Put each process that had to be left behind, (session, ``stuck`` of a Result), into a section."""
        asked = [name for name, _levels in self._asked()]
        for session, stuck in processes:
            name = self._sessions.get(session)
            section = self.documents[name if name in asked else asked[0]]["micro_kernels"]
            section.setdefault("stuck", []).append(stuck)


class Lane(object):
    """The jobs of one GPU, one after the other. attempts: those so far."""

    def __init__(self, planned, attempt, late):
        """attempt(job): an Attempt. late(): whether nothing may be started any more."""
        self.attempts = []
        self._waiting = list(planned)
        self._attempt = attempt
        self._late = late
        self._current = None
        self._fatal = ""

    @property
    def name(self):
        return self._current.job.name if self._current else ""

    @property
    def done(self):
        return len(self.attempts) - (self._current is not None)

    def step(self):
        """Look once. Whether there is more to come."""
        if self._current is None:
            if not self._waiting:
                return False
            self._next(self._waiting.pop(0))
        if not self._current.step():
            self._fatal = self._fatal or self._current.fatal
            self._current = None
        return bool(self._current or self._waiting)

    def _next(self, job):
        why = self._fatal or (NO_TIME if self._late() else "")
        if why and not job.outcome:
            job.outcome, job.reason = "not-run", why
        self._current = self._attempt(job)
        self.attempts.append(self._current)


def cores(machine):
    """How many processors this process may keep busy."""
    facts = (machine.get("host") or {}).get("facts") or {}
    counts = [known(facts.get(name)) for name in ("cpus_allowed", "cgroup_cpu_limit")]
    counts = [int(count) for count in counts if count is not None]
    return min(counts) if counts else os.cpu_count() or 1


def patience(machine):
    """What limits are multiplied by, here and now: on a busy machine all is slow, and nothing hangs."""
    try:
        waiting = os.getloadavg()[0]
    except OSError:
        return 1
    return MOST_PATIENCE if waiting > cores(machine) else 1
