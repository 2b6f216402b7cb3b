"""Runs the probes side by side, each in a process of its own, and puts a Snapshot together."""

import json
import os
import sys
import time

from . import foreign, inside, probes
from .acceleration.runner import SystemsRunner, patience
from .bench.running.runner import BenchRunner
from .documents import document, section
from .kernels import jobs
from .kernels.campaign import Campaign, PythonCommand, cores
from .kernels.selection import NoSuchGpu
from .options import Options
from .runtime import bounded, handshake, orphans, process, scratch
from .runtime.child import BOOTSTRAP
from .soak.runner import SoakRunner

HANDSHAKE_DEADLINE = 5.0
_ONE_ROW = 900.0  # seconds that a row of a bench may take at the worst
_ONCE_MORE = 1.0  # seconds, after which a GPU's utilization no longer tells of the probes

# The directory, or the zip, that holds the envcheck package this file belongs to.
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class BadTarget(Exception):
    """What was asked for cannot be looked at: one sentence that names it and says why."""


class Running(object):
    """One probe's process, and the part of a document that its section goes to."""

    def __init__(self, place, probe, child):
        self.place = place
        self.probe = probe
        self.child = child

    @property
    def name(self):
        return self.probe.name


class Run(object):
    """One collection: the probes, then the micro-kernels; cleans up whatever happens."""

    def __init__(
        self,
        params=None,
        deadline=None,
        on_progress=None,
        scratch=None,
        kernels=None,
        only=None,
        probe_files=None,
        seen=None,
        work=None,
        on_event=None,
    ):
        """params: what every machine probe gets. deadline: seconds, instead of each probe's own.

        on_progress(names of what runs, done, total) is called again and again, and may raise to stop.
        scratch: an empty directory for the target's Python, which looks for modules where it works, or for
        the container's engine; close() removes it. kernels: the micro-kernels' Options; without them none
        is run. only: of the probes, these. probe_files: {name: path} of other packages' probes.
        seen: {"machine", "target"}: sections of the documents that need no second look.
        work: {"bench": request} or {"soak": request}, what runs after all else. on_event(record) tells what
        comes of it.
        """
        self.params = params or {}
        self.deadline = deadline
        self.on_progress = on_progress
        self.running = []
        self.children = []
        self.scratch = scratch
        self.kernels = kernels
        self.names = []  # of other hosts and users, to be redacted: [(host, user, home)]
        self._only = only
        self._seen = seen or {}
        self._work = work
        self._worker = None  # what does the work, while it is done
        self._stopped = False  # the user wants no more of it
        self._event = on_event or (lambda record: None)
        self._foreign, self._refused = foreign.find(probe_files or {})
        self._look = None
        self._stuck = set()
        self._told = self._before = (
            0,
            0,
        )  # what is over, of how many: now, and in the parts before

    def close(self):
        """End what still runs, and leave nothing behind."""
        process.stop_all(self.children)
        if self._look is not None and self._look.left_behind and self._look.ending:
            process.run(self._look.ending, inside.ENDING, cwd="/")
        self._sweep()
        scratch.remove(self.scratch)

    def _sweep(self):
        """[(session, stuck process)] of what those that are over left behind and could not be ended."""
        for child in self.children:
            if child.result is not None and child.result.stuck:
                self._stuck.add(child.result.stuck["pid"])
        running = {child.pid for child in self.children if child.result is None}
        left = orphans.sweep(spare=self._stuck | running)
        self._stuck.update(told["pid"] for _session, told in left)
        return left

    def collect(self, target=None, machine=True, look=None):
        """The documents {"machine", "target"} of this machine and of a target, unredacted.

        target: a path. look: the inside.Look into a container, which is the target then: all kernels
        run there.
        """
        documents = {"machine": document("live", "machine"), "target": None}
        greeting = interpreter = None
        if look is not None:
            self._look = look
            names = (self._wanted_inside("machine"), self._wanted_inside("target"))
            names = (names[0], self._without_seen(names[1], look.location))
            cwd = self.scratch or "/"
            look.start(self._start, self.deadline, self.kernels, cwd, *names, work=self._work)
        if target is not None:
            interpreter, kind = _resolve(target)
            script = [interpreter, "-B", "-c", handshake.SCRIPT]
            greeting = self._start(script, HANDSHAKE_DEADLINE, self.scratch)
        if machine:
            params = dict(self.params)
            if target is not None:
                params["paths"] = [os.path.abspath(target)]  # its disk is looked at, too
            place = documents["machine"]
            for probe in self._chosen("machine"):
                if not self._take_seen("machine", place, probe.name):
                    self._probe(place, _isolated(), probe, params, "/")
            for name, why in self._refused.items():
                place.setdefault("extensions", {})[name] = {"outcome": "refused", "reason": why}
        if greeting is not None:
            process.run_all([greeting], self._watch)
            hello = _greet(target, interpreter, greeting.result)
            where = document("live", "path:" + os.path.abspath(target))
            documents["target"] = where
            found = handshake.facts(hello, kind, interpreter)
            where["interpreter"] = {
                "outcome": "ok",
                "seconds": round(greeting.result.seconds, 3),
                "sources": found.sources,
                "facts": found.values,
            }
            self._start_target(where, interpreter, hello)
        process.run_all(self.children, self._watch)
        for one in self.running:
            told = section(one.probe, one.child.result)
            one.place[one.name] = foreign.bounded(told) if one.probe in self._foreign else told
        if look is not None:
            if look.again():
                process.run_all([look.child], self._watch)
            self._put_inside(documents)
        self._name_stuck(self._sweep())
        if machine and self.kernels is not None and look is None:
            self._run_on_gpus(documents, interpreter)
        if self._work is not None and look is None:
            python = None
            if interpreter is not None:
                python = PythonCommand("target", [interpreter, "-B"], self.scratch)
            if "soak" in self._work:
                self._soak(documents, python)
            elif python is not None:
                self._do_work(documents, python)
        return documents

    def stop_work(self):
        """The user wants no more: what is done is kept. Called from a signal's handler."""
        self._stopped = True
        if self._worker is not None:
            self._worker.stop()
        elif self._look is not None and self._work is not None:
            self._look.interrupt()

    def _do_work(self, documents, python):
        seconds = self._work["seconds"]
        limit = max(seconds / 2, seconds - _ONE_ROW)
        request = dict(self._work["bench"], limit=limit)
        if any(row["gpus"] for row in request["rows"]):  # that were seen minutes ago
            documents["machine"] = self._with_new("nvml", documents["machine"])
        campaign = Campaign(
            Options(busy_ok=bool(request.get("busy_ok"))),
            documents,
            self._start,
            dict(os.environ),
            ours=self._stuck | {child.pid for child in self.children},
        )
        devices, _why = self._unless_busy(campaign, documents["machine"])
        self._worker = BenchRunner(
            request,
            documents,
            python,
            self._start,
            dict(os.environ),
            ROOT,
            machine_python=_isolated(),
            pynvml=self.params.get("pynvml"),
            sweep=self._sweep,
            scratch=self.scratch,
            patience=patience(documents["machine"]),
            cores=cores(documents["machine"]),
        )
        if self._stopped:
            self._worker.stop()
        self._guarded(self._worker, lambda: self._worker.run(devices, self._tell, self._event))
        self._worker.name_stuck(self._sweep())

    def _soak(self, documents, python):
        request = self._work["soak"]
        documents["machine"] = self._with_new("nvml", documents["machine"])  # seen minutes ago
        options = Options((), (), request["gpus"] or None, request["busy_ok"])
        ours = self._stuck | {child.pid for child in self.children}
        campaign = Campaign(options, documents, self._start, dict(os.environ), ours=ours)
        try:
            devices, why = self._unless_busy(campaign, documents["machine"])
        except NoSuchGpu as error:
            raise BadTarget(str(error))
        blases = jobs.cublas(documents["target"]) if request["cublas"] and python else []
        for device in devices if request["required"] and not blases else ():
            if not device.outcome:
                device.outcome, device.reason = "not-run", "the target has no cuBLAS"
        self._worker = SoakRunner(
            dict(request, libraries=blases[0] if blases else None),
            documents,
            python if blases else PythonCommand("machine", _isolated(), "/"),
            self._start,
            dict(os.environ),
            {"root": ROOT, "pynvml": self.params.get("pynvml"), "folder": self.scratch},
        )
        if self._stopped:
            self._worker.stop()
        self._guarded(self._worker, lambda: self._worker.run(devices, why, self._tell, self._event))
        self._worker.name_stuck(self._sweep())

    def _put_inside(self, documents):
        try:
            where = document("live", self._look.location)
            self.names += self._look.put(documents, where)
            for name in probes.of("target"):
                if name not in where:
                    self._take_seen("target", where, name)
        except inside.NotATarget as error:
            raise BadTarget(str(error))

    def _run_on_gpus(self, documents, interpreter):
        """Only now: what follows loads the GPUs, and the probes are to see them as they were."""
        campaign = Campaign(
            self.kernels,
            documents,
            self._start,
            dict(os.environ),
            self.params.get("pynvml"),
            ROOT,
            self._stuck | {child.pid for child in self.children},
        )
        pythons = {"machine": PythonCommand("machine", _isolated(), "/")}
        if interpreter is not None:
            pythons["target"] = PythonCommand("target", [interpreter, "-B"], self.scratch)
        systems = SystemsRunner(
            self.kernels.systems,
            documents,
            pythons,
            self._start,
            dict(os.environ),
            {"pynvml": self.params.get("pynvml"), "root": ROOT, "sweep": self.kernels.sweep},
            self._sweep,
            self.scratch,
            patience(documents["machine"]),
        )
        try:
            chosen = self._unless_busy(campaign, documents["machine"])
        except NoSuchGpu as error:
            raise BadTarget(str(error))
        except Exception as error:
            for asked, part in ((self.kernels.levels, campaign), (self.kernels.systems, systems)):
                if asked:
                    part.failed(_our_fault(error))
            return
        if self.kernels.levels:
            self._guarded(campaign, lambda: campaign.run(chosen, pythons, self._tell))
            self._before = self._told
            if (
                campaign.died
            ):  # an Xid that it caused came after the probe had read the kernel's log
                documents["machine"] = self._with_new("kernel", documents["machine"])
            campaign.name_stuck(self._sweep())
        if self.kernels.systems:
            self._guarded(systems, lambda: systems.run(chosen, self._tell))
            systems.name_stuck(self._sweep())

    def _guarded(self, part, work):
        """Whatever happens to this part, the facts of the others are there all the same."""
        try:
            work()
        except Exception as error:
            process.stop_all(self.children)
            part.failed(_our_fault(error))

    def _unless_busy(self, campaign, machine):
        """The campaign's choice. What looks busy is looked at again: the probes use the GPUs themselves."""
        chosen = campaign.choose(machine)
        if campaign.is_busy(chosen):
            chosen = campaign.choose(self._with_new("nvml", machine))
        if campaign.is_busy(chosen, only_utilization=True):
            since = time.monotonic()
            while time.monotonic() - since < _ONCE_MORE:
                self._watch()
                time.sleep(0.02)
            chosen = campaign.choose(self._with_new("nvml", machine))
        return chosen

    def _with_new(self, field, machine):
        """The machine's document as a probe tells it now; as it was, where the probe does not answer."""
        probe = probes.load(field)
        child = self._start(*self._command(_isolated(), probe, self.params, "/"))
        process.run_all([child], self._watch)
        fresh = section(probe, child.result)
        return dict(machine, **{field: fresh}) if fresh["outcome"] == "ok" else machine

    def _name_stuck(self, left):
        """Put each process that had to be left behind into the section of the probe it came from."""
        sessions = {one.child.pid: one for one in self.running}
        for session, told in left:
            one = sessions.get(session, self.running[0])
            one.place[one.name].setdefault("stuck", []).append(told)

    def _start_target(self, where, interpreter, hello):
        python = [interpreter, "-B"]  # no bytecode: the target is left as it was found
        there = hello.get("frameworks", ())
        params = {"deadline": self.deadline} if self.deadline else {}
        for probe in self._chosen("target"):
            if self._take_seen("target", where, probe.name):
                continue
            if probe.imports is None or probe.imports in there:
                self._probe(where, python, probe, params, self.scratch)

    def _take_seen(self, document, place, name):
        """Whether that section of the document is there already; then it is put in its place."""
        seen = self._seen.get(document) or {}
        told = seen.get(name) if seen.get("location") == place["location"] else None
        if isinstance(told, dict):
            place[name] = told
        return isinstance(told, dict)

    def _chosen(self, document):
        """The probes that write this document, envcheck's own first."""
        found = list(probes.of(document).values())
        found += [probe for probe in self._foreign if probe.document == document]
        return [probe for probe in found if self._is_wanted(probe)]

    def _is_wanted(self, probe):
        if self._only is None or probe.name in self._only:
            return True
        return "extensions" in self._only and probe in self._foreign

    def _wanted_inside(self, document):
        """The names of the probes that run in a container for this document."""
        found = self._chosen(document)
        if document == "machine":
            return [probe.name for probe in found if probe.in_container]
        greeted = ["interpreter"] if self._only is None or "interpreter" in self._only else []
        return greeted + [probe.name for probe in found]

    def _without_seen(self, names, location):
        """Of a container's probes those that have not been seen there already."""
        seen = self._seen.get("target") or {}
        if seen.get("location") != location:
            return names
        return [name for name in names if not isinstance(seen.get(name), dict)]

    def _probe(self, place, python, probe, params, cwd):
        # A deadline that the user gave is kept to the second.
        patient = self.deadline is None
        child = self._start(*self._command(python, probe, params, cwd), patient=patient)
        if probe in self._foreign:
            place = place.setdefault("extensions", {})
        self.running.append(Running(place, probe, child))

    def _command(self, python, probe, params, cwd):
        """What ``_start`` is to be given for a probe."""
        argv = python + ["-c", BOOTSTRAP, ROOT, probe.module, json.dumps(params)]
        return argv, self.deadline or probe.deadline, cwd

    def _start(self, argv, deadline, cwd, env=None, **more):
        child = process.Child(argv, deadline, cwd=cwd, env=env, tied=True, **more)
        self.children.append(child)
        return child

    def _watch(self):
        running = [one.name for one in self.running if one.child.poll() is None]
        if self._look is None:
            self._tell(running)
        elif self._look.child.poll() is None:
            self._look.watch()
            for record in self._look.events():
                self._event(record)
            self._tell(running + [self._look.location], 0, 1)
        else:
            self._tell(running, 1, 1)

    def _tell(self, running, done=0, more=0):
        """Progress: beside the probes that do not run any more, ``done`` of ``more``."""
        if self.on_progress is not None:
            over = sum(one.child.result is not None for one in self.running)
            self._told = (done, more)
            done, more = done + self._before[0], more + self._before[1]
            self.on_progress(running, over + done, len(self.running) + more)


def _our_fault(error):
    return "envcheck's own part of it failed: %s: %s" % (type(error).__name__, error)


def _isolated():
    """envcheck's own Python, out of reach of the user's settings for Python."""
    return [sys.executable or "python3", "-I", "-S"]


def _resolve(target):
    """(interpreter, kind) of a target, whose file system may be one that never answers."""

    def look():
        try:
            return handshake.resolve(target) + (None,)
        except ValueError as error:
            return None, None, str(error)
        except OSError as error:  # a relative path, and the current directory is gone
            told = "%s: %s (is the current directory gone?)" % (target, error.strerror)
            return None, None, told

    ((outcome, value),) = bounded.call_all([look], HANDSHAKE_DEADLINE)
    if outcome == "timeout":
        raise BadTarget(
            "%s cannot be used as a target: its file system gave no answer within %g s"
            % (target, HANDSHAKE_DEADLINE)
        )
    if outcome == "error":
        raise BadTarget("%s cannot be used as a target: %s" % (target, value["detail"]))
    interpreter, kind, problem = value
    if problem is not None:
        raise BadTarget(problem)
    return interpreter, kind


def _greet(target, interpreter, result):
    try:
        return handshake.check(result)
    except ValueError as error:
        sentence = str(error)
        if target not in sentence and interpreter not in sentence:
            sentence = "%s: %s" % (target, sentence)
        raise BadTarget(sentence)
