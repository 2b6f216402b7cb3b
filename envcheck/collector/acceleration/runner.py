"""Runs the systems after the micro-kernels: a few side by side, and those that are timed alone."""

import json
import os
import shutil
import tempfile
import time

from .. import framework
from ..kernels.campaign import cores
from . import jobs, systems, telling
from .child import BOOTSTRAP
from .telling import IMPORT

LIMIT = 600.0  # seconds after which nothing is started any more
MOST_PATIENCE = 2  # times the limits, where the machine has much else to do
_CORES = 2  # for each process at work
_SIDE_BY_SIDE = 3  # at most, on one GPU
_PAUSE = 0.005  # seconds between two looks
_TOO_MUCH = "it told more than fits into a Snapshot: the rest is left out"


class SystemsRunner(object):
    """All systems that were asked for."""

    def __init__(
        self,
        names,
        documents,
        pythons,
        start,
        environ,
        params,
        sweep=list,
        scratch=None,
        patience=1,
        clock=time.monotonic,
    ):
        """names: of systems. documents: {"machine", "target"}, the target's may be None.

        pythons: a PythonCommand for each of them. start(argv, deadline, cwd, env): a process.Child.
        params: what every process of it gets. sweep(): ends what processes that are over have left behind,
        and names what it could not end, as orphans.sweep. scratch: a directory for their temporary files.
        patience: what the limits of the import and of the work are multiplied by.
        """
        self._names = names
        self._documents = documents
        self._pythons = pythons
        self._start = start
        self._environ = environ
        self._params = params
        self._sweep = sweep
        self._scratch = scratch
        self._patience = patience
        self._clock = clock
        self._width = max(1, min(cores(documents["machine"]) // _CORES, _SIDE_BY_SIDE))
        self.sessions = {}  # of the processes: the document that each belongs to

    def run(self, chosen, watch, pause=time.sleep):
        """Fill in ``acceleration`` of both documents. chosen: of kernels.selection.choose.

        watch(names of what runs, done, total) is called between looks.
        """
        began = self._clock()
        planned = jobs.plan(systems.load(), self._names, chosen, self._documents)
        attempts = [
            SystemProcess(job, self._launch, self._clock, self._patience) for job in planned
        ]
        waiting = [attempt for attempt in attempts if not attempt.job.outcome]
        total, working, left = len(waiting), [], []
        while waiting or working:
            if waiting and self._may_start(waiting[0], working):
                first = waiting.pop(0)
                if self._clock() - began > LIMIT:
                    first.job.without("not-run", "no time left for it")
                else:
                    first.open()
                    working.append(first)
                continue
            over = [attempt for attempt in working if not attempt.step()]
            working = [attempt for attempt in working if attempt not in over]
            if over:
                left += self._sweep()  # before it weighs on those that are timed
            for attempt in over:
                _remove(attempt.job.folder)
            names = [attempt.job.name for attempt in working]
            watch(names, total - len(waiting) - len(working), total)
            if working:
                pause(_PAUSE)
        self._write(attempts, round(self._clock() - began, 3))
        self.name_stuck(left)

    def _may_start(self, attempt, working):
        alone = attempt.job.system.alone or any(one.job.system.alone for one in working)
        return not working if alone else len(working) < self._width

    def _launch(self, job):
        python = self._pythons[job.system.document]
        width = 1 if job.system.alone else self._width
        params = dict(
            self._params,
            device=job.on,
            gpus=addresses(job),
            memory_mib=jobs.memory_mib(job.devices, self._documents["machine"], width),
            seconds=job.system.deadline * self._patience,
            libraries=jobs.libraries(job.system, self._documents[job.system.document]),
        )
        env = dict(self._environ)
        if job.visible is not None:
            env["CUDA_VISIBLE_DEVICES"] = job.visible
        job.folder = _folder(self._scratch)
        if job.folder is not None:
            env["TMPDIR"] = job.folder
        argv = python.argv + ["-c", BOOTSTRAP, params["root"], job.system.module]
        argv.append(json.dumps(params))
        most = (IMPORT + job.system.deadline) * self._patience
        child = self._start(argv, most, python.cwd, env)
        if child.pid is not None:
            self.sessions[child.pid] = python.document
        return child

    def _write(self, attempts, seconds):
        for document, place in self._documents.items():
            of_it = [a for a in attempts if a.job.system.document == document]
            names = {one.name for one in systems.load() if one.document == document}
            if place is None:
                continue
            place["acceleration"] = {
                "outcome": "ok",
                "seconds": seconds,
                "sources": {"*": "the systems, run"},
                "facts": {
                    "systems": sorted(names.intersection(self._names)),
                    "seconds": seconds,
                    "runs": [attempt.told() for attempt in of_it],
                },
            }
            stuck = [attempt.stuck for attempt in of_it if attempt.stuck is not None]
            if stuck:
                place["acceleration"]["stuck"] = stuck

    def failed(self, reason):
        """Nothing came of it."""
        reason = telling.line(reason)
        for place in self._documents.values():
            if place is not None:
                place["acceleration"] = {"outcome": "crashed", "reason": reason}

    def name_stuck(self, left):
        """Put each process that had to be left behind, (session, ``stuck`` of a Result), into a section."""
        for session, told in left:
            place = self._documents[self.sessions.get(session, "machine")]
            place["acceleration"].setdefault("stuck", []).append(told)


def _folder(scratch):
    """A new directory for one process's temporary files, which no Python takes for a package."""
    if scratch in (None, "/"):
        return None
    try:
        return tempfile.mkdtemp(prefix="tmp-", dir=scratch)
    except OSError:
        return None


def _remove(folder):
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


class SystemProcess(object):
    """One SystemJob at work: ``open`` it, call ``step`` until it is False; then ``told`` is its SystemRun."""

    def __init__(self, job, launch, clock, patience=1):
        self.job = job
        self.stuck = None  # a Result's, of a process that could not be killed
        self._launch = launch
        self._clock = clock
        self._import = IMPORT * patience
        self._deadline = job.system.deadline * patience
        self._heard = telling.SystemHeard()
        self._child = self._ready = None
        self._seconds = 0.0
        self._late = False
        self._log = []

    def open(self):
        self._opened = self._clock()
        self._child = self._launch(self.job)

    def step(self):
        """Look once, without waiting. Whether there is more to come."""
        now = self._clock()
        result = self._child.poll()
        self._heard.hear(self._child.new_stdout())
        if self._heard.ready and self._ready is None:
            self._ready = now
        limit = self._import if self._ready is None else self._deadline
        since = self._opened if self._ready is None else self._ready
        if result is not None:
            self._end(result, now - since)
        elif now - since >= limit and not self._late:
            self._late = True
            self._child.stop()
        return result is None

    def _end(self, result, seconds):
        heard = self._heard
        self._seconds = round(seconds, 3) if self._ready is not None else 0.0
        log = framework.about_gpus(result.stderr.decode("utf-8", "replace"))
        self._log = [telling.line(text) for text in log]
        self.stuck = result.stuck
        outcome, reason = self._why(result)
        if heard.full:
            heard.run.update(outcome="error", reason=_TOO_MUCH)
        if heard.done:  # whatever became of it afterwards
            return
        outcome = heard.run.setdefault("outcome", outcome)
        reason = heard.run.setdefault("reason", reason)
        if heard.begun is not None:
            died = outcome if outcome in telling.TRIAL_OUTCOMES else "error"
            heard.trials.append(dict(heard.begun, outcome=died, reason=reason))

    def _why(self, result):
        if self._late and self._ready is None:
            return "timeout", "%s was not imported within %g s" % (
                self.job.system.framework or "its process",
                self._import,
            )
        if self._late or result.outcome == "timeout":
            return "timeout", "no answer within %g s" % self._deadline
        if result.outcome == "not-started":
            return "error", "its process could not be started: %s" % result.error
        last = [text for text in result.tail(1, 400).splitlines() if text.strip()][-1:]
        words = "its process " + result.describe() + (": " + last[0].strip() if last else "")
        return "crashed", telling.line(words)

    def told(self):
        """The SystemRun."""
        job = self.job
        run = {"system": job.system.name, "device": job.on, "outcome": "ok", "gpus": addresses(job)}
        if job.system.framework:
            run["framework"] = job.system.framework
        if job.outcome:
            run.update(outcome=job.outcome, reason=job.reason)
        run.update(self._heard.run, seconds=self._seconds, trials=self._heard.trials)
        run["log"] = self._log
        return run


def patience(machine):
    """What the limits are multiplied by, here and now: on a busy machine all is slow, and nothing hangs."""
    try:
        waiting = os.getloadavg()[0]
    except OSError:
        return 1
    return MOST_PATIENCE if waiting > cores(machine) else 1


def addresses(job):
    """The PCI addresses of a job's GPUs, as far as they are known."""
    found = [device.seed.get("pci_address") for device in job.devices]
    return [address for address in found if address]
