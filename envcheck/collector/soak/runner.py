"""Runs a soak: a process a GPU, all at once, samples beside them, and a record a minute."""

import collections
import json
import time

from ..telemetry.telemetry import Telemetry
from .child import BOOTSTRAP
from .worker import GRACE, SoakWorker

MINUTE = 60.0
INTERVAL = 1.0  # seconds between two samples
_PAUSE = 0.1  # seconds between two looks
_FOREVER = 1e9  # seconds
_ENDING = 30.0  # seconds for all processes to end


class SoakRunner(object):
    def __init__(self, request, documents, python, start, environ, places, clock=time.monotonic):
        """request: {"seconds", "minute", "busy_ok", "memory_mib", "libraries": the target's cuBLAS or None,
        "required": not by the driver alone}.

        python: the PythonCommand that computes. start(argv, deadline, cwd, env, …): a process.Child.
        places: {"root", "pynvml", "folder": that is removed whoever is killed}.
        """
        self._request = request
        self._documents = documents
        self._python = python
        self._start = start
        self._environ = environ
        self._places = places
        self._clock = clock
        self.stopped = False  # by whoever waits

    def stop(self):
        """End; what is done is kept."""
        self.stopped = True

    def run(self, devices, why, watch, event, pause=time.sleep):
        """Fill in ``soak`` of the machine's document.

        devices: of kernels.selection, and why there are none. watch(names, done, total) is called between
        looks. event(record): {"minute": …} of each GPU when a minute is over.
        """
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        workers = [
            SoakWorker(device, self._launch, self._clock, self._places.get("folder"))
            for device in devices
        ]
        telemetry = Telemetry(
            self._start,
            self._places["root"],
            self._places.get("pynvml"),
            self._places.get("folder"),
        )
        began = self._clock()
        try:
            telemetry.open(sorted({one.gpu for one in workers if one.gpu}), INTERVAL, errors=True)
            for one in workers:
                one.open()
            ended_by = self._soak(workers, telemetry, began, watch, event, pause)
        finally:
            for one in workers:
                one.stop()
            since = self._clock()
            while any(one.runs for one in workers) and self._clock() - since < _ENDING:
                for one in workers:
                    one.look()
                pause(_PAUSE)
            telemetry.close()
        self._write(workers, began, started, ended_by, why)

    def _soak(self, workers, telemetry, began, watch, event, pause):
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
                self._tell(workers, number, at - began, now - at, event)
                at = now
            if self.stopped:
                return "user"
            if not left and not over:
                return "none-left"
            if over:
                return ""
            watch([one.device.name for one in workers if one.runs], 0, 0)
            pause(_PAUSE)

    @staticmethod
    def _tell(workers, number, began, seconds, event):
        made = [(one, one.minute(began, seconds)) for one in workers]
        made = [(one, record) for one, record in made if record is not None]
        for one, record in made:
            told = {"index": one.device.seed.get("index"), "outcome": one.outcome, "of": len(made)}
            told.update(gpu=one.gpu, number=number, reason=one.reason)
            event({"minute": dict(record, **told)})

    @staticmethod
    def _hear(telemetry, by_gpu):
        for kind, gpu, when, value in telemetry.poll():
            one = by_gpu[gpu]
            if kind == "s":
                one.minutes.sample(value)
            elif kind == "e":
                for name, number in value.items():
                    one.errors_before.setdefault(name, number)
                one.errors_after.update(value)
                one.minutes.errors(value)
            elif kind == "x":
                one.xids.append((when, value))
                one.minutes.xid(value)
            elif kind == "l":
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
        for kind in {one.kind for one in workers}:
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
        env = dict(self._environ)
        env["CUDA_VISIBLE_DEVICES"] = device.visible or "-1"
        params = {
            "pipe": pipe,
            "libraries": self._request.get("libraries"),
            "required": bool(self._request.get("required")),
            "memory_mib": self._request.get("memory_mib"),
        }
        argv = self._python.argv + ["-c", BOOTSTRAP, self._places["root"], json.dumps(params)]
        return self._start(argv, _FOREVER, self._python.cwd, env, grace=GRACE)

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
                "gpus": [one.told(began) for one in workers],
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
