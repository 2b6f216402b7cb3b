"""Runs the systems after the micro-kernels: a few side by side, and those that are timed alone."""

import shutil
import tempfile
import time

from ... import framework, systems
from ...kernels.campaign import cores
from ...worker import command
from ...worker.messages import one_line
from ...worker.parent import Limits, Worker
from . import jobs, records
from .records import IMPORT
from .work import MODULE

LIMIT = 600.0  # seconds after which nothing is started any more
_CORES = 2  # for each process at work
_SIDE_BY_SIDE = 3  # at most, on one GPU
_PAUSE = 0.005  # seconds between two looks
_TOO_MUCH = "it reported more than fits into a Snapshot: the rest is left out"


class SystemsRunner(object):
    """All systems that were asked for."""

    def __init__(self, run, environ, patience=1, clock=time.monotonic):
        """run: the collection. patience: what the limits of the import and of the work are multiplied by."""
        self._names = run.request.kernels.systems
        self._documents = run.documents
        self._run, self._environ = run, environ
        self._patience, self._clock = patience, clock
        self._width = max(1, min(cores(run.documents["machine"]) // _CORES, _SIDE_BY_SIDE))
        self.sessions = {}  # of the processes: the document that each belongs to

    def run(self, chosen, pause=time.sleep):
        """Fill in ``acceleration`` of both documents. chosen: of kernels.selection.choose."""
        began = self._clock()
        planned = jobs.plan(systems.load(), self._names, chosen, self._documents)
        attempts = [
            SystemProcess(job, self._launch, self._clock, self._patience) for job in planned
        ]
        waiting = [attempt for attempt in attempts if not attempt.job.outcome]
        total, working, orphaned = len(waiting), [], []
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
                orphaned += self._run.sweep()  # before it weighs on those that are timed
            for attempt in over:
                if attempt.job.folder is not None:
                    shutil.rmtree(attempt.job.folder, ignore_errors=True)
            names = [attempt.job.name for attempt in working]
            self._run.progress(names, total - len(waiting) - len(working), total)
            if working:
                pause(_PAUSE)
        self._write(attempts, round(self._clock() - began, 3))
        self.name_stuck(orphaned)

    def _may_start(self, attempt, working):
        alone = attempt.job.system.alone or any(one.job.system.alone for one in working)
        return not working if alone else len(working) < self._width

    def _launch(self, job):
        system = job.system
        python = self._run.python[system.document]
        width = 1 if system.alone else self._width
        params = {
            "pynvml": self._run.request.pynvml,
            "module": system.module,
            "framework": system.framework,
            "device": job.on,
            "gpus": addresses(job),
            "memory_mib": jobs.memory_mib(job.devices, self._documents["machine"], width),
            "seconds": system.deadline * self._patience,
            "libraries": jobs.libraries(system, self._documents[system.document]),
        }
        env = dict(self._environ)
        if job.visible is not None:
            env["CUDA_VISIBLE_DEVICES"] = job.visible
        job.folder = _folder(self._run.request.scratch)
        if job.folder is not None:
            env["TMPDIR"] = job.folder
        most = (IMPORT + system.deadline) * self._patience
        child = self._run.start(command(python.argv, MODULE, params), most, python.cwd, env)
        if child.pid is not None:
            self.sessions[child.pid] = python.document
        return child

    def _write(self, attempts, seconds):
        for document, place in self._documents.items():
            if place is None:
                continue
            of_it = [a for a in attempts if a.job.system.document == document]
            names = {one.name for one in systems.load() if one.document == document}
            facts = {
                "systems": sorted(names.intersection(self._names)),
                "seconds": seconds,
                "runs": [attempt.facts() for attempt in of_it],
            }
            sources = {"*": "the systems, run"}
            place["acceleration"] = {
                "outcome": "ok",
                "seconds": seconds,
                "sources": sources,
                "facts": facts,
            }
            stuck = [attempt.stuck for attempt in of_it if attempt.stuck is not None]
            if stuck:
                place["acceleration"]["stuck"] = stuck

    def failed(self, reason):
        """Nothing came of it."""
        for place in self._documents.values():
            if place is not None:
                place["acceleration"] = {"outcome": "crashed", "reason": one_line(reason)}

    def name_stuck(self, orphaned):
        """Put each process that had to be left behind, (session, ``stuck`` of a Result), into a section."""
        for session, stuck in orphaned:
            place = self._documents[self.sessions.get(session, "machine")]
            place["acceleration"].setdefault("stuck", []).append(stuck)


def _folder(scratch):
    """A new directory for one process's temporary files, which no Python takes for a package."""
    if scratch in (None, "/"):
        return None
    try:
        return tempfile.mkdtemp(prefix="tmp-", dir=scratch)
    except OSError:
        return None


class SystemProcess(object):
    """One SystemJob at work: ``open`` it, ``step`` until it is False; ``facts`` is its SystemRun."""

    def __init__(self, job, launch, clock, patience=1):
        self.job = job
        self._launch, self._clock, self._patience = launch, clock, patience
        self._reader = records.SystemReader()
        self._worker = None

    def open(self):
        limits = Limits(IMPORT * self._patience, total=self.job.system.deadline * self._patience)
        child, take = self._launch(self.job), self._reader.take
        self._worker = Worker(child, limits, take, clock=self._clock)

    def step(self):
        """Look once, without waiting. Whether there is more to come."""
        if self._worker.step():
            return True
        self._ended = self._clock()
        return False

    @property
    def stuck(self):
        """A Result's, of a process that could not be killed."""
        return self._worker.stuck if self._worker is not None else None

    def _why(self):
        """(outcome, reason) of the run."""
        worker = self._worker
        outcome, reason = worker.outcome, worker.reason
        if outcome == "timeout" and worker.begun is None:
            name = self.job.system.framework or "its process"
            reason = "%s was not imported within %g s" % (name, worker.limits.start)
        elif outcome == "timeout":
            reason = "no answer within %g s" % worker.limits.total
        elif outcome == "crashed":
            reason = ": ".join([reason] + worker.evidence.splitlines()[-1:])
        return outcome if outcome in records.OUTCOMES else "error", one_line(reason)

    def facts(self):
        """The SystemRun."""
        job, reader, worker = self.job, self._reader, self._worker
        run = {"system": job.system.name, "device": job.on, "gpus": addresses(job)}
        run.update(outcome=job.outcome or "ok", reason=job.reason, trials=reader.trials)
        if job.system.framework:
            run["framework"] = job.system.framework
        if worker is None:
            return run
        run.update(reader.run)
        run["outcome"], run["reason"] = outcome, reason = self._why()
        if worker.stage is not None and not worker.done:
            name, key = worker.stage
            died = outcome if outcome in records.TRIAL_OUTCOMES else "error"
            found = {"name": name, "outcome": died, "reason": reason}
            reader.trials.append(records.trial_of(found, key))
        if reader.full:
            run.update(outcome="error", reason=_TOO_MUCH)
        if worker.begun is not None:
            run["seconds"] = round(self._ended - worker.begun, 3)
        run["log"] = [one_line(text) for text in framework.about_gpus(worker.log)]
        return run


def addresses(job):
    """The PCI addresses of a job's GPUs, as far as they are known."""
    found = [device.seed.get("pci_address") for device in job.devices]
    return [address for address in found if address]
