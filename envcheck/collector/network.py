"""The network test's part on one machine: its GPUs are looked at, and the target's program is started."""

import time

from . import gpu_work
from .documents import document
from .options import Options
from .run import BadTarget, environment
from .systems.network.work import MODULE
from .worker import command
from .worker.parent import Limits, Worker

PROBES = ["nvml", "cuda"]  # which tell who uses the GPUs
_LOOK = 0.1  # seconds between two looks at it
_START = 300.0  # seconds for the framework's import, with as many beside it as there are machines


def collect(run):
    """{"facts", "pairs", "together", "outcome", "reason"}: as far as it came, however the program ended."""
    run.collect()
    python = run.python["target"]
    if python is None:
        raise BadTarget("the network is tested in a target: --target PATH")
    asked = run.request.network
    devices, _why = gpu_work.choose(run, Options(busy_ok=bool(asked["busy_ok"])))
    busy = [one for one in devices if one.outcome]
    if busy:
        return {"outcome": "busy", "reason": "%s: %s" % (busy[0].name, busy[0].reason)}
    environ = environment()
    if devices:
        environ["CUDA_VISIBLE_DEVICES"] = ",".join(one.visible for one in devices)
    argv = command(python.argv, MODULE, dict(asked, gpus=len(devices)))
    facts, pairs, found = {}, [], {}  # type: tuple[dict, list, dict]

    def take(kind, value, key):
        if key == "pair":
            pairs.append(value)
        elif key == "together":
            found["together"] = value
        elif kind == "begin" or key == "machine":
            facts.update(value)

    child = run.start(argv, _START + asked["seconds"], python.cwd, environ)
    worker = Worker(child, Limits(start=_START, total=asked["seconds"]), take)
    while worker.step():
        run.progress(["network"])
        time.sleep(_LOOK)
    found.update(facts=facts, pairs=pairs, outcome=worker.outcome, reason=worker.why)
    return dict(found, collected_at=document("live", "machine")["collected_at"])
