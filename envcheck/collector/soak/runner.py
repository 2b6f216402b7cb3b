"""Runs a soak: a process a GPU, all at once, samples beside them, and a record a minute."""

import collections
import os
import time

from .. import worker
from ..telemetry.telemetry import Telemetry
from .worker import GRACE, SoakWorker

MINUTE = 60.0
INTERVAL = 1.0  # seconds between two samples
_PAUSE = 0.1  # seconds between two looks
_FOREVER = 1e9  # seconds
_ENDING = 30.0  # seconds for all processes to end


class SoakRunner(object):
    def __init__(self, request, run, python, clock=time.monotonic):
        """request: {"seconds", "minute", "busy_ok", "memory_mib", "libraries": the target's cuBLAS or None,
        "required": not by the driver alone}.

        run: the collection. python: the PythonCommand that computes.
        """
        self._request = request
        self._run = run
        self._documents = run.documents
        self._python = python
        self._folder = run.request.scratch
        self._clock = clock
        self.stopped = False  # by the user

    def stop(self):
        """End; what is done is kept."""
        self.stopped = True

    def run(self, devices, why, pause=time.sleep):
        """Fill in ``soak`` of the machine's document.

        devices: of kernels.selection, and why there are none. Its events are {"minute": …} of each GPU
        when a minute is over.
        """
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        workers = [
            SoakWorker(device, self._launch, self._clock, self._folder) for device in devices
        ]
        pynvml = self._run.request.pynvml
        telemetry = Telemetry(self._run.start, pynvml=pynvml, folder=self._folder)
        began = self._clock()
        try:
            telemetry.open(sorted({one.gpu for one in workers if one.gpu}), INTERVAL, errors=True)
            for one in workers:
                one.open()
            ended_by = self._soak(workers, telemetry, began, pause)
        finally:
            for one in workers:
                one.stop()
            since = self._clock()
            while any(one.runs for one in workers) and self._clock() - since < _ENDING:
                for one in workers:
                    one.look()
                pause(_PAUSE)
            telemetry.close()
        self._hold_together(workers)
        self._write(workers, began, started, ended_by, why)

    def _soak(self, workers, telemetry, began, pause):
        """Until its time is over, or something ends it: what."""
        minute = self._request.get("minute") or MINUTE
        by_gpu = {one.gpu: one for one in workers if one.gpu}
        seconds, at, number = self._request["seconds"], began, 0
        while True:
            for one in workers:
                one.look()
            self._hear(telemetry, by_gpu)
            self._hold_together(workers)
            now = self._clock()
            over = now - began >= seconds
            left = any(one.runs for one in workers)
            if now - at >= minute or over or self.stopped or not left:
                number += 1
                self._tell(workers, number, at - began, now - at)
                at = now
            if self.stopped:
                return "user"
            if not left and not over:
                return "none-left"
            if over:
                return ""
            self._run.progress([one.device.name for one in workers if one.runs])
            pause(_PAUSE)

    def _tell(self, workers, number, began, seconds):
        made = [(one, one.minute(began, seconds)) for one in workers]
        made = [(one, record) for one, record in made if record is not None]
        for one, record in made:
            told = {"index": one.device.seed.get("index"), "outcome": one.outcome, "of": len(made)}
            told.update(gpu=one.gpu, number=number, reason=one.reason)
            self._run.event({"minute": dict(record, **told)})

    @staticmethod
    def _hear(telemetry, by_gpu):
        for kind, gpu, when, value in telemetry.poll():
            one = by_gpu[gpu]
            if kind == "sample":
                one.minutes.sample(value)
            elif kind == "errors":
                for name, number in value.items():
                    one.errors_before.setdefault(name, number)
                one.errors_after.update(value)
                one.minutes.errors(value)
            elif kind == "xid":
                one.xids.append((when, value))
                one.minutes.xid(value)
            elif kind == "lost":
                one.lost = when, value
            else:
                one.no_samples = value
        for gpu, words in telemetry.missing.items():
            by_gpu[gpu].no_samples = words

    def _hold_together(self, workers):
        """GPUs of one name, by the same product, must give the same first result in each round: whose is not
        most GPUs'?

        Of two that differ nobody can say which is right, and both are told; unless one of them is what
        arithmetic gives.
        """
        # Until it has reported what it computes, a GPU may be one of any kind of its name.
        unknown = {one.name for one in workers if one.runs and not one.is_ready}
        for kind in {one.kind for one in workers if one.name not in unknown}:
            same = [one for one in workers if one.kind == kind]
            for number in sorted({number for one in same for number in one.rounds}):
                if any(one.runs and number not in one.rounds for one in same):
                    break  # until all have it
                found = [one for one in same if number in one.rounds]
                for one in _outsiders(found, number):
                    product = one.rounds[number]["product"]
                    one.mismatch({"seconds": self._clock(), "what": "peers", "product": product})
                for one in found:
                    del one.rounds[number]

    def _launch(self, device, pipe):
        env = dict(os.environ, CUDA_VISIBLE_DEVICES=device.visible or "-1")
        params = {
            "pipe": pipe,
            "libraries": self._request.get("libraries"),
            "required": bool(self._request.get("required")),
            "memory_mib": self._request.get("memory_mib"),
        }
        argv = worker.command(self._python.argv, "envcheck.collector.soak.child", params)
        return self._run.start(argv, _FOREVER, self._python.cwd, env, grace=GRACE)

    def failed(self, why):
        self._documents["machine"]["soak"] = {"outcome": "crashed", "reason": why}

    def name_stuck(self, left):
        """[(session, stuck process)] of what it left behind and could not be ended."""
        section = self._documents["machine"]["soak"]
        for _session, told in left:
            section.setdefault("stuck", []).append(told)

    def _write(self, workers, began, started, ended_by, why):
        seconds = round(self._clock() - began, 3)
        place = self._documents["machine"]["soak"] = {
            "outcome": "ok",
            "seconds": seconds,
            "reason": "" if workers else why,
            "sources": {"*": "products and memory patterns, run; NVML beside them"},
            "facts": {
                "asked": self._request["seconds"],
                "began": started,
                "seconds": seconds,
                "stopped": ended_by,
                "busy_ok": bool(self._request.get("busy_ok")),
                "gpus": [one.gpu_facts(began) for one in workers],
            },
        }
        stuck = [one.stuck for one in workers if one.stuck]
        if stuck:
            place["stuck"] = stuck


def _outsiders(workers, number):
    """Those whose result of this round is not the one that most have, or that arithmetic gives."""
    rounds = {id(one): one.rounds[number] for one in workers}
    digests = collections.Counter(one["digest"] for one in rounds.values())
    if len(digests) < 2:
        return []
    right = {one["digest"] for one in rounds.values() if one.get("as_computed")}
    if len(right) != 1:
        (usual, most), (_next, others) = digests.most_common(2)
        right = {usual} if most > others else set()
    return [one for one in workers if rounds[id(one)]["digest"] not in right]
