"""Horovod: a rank a GPU, or two on the CPU, which find each other by Gloo."""

import contextlib
import importlib
import os
import re
import tempfile

from .. import files
from .running import ranks
from .shared.distributed import loopback
from .shared.distributed.horovod import Rendezvous, gloo_environ

SYSTEM = "horovod"
FRAMEWORKS = ("tensorflow",)
MODULES = ("horovod",)
DEADLINE = 60.0
GPUS = 2
ON_CPU = "few"
BY_RANKS = True
_SECONDS = 40.0
_PATIENCE = 3.0
_MOST = 8
_OPERATIONS = re.compile(r"\b[A-Z]{2,8}_[A-Z_]{0,20}?ALLREDUCE\b")
_TIMELINE_SIZE = 4 << 20  # bytes that are read
_BUILT = ("nccl", "mpi", "gloo", "cuda")


def run(_framework, params, tell):
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    number = min(_MOST, len(visible)) if params["device"] == "gpu" else 2
    answers = []
    with tempfile.TemporaryDirectory() as folder, tell.trial("ranks") as trial:
        timeline = os.path.join(folder, "timeline.json")
        trial["ranks"] = number
        answers += _by_gloo(params, number, timeline, tell)
        for name in ("version",) + _BUILT:
            trial[name] = answers[0][name]
        if not answers[0]["gloo"]:
            answers[:] = []
            raise RuntimeError(
                "it is built without Gloo: start it by mpirun, which is not tried here"
            )
        for name in ("size", "sum", "expected", "broadcast", "step"):
            trial[name] = answers[0][name]
        trial["wrong"] = sum(one["sum"] != one["expected"] for one in answers)
        trial["weights"] = sorted({str(one["weight"]) for one in answers})
        trial["operations"] = operations(timeline)
    with tell.trial("one rank", control=True) as trial:
        if not answers or "alone" not in answers[0]:
            raise RuntimeError("no rank has come so far")
        trial.update(answers[0]["alone"])


def operations(path):
    """What summed, by the timeline's own names: ["NCCL_ALLREDUCE"]."""
    with contextlib.suppress(OSError):
        text = files.read(path, _TIMELINE_SIZE).decode("utf-8", "replace")
        return sorted(set(_OPERATIONS.findall(text)))
    return []


def _by_gloo(params, number, timeline, tell):
    with Rendezvous() as port:

        def environ(rank):
            found = gloo_environ(rank, number, loopback.HOST, port, _SECONDS)
            return dict(found, HOROVOD_TIMELINE=timeline)

        found = ranks.run(params, number, _SECONDS, environ, patience=_PATIENCE, tell=tell)
    return ranks.answers(found)


def rank(framework, params, tell):
    hvd = importlib.import_module("horovod.tensorflow")
    answer = {"version": str(getattr(importlib.import_module("horovod"), "__version__", ""))}
    for one in _BUILT:
        built = getattr(hvd, one + "_built", None)
        answer[one] = bool(built and built())
    if not answer["gloo"]:
        return answer
    hvd.init()
    size = hvd.size()
    place = hvd.local_rank() if params["device"] == "gpu" else None
    answer.update(rank=hvd.rank(), size=size, expected=float(sum(range(1, size + 1))))
    answer.update(_sums(framework, hvd, place))
    answer["step"] = 1.0 - (size + 1) / 2.0  # from rank 0's weight, 1, by the mean of all gradients
    hvd.shutdown()  # which writes the timeline
    for variable in [one for one in os.environ if one.startswith("HOROVOD_")]:
        del os.environ[variable]
    hvd.init()
    answer["alone"] = {"size": hvd.size(), "sum": _sums(framework, hvd, None)["sum"]}
    return answer


def _same(values):
    """The number that all of them are; 0 where they differ."""
    found = {float(one) for one in values}
    return found.pop() if len(found) == 1 else 0.0


def _sums(tf, hvd, place):
    if str(tf.__version__).startswith("1."):
        return _in_session(tf.compat.v1, hvd, place)
    if place is not None:
        gpus = tf.config.experimental.list_physical_devices("GPU")
        tf.config.experimental.set_visible_devices(gpus[place], "GPU")
    number = hvd.rank() + 1.0
    with tf.device("/CPU:0" if place is None else "/GPU:0"):
        total = hvd.allreduce(tf.fill([1024], number), op=hvd.Sum)
        weight = tf.Variable(number)
        hvd.broadcast_variables([weight], root_rank=0)
        found = {"sum": _same(total.numpy()), "broadcast": float(weight)}
        with tf.GradientTape() as tape:
            loss = weight * number
        gradient = hvd.DistributedGradientTape(tape).gradient(loss, [weight])
        weight.assign_sub(gradient[0])
    return dict(found, weight=float(weight))


def _in_session(tf, hvd, place):
    tf.disable_eager_execution()
    config = tf.ConfigProto()
    if place is not None:
        config.gpu_options.visible_device_list = str(place)
        config.gpu_options.allow_growth = True
    number = hvd.rank() + 1.0
    with tf.Graph().as_default(), tf.device("/CPU:0" if place is None else "/GPU:0"):
        total = hvd.allreduce(tf.fill([1024], number), op=hvd.Sum, name="envcheck")
        weight = tf.get_variable("weight", initializer=number, use_resource=True)
        spread = hvd.broadcast_global_variables(0)
        optimizer = hvd.DistributedOptimizer(tf.train.GradientDescentOptimizer(1.0))
        step = optimizer.minimize(weight * number)
        with tf.Session(config=config) as session:
            found = {"sum": _same(session.run(total))}
            session.run(weight.initializer)
            session.run(spread)
            found["broadcast"] = float(session.run(weight))
            session.run(step)
            return dict(found, weight=float(session.run(weight)))
