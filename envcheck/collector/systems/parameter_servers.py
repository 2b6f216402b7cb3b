"""Parameter servers on the loopback: a chief, two workers, and a server on which their variable lives."""

import json
import os
import tempfile
import time

from .running import ranks
from .shared.distributed import loopback

SYSTEM = "parameter-servers"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 60.0
ON_CPU = "always"
BY_RANKS = True
_TASKS = (("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0))
_ROUNDS = 16  # updates that the chief hands out, beside one by each worker
_READS = 20000  # at most, of a worker that waits for the other one's update
_SECONDS = 25.0
_PAUSE = 0.01
_PATIENCE = 3.0


def run(_framework, params, tell):
    loopback.need()
    answers = []
    for words, more, seconds in loopback.attempts(os.environ, _SECONDS):
        with tempfile.TemporaryDirectory() as folder, tell.trial("cluster" + words) as trial:
            loopback.surroundings(trial, os.environ)
            own = dict(params, folder=folder)
            found = ranks.run(own, len(_TASKS), seconds, _environ(more), _PATIENCE, tell)
            answers = [answer for answer in ranks.answers(found) if "sum" in answer]
            for key in ("program", "place", "sum", "expected"):
                trial[key] = answers[0][key]
            trial["workers"] = answers[0].get("workers", len(answers) - 1)
            trial["differing"] = sum(one["sum"] != answers[0]["sum"] for one in answers)
            break
    with tell.trial("without a cluster", control=True) as trial:
        if not answers:
            raise RuntimeError("the chief has not come so far")
        trial["sum"], trial["place"] = answers[0]["alone_sum"], answers[0]["alone_place"]


def _environ(more):
    cluster = {}
    for (job, _index), port in zip(_TASKS, loopback.free_ports(len(_TASKS))):
        cluster.setdefault(job, []).append("%s:%d" % (loopback.HOST, port))

    def environ(rank):
        job, index = _TASKS[rank]
        task = {"cluster": cluster, "task": {"type": job, "index": index}}
        return dict(more, TF_CONFIG=json.dumps(task))

    return environ


def rank(tf, params, tell):
    coordinated = _coordinator(tf) is not None
    job, index = _TASKS[params["rank"]]
    if job == "ps" or (coordinated and job == "worker"):
        return _serve(tf, params, job, index, coordinated)
    try:
        return _coordinate(tf) if coordinated else _work(tf, params, job, index)
    finally:
        open(_done(params, params["rank"]), "w").close()


def _done(params, number):
    return os.path.join(params["folder"], "done-%d" % number)


def _coordinator(tf):
    """ClusterCoordinator, from TensorFlow 2.4 on."""
    coordinator = loopback.newest(tf.distribute, "coordinator")
    return getattr(coordinator, "ClusterCoordinator", None)


def _serve(tf, params, job, index, coordinated):
    server = tf.distribute.Server if coordinated else tf.compat.v1.train.Server
    cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
    serving = server(tf.train.ClusterSpec(cluster), job_name=job, task_index=index)
    asking = [0] if coordinated else [0, 1, 2]
    while not all(os.path.exists(_done(params, number)) for number in asking):
        time.sleep(_PAUSE)
    return {"served": serving.target}


def _coordinate(tf):
    """TensorFlow 2: the chief alone has a program, and hands its steps out."""
    made = loopback.newest(tf.distribute, "ParameterServerStrategy")
    strategy = made(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    coordinator = _coordinator(tf)(strategy)
    with strategy.scope():
        weight = tf.Variable(0.0)

    @tf.function
    def meet():
        """Add 1, and wait until another worker has done so, too."""
        weight.assign_add(1.0)
        seen = [weight.read_value()]
        return tf.while_loop(
            lambda seen: seen < 2.0,
            lambda seen: [weight.read_value()],
            seen,
            maximum_iterations=_READS,
        )[0]

    @tf.function
    def add(number):
        weight.assign_add(number)

    met = [coordinator.schedule(meet) for _each in range(2)]
    coordinator.join()
    for number in range(1, _ROUNDS + 1):
        coordinator.schedule(add, args=(tf.constant(float(number)),))
    coordinator.join()
    together = sum(float(coordinator.fetch(one)) >= 2.0 for one in met)
    alone = tf.Variable(0.0)
    alone.assign_add(1.0)
    return {
        "program": "ClusterCoordinator",
        "workers": together,
        "sum": float(weight.numpy()),
        "expected": 2.0 + sum(range(1, _ROUNDS + 1)),
        "place": str(weight.device),
        "alone_sum": float(alone.numpy()),
        "alone_place": str(alone.device),
    }


def _work(tf, params, job, index):
    """TensorFlow 1: every worker has the program, and the chief is one of them."""
    v1 = tf.compat.v1
    v1.disable_eager_execution()
    cluster = json.loads(os.environ["TF_CONFIG"])["cluster"]
    server = v1.train.Server(v1.train.ClusterSpec(cluster), job_name=job, task_index=index)
    made = v1.distribute.experimental.ParameterServerStrategy
    # Without a resolver it says nothing, reads no TF_CONFIG and trains alone: the control.
    strategy = made(tf.distribute.cluster_resolver.TFConfigClusterResolver())
    number = 10.0 ** params["rank"]
    expected = sum(10.0**place for place in range(3))
    with strategy.scope():
        weight = v1.get_variable("weight", initializer=0.0, use_resource=True)
        add = strategy.extended.call_for_each_replica(lambda: weight.assign_add(number).op)
    filters = ["/job:ps", "/job:%s/task:%d" % (job, index)]
    config = v1.ConfigProto(device_filters=filters)
    there = v1.is_variable_initialized(weight)
    until = time.monotonic() + _SECONDS
    with v1.Session(server.target, config=config) as session:
        if job == "chief":
            session.run(weight.initializer)
        while not session.run(there) and time.monotonic() < until:
            time.sleep(_PAUSE)
        session.run(add)
        seen = session.run(weight)
        while seen < expected and time.monotonic() < until:
            time.sleep(_PAUSE)
            seen = session.run(weight)
    with v1.Graph().as_default(), made().scope():
        alone = v1.get_variable("weight", initializer=0.0, use_resource=True)
        added = alone.assign_add(number)
        with v1.Session() as session:
            session.run(alone.initializer)
            alone_sum = float(session.run(added))
    return {
        "program": "tf.train.Server",
        "sum": float(seen),
        "expected": expected,
        "place": str(weight.device),
        "alone_sum": alone_sum,
        "alone_place": str(alone.device),
    }
