"""Runs the systems after the micro-kernels: a few side by side, and those that are timed alone."""

import contextlib
import shutil
import tempfile
import time

from ... import systems
from ...kernels.campaign import cores
from ...worker import command
from ...worker.messages import one_line
from . import jobs
from .records import IMPORT
from .work import MODULE

LIMIT = 600.0  # seconds after which nothing is started any more
_CORES = 2  # for each process at work
_SIDE_BY_SIDE = 3  # at most, on one GPU
_PAUSE = 0.005  # seconds between two looks


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
        waiting = [job for job in planned if not job.outcome]
        total, working, stuck = len(waiting), [], []
        while waiting or working:
            if waiting and self._may_start(waiting[0], working):
                first = waiting.pop(0)
                if self._clock() - began > LIMIT:
                    first.without("not-run", "no time left for it")
                else:
                    first.open(self._launch(first), self._clock, self._patience)
                    working.append(first)
                continue
            over = [job for job in working if not job.worker.step()]
            working = [job for job in working if job not in over]
            stuck += [(job.worker.child.pid, job.worker.stuck) for job in over if job.worker.stuck]
            if over:
                stuck += self._run.sweep()  # before it weighs on those that are timed
            for job in over:
                if job.folder is not None:
                    shutil.rmtree(job.folder, ignore_errors=True)
            names = [job.name for job in working]
            self._run.progress(names, total - len(waiting) - len(working), total)
            if working:
                pause(_PAUSE)
        self._write(planned, round(self._clock() - began, 3))
        self.name_stuck(stuck)

    def _may_start(self, job, working):
        alone = job.system.alone or any(one.system.alone for one in working)
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
            "gpus": job.addresses,
            "memory_mib": jobs.memory_mib(job.devices, self._documents["machine"], width),
            "seconds": system.deadline * self._patience,
            "libraries": jobs.libraries(system, self._documents[system.document]),
        }
        env = dict(self._environ)
        if job.visible is not None:
            env["CUDA_VISIBLE_DEVICES"] = job.visible
        scratch = self._run.request.scratch
        if scratch not in (None, "/"):
            with contextlib.suppress(OSError):  # named as no Python package is
                job.folder = env["TMPDIR"] = tempfile.mkdtemp(prefix="tmp-", dir=scratch)
        most = (IMPORT + system.deadline) * self._patience
        child = self._run.start(command(python.argv, MODULE, params), most, python.cwd, env)
        if child.pid is not None:
            self.sessions[child.pid] = python.document
        return child

    def _write(self, planned, seconds):
        sources = {"*": "the systems, run"}
        for document, place in self._documents.items():
            if place is None:
                continue
            names = {one.name for one in systems.load() if one.document == document}
            runs = [job.facts() for job in planned if job.system.document == document]
            facts = {"systems": sorted(names.intersection(self._names)), "runs": runs}
            section = {"outcome": "ok", "seconds": seconds, "sources": sources}
            place["acceleration"] = dict(section, facts=dict(facts, seconds=seconds))

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
