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
        self._request, self._run, self._python = request, run, python
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
        folder = self._run.request.scratch
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        workers = [SoakWorker(one, self._launch, self._clock, folder) for one in devices]
        telemetry = Telemetry(self._run.start, pynvml=self._run.request.pynvml, folder=folder)
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
        self._compare(workers)
        self._write(workers, began, started, ended_by, why)

    def _soak(self, workers, telemetry, began, pause):
        """Until its time is over, or something ends it: what."""
        seconds, at, number = self._request["seconds"], began, 0
        minute = self._request.get("minute") or MINUTE
        by_gpu = {one.gpu: one for one in workers if one.gpu}
        while True:
            for one in workers:
                one.look()
            _take_samples(telemetry, by_gpu)
            self._compare(workers)
            now = self._clock()
            over, running = now - began >= seconds, [one for one in workers if one.runs]
            if now - at >= minute or over or self.stopped or not running:
                number += 1
                self._tell(workers, number, at - began, now - at)
                at = now
            if self.stopped:
                return "user"
            if over or not running:
                return "" if over else "none-left"
            self._run.progress([one.device.name for one in running])
            pause(_PAUSE)

    def _tell(self, workers, number, began, seconds):
        made = [(one, one.minute(began, seconds)) for one in workers]
        made = [(one, record) for one, record in made if record is not None]
        for one, record in made:
            event = {"index": one.device.seed.get("index"), "outcome": one.outcome, "of": len(made)}
            event.update(record, gpu=one.gpu, number=number, reason=one.reason)
            self._run.event({"minute": event})

    def _compare(self, workers):
        """GPUs of one kind must have the same first result in each round; of two, both are reported."""
        # Until it has reported what it computes, a GPU may be one of any kind of its name.
        unknown = {one.name for one in workers if one.runs and not one.is_ready}
        for kind in {one.kind for one in workers if one.name not in unknown}:
            same = [one for one in workers if one.kind == kind]
            for number in sorted({number for one in same for number in one.rounds}):
                if any(one.runs and number not in one.rounds for one in same):
                    break  # until all have it
                found = {one: one.rounds.pop(number) for one in same if number in one.rounds}
                digests = {one: round_["digest"] for one, round_ in found.items()}
                for one in outsiders(digests):
                    product = found[one]["product"]
                    one.mismatch({"seconds": self._clock(), "what": "peers", "product": product})

    def _launch(self, device, pipe):
        env = dict(os.environ, CUDA_VISIBLE_DEVICES=device.visible or "-1")
        names = ("libraries", "required", "memory_mib")
        params = dict({name: self._request.get(name) for name in names}, pipe=pipe)
        argv = worker.command(self._python.argv, "envcheck.collector.soak.child", params)
        return self._run.start(argv, _FOREVER, self._python.cwd, env, grace=GRACE)

    def failed(self, why):
        self._run.documents["machine"]["soak"] = {"outcome": "crashed", "reason": why}

    def name_stuck(self, remaining):
        """[(session, stuck process)] of what it left behind and could not be ended."""
        section = self._run.documents["machine"]["soak"]
        for _session, stuck in remaining:
            section.setdefault("stuck", []).append(stuck)

    def _write(self, workers, began, started, ended_by, why):
        seconds = round(self._clock() - began, 3)
        section = self._run.documents["machine"]["soak"] = {
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
            section["stuck"] = stuck


def _take_samples(telemetry, by_gpu):
    for kind, gpu, when, value in telemetry.poll():
        one = by_gpu[gpu]
        if kind == "sample":
            one.minutes.sample(value)
        elif kind == "errors":
            one.errors_before = dict(value, **one.errors_before)
            one.errors_after.update(value)
            one.minutes.errors(value)
        elif kind == "xid":
            one.xids.append((when, value))
            one.minutes.xid(value)
        elif kind == "lost":
            one.lost = when, value
    for gpu, words in telemetry.missing.items():
        by_gpu[gpu].no_samples = words


def outsiders(digests):
    """Those whose digest is not the one that most have; all of them where none is. digests: {one: digest}."""
    common = collections.Counter(digests.values()).most_common(2)
    if len(common) < 2:
        return []
    (usual, most), (_next, others) = common
    return [one for one, digest in digests.items() if digest != usual or most == others]
