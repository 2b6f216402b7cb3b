"""MultiWorkerMirroredStrategy: two processes on the loopback, made workers of one cluster by TF_CONFIG."""

import json
import os

from .running import ranks, records
from .shared import replicas
from .shared.distributed import loopback

SYSTEM = "multiworker"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 60.0
GPUS = 2
ON_CPU = "few"
BY_RANKS = True
_WORKERS = 2
_SECONDS = 25.0
_PATIENCE = 3.0


def run(_framework, params, tell):
    found = []
    for words, more, seconds in loopback.attempts(os.environ, _SECONDS):
        with tell.trial("workers" + words) as trial:
            trial["proxy"] = loopback.proxy(os.environ) or None
            environ = _environ(more)
            found = ranks.run(params, _WORKERS + 1, seconds, environ, _PATIENCE, tell)
            _put(trial, ranks.answers(found[:_WORKERS]))
            break
    with tell.trial("without TF_CONFIG", control=True) as trial:
        _put(trial, ranks.answers(found[_WORKERS:]))


def _environ(more):
    """The variables of each rank. The last one has no TF_CONFIG, and else does what the first one does."""
    workers = ["%s:%d" % (loopback.HOST, port) for port in loopback.free_ports(_WORKERS)]

    def environ(rank):
        if rank == _WORKERS:
            return dict(loopback.one_gpu(0), TF_CONFIG=None)
        cluster = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": rank}}
        return dict(loopback.one_gpu(rank), TF_CONFIG=json.dumps(cluster), **more)

    return environ


def _put(trial, answers):
    trial["replicas"], trial["sum"] = answers[0]["replicas"], answers[0]["sum"]
    trial["expected"] = float(sum(range(1, _WORKERS + 1)))
    trial["differing"] = sum(one["sum"] != answers[0]["sum"] for one in answers)
    trial["weights"] = sorted({str(one["weight"]) for one in answers})


def rank(tf, params, tell):
    made = loopback.newest(tf.distribute, "MultiWorkerMirroredStrategy")
    if made is None:
        raise records.NotApplicable("it has no MultiWorkerMirroredStrategy")
    tf.compat.v1.enable_eager_execution()
    # A variable begins with another value in each process, and gets what every replica gives.
    number = params["rank"] % _WORKERS + 1.0
    strategy = made()
    give = lambda _context: tf.constant(number)  # noqa: E731
    _weight, values, sums = replicas.reduce(tf, strategy, number, give, 1)
    count = int(strategy.num_replicas_in_sync)
    return {"replicas": count, "sum": sums[0][1], "weight": values[0]}
