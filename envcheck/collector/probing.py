"""The probes' stage: each in a process of its own, side by side, of this machine and of a target."""

import contextlib
import os
import sys

from . import foreign, inside, probes
from .documents import document, section
from .run import BadTarget
from .worker import PythonCommand, forked, handshake
from .worker import probe as probe_worker

HANDSHAKE_DEADLINE = 5.0


def probe(run):
    """Fill in the sections of all probes that were asked for."""
    _Probing(run).collect()


def fresh(run, name):
    """The machine's document with one probe's section as it is now; as it was, where it does not answer."""
    one = probes.load(name)
    child = _start(run, one, run.python["machine"])
    run.wait([child], lambda: run.progress([]))
    made = section(one, child.result)
    machine = run.documents["machine"]
    return dict(machine, **{name: made}) if made["outcome"] == "ok" else machine


def _start(run, one, python, params=None, **more):
    """A probe's process. One of this machine is a copy of this process, where that is isolated, too."""
    params = {"pynvml": run.request.pynvml} if params is None else params
    argv = probe_worker.command(python.argv, one.module, params)
    own = one.module.startswith(probe_worker.OWN) and python.document == "machine"
    if own and sys.flags.isolated:
        more["work"] = probe_worker.work_of(one.module, params)
    return run.start(argv, run.request.deadline or one.deadline, python.cwd, **more)


class _Running(object):
    """One probe's process, and the part of a document that its section goes to."""

    def __init__(self, place, probe, child):
        self.place = place
        self.probe = probe
        self.child = child


class _Probing(object):
    def __init__(self, run):
        self._run = run
        self._request = run.request
        self._look = None
        self._running = []
        self._foreign, self._refused = foreign.find(self._request.probe_files)

    def collect(self):
        run, request = self._run, self._request
        if request.inside is not None:
            self._look_inside()
        interpreter = kind = greeting = None
        if request.target is not None:
            interpreter, kind = _resolve(request.target)
            script = [interpreter, "-B", "-c", handshake.SCRIPT]
            greeting = run.start(script, HANDSHAKE_DEADLINE, request.scratch)
        self._start_machine()
        if greeting is not None:
            run.wait([greeting], self._watch)
            self._start_target(interpreter, kind, greeting.result)
        children = [one.child for one in self._running]
        run.wait(children + ([self._look.child] if self._look is not None else []), self._watch)
        for one in self._running:
            made = section(one.probe, one.child.result)
            made = foreign.bounded(made) if one.probe in self._foreign else made
            one.place[one.probe.name] = made
        if self._look is not None:
            self._finish_look()
        self._name_stuck(run.sweep())

    def _look_inside(self):
        run, request = self._run, self._request
        self._look = run.look = inside.Look(request.inside, run.start)
        machine = [one.name for one in self._chosen("machine") if one.in_container]
        wanted = request.probes is None or "interpreter" in request.probes
        target = ["interpreter"] if wanted else []
        target += [one.name for one in self._chosen("target")]
        seen = self._seen("target", self._look.location)
        self._look.start(request, machine, [name for name in target if name not in seen])

    def _start_machine(self):
        request, place = self._request, self._run.documents["machine"]
        params = {"pynvml": request.pynvml}
        if request.target is not None:
            params["paths"] = [os.path.abspath(request.target)]  # its disk is looked at, too
        seen = self._seen("machine", place["location"])
        chosen = self._chosen("machine")
        if (
            request.target is None and request.inside is None
        ):  # what is started here gets its variables
            chosen += [one for one in self._chosen("target") if one.name == "environment"]
        for one in chosen:
            if one.name in seen:
                place[one.name] = seen[one.name]
            else:
                self._start(place, self._run.python["machine"], one, params)
        for name, why in self._refused.items():
            place.setdefault("extensions", {})[name] = {"outcome": "refused", "reason": why}

    def _start_target(self, interpreter, kind, result):
        run, request = self._run, self._request
        hello = _greet(request.target, interpreter, result)
        place = document("live", "path:" + os.path.abspath(request.target))
        run.documents["target"] = place
        found = handshake.facts(hello, kind, interpreter)
        place["interpreter"] = {
            "outcome": "ok",
            "seconds": round(result.seconds, 3),
            "sources": found.sources,
            "facts": found.values,
        }
        # No bytecode: the target is left as it was found.
        run.python["target"] = PythonCommand("target", [interpreter, "-B"], request.scratch)
        there = hello.get("frameworks", ())
        params = {"deadline": request.deadline} if request.deadline else {}
        with contextlib.suppress(OSError):  # it may be gone
            params["cwd"] = os.getcwd()
        seen = self._seen("target", place["location"])
        for one in self._chosen("target"):
            if one.name in seen:
                place[one.name] = seen[one.name]
            elif one.imports is None or one.imports in there:
                self._start(place, run.python["target"], one, params)

    def _start(self, place, python, one, params):
        # A deadline that the user gave is kept to the second.
        patient = self._request.deadline is None
        child = _start(self._run, one, python, params, patient=patient)
        if one in self._foreign:
            place = place.setdefault("extensions", {})
        self._running.append(_Running(place, one, child))

    def _chosen(self, name):
        """The probes that write this document, envcheck's own first."""
        found = list(probes.of(name).values())
        found += [one for one in self._foreign if one.document == name]
        only = self._request.probes
        return [
            one
            for one in found
            if only is None or one.name in only or ("extensions" in only and one in self._foreign)
        ]

    def _seen(self, name, location):
        """{probe: section} of an earlier document of the same place, which need no second look."""
        seen = self._request.seen.get(name) or {}
        if seen.get("location") != location:
            return {}
        return {name: value for name, value in seen.items() if isinstance(value, dict)}

    def _watch(self):
        running = [one.probe.name for one in self._running if one.child.poll() is None]
        done, total = len(self._running) - len(running), len(self._running)
        if self._look is not None:
            if self._look.step(self._run.event):
                running.append(self._look.location)
            else:
                done += 1
            total += 1
        self._run.progress(running, done, total)

    def _finish_look(self):
        self._look.step(self._run.event)  # it may have ended since the last look
        place = document("live", self._look.location)
        try:
            self._run.names += self._look.put(self._run.documents, place)
        except inside.NotATarget as error:
            raise BadTarget(str(error))
        for name, value in self._seen("target", self._look.location).items():
            if name in probes.of("target"):
                place.setdefault(name, value)

    def _name_stuck(self, processes):
        """Put each process that had to be left behind into the section of the probe it came from."""
        sessions = {one.child.pid: one for one in self._running}
        for session, stuck in processes:
            one = sessions.get(session, self._running[0])
            one.place[one.probe.name].setdefault("stuck", []).append(stuck)


def _resolve(target):
    """(interpreter, kind) of a target, whose file system may be one that never answers."""

    def look():
        try:
            return handshake.resolve(target) + (None,)
        except ValueError as error:
            return None, None, str(error)
        except OSError as error:  # a relative path, and the current directory is gone
            words = "%s: %s (is the current directory gone?)" % (target, error.strerror)
            return None, None, words

    ((outcome, value),) = forked.call_all([look], HANDSHAKE_DEADLINE)
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
