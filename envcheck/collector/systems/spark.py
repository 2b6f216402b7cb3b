"""TensorFlow on Spark: a Spark of two executors on this machine, which TFCluster makes one cluster of."""

import argparse
import glob
import importlib
import json
import os
import shutil
import sys
import tempfile
import time

from .running.records import CouldNotRun
from .shared.distributed import loopback

SYSTEM = "spark"
FRAMEWORKS = ("tensorflow",)
MODULES = ("pyspark", "tensorflowonspark")
DEADLINE = 110.0  # two JVMs and three imports of TensorFlow
ON_CPU = "always"
BY_RANKS = True
_EXECUTORS = 2
_MEMORY = 1024  # MiB of each
_SECONDS = 90.0
_ENDING = 5.0
_PAUSE = 0.02
_LONGEST = 70  # characters of the temporary directory, below which its sockets' paths still fit


def run(_framework, params, tell):
    began = time.monotonic()
    if not _java():
        raise CouldNotRun(
            "there is no java in PATH, and none in JAVA_HOME: Spark needs Java 8, 11 or 17"
        )
    if len(tempfile.gettempdir()) > _LONGEST:
        raise CouldNotRun(
            "TMPDIR is too long for the sockets in it: set it to a directory of a short name"
        )
    loopback.need()
    with tempfile.TemporaryDirectory() as folder:
        pyspark = importlib.import_module("pyspark")
        os.environ.update(_environ(folder, os.path.dirname(pyspark.__file__)))
        cluster = importlib.import_module("tensorflowonspark.TFCluster")
        context = None
        tell.begin(time.monotonic() - began)
        try:
            with tell.trial("without a chief", control=True) as trial:
                context = _context(pyspark, folder)
                trial["spark"] = str(context.version)
                answers = _both(cluster, context, _looker(), None, os.path.join(folder, "alone"))
                trial["configured"] = sum(bool(one["tf_config"]) for one in answers)
                trial["executors"] = len(answers)
            if context is None:
                return
            with tell.trial("cluster") as trial:
                util = importlib.import_module("tensorflowonspark.util")
                trial["proxy"] = loopback.proxy(os.environ, util.get_ip_address()) or None
                answers = _both(cluster, context, _train(), "chief", os.path.join(folder, "all"))
                first = answers[0]
                tell.version(first["version"])
                trial["executors"] = len(answers)
                trial["configured"] = sum(bool(one["tf_config"]) for one in answers)
                for name in ("replicas", "sum"):
                    trial[name] = first[name]
                trial["expected"] = float(sum(range(1, _EXECUTORS + 1)))
                trial["differing"] = sum(one["sum"] != first["sum"] for one in answers)
                trial["weights"] = sorted({str(one["weight"]) for one in answers})
        finally:
            _end(context)


def _java():
    home = os.environ.get("JAVA_HOME")
    own = os.path.join(home, "bin", "java") if home else ""
    return own if own and os.access(own, os.X_OK) else shutil.which("java")


def _environ(folder, wheel):
    """What keeps Spark's files in the folder, and Spark on the loopback."""
    home = os.path.join(folder, "spark")
    os.mkdir(home)
    for path in glob.glob(os.path.join(wheel, "*")):  # its executors work in SPARK_HOME/work
        if os.path.basename(path) != "work":
            os.symlink(path, os.path.join(home, os.path.basename(path)))
    os.mkdir(os.path.join(folder, "conf"))
    java = "-XX:-UsePerfData -Djava.io.tmpdir=%s" % folder
    return {
        "SPARK_HOME": home,
        "SPARK_CONF_DIR": os.path.join(folder, "conf"),
        "SPARK_LOCAL_DIRS": folder,
        "SPARK_LOCAL_IP": loopback.HOST,
        "SPARK_LOCAL_HOSTNAME": loopback.HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONDONTWRITEBYTECODE": "1",
        "JAVA_TOOL_OPTIONS": ("%s %s" % (os.environ.get("JAVA_TOOL_OPTIONS", ""), java)).strip(),
        "TFOS_SERVER_HOST": loopback.HOST,
    }


def _context(pyspark, folder):
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": loopback.HOST,
        "spark.driver.bindAddress": loopback.HOST,
        "spark.local.dir": folder,
        "spark.task.maxFailures": "1",
        "spark.dynamicAllocation.enabled": "false",
        "spark.executor.memory": "%dm" % _MEMORY,
    }
    conf = pyspark.SparkConf(loadDefaults=False).setAppName("envcheck")
    conf.setMaster("local-cluster[%d,1,%d]" % (_EXECUTORS, _MEMORY))
    for name, value in settings.items():
        conf.set(name, value)
    return pyspark.SparkContext(conf=conf)


def _both(cluster, context, work, chief, folder):
    """What each executor's work has written into the folder, by their number."""
    os.mkdir(folder)
    given = argparse.Namespace(num_gpus=0, folder=folder)
    mode = cluster.InputMode.TENSORFLOW
    try:
        cluster.run(
            context,
            work,
            given,
            _EXECUTORS,
            0,
            False,
            mode,
            master_node=chief,
            reservation_timeout=int(_SECONDS),
        )
    except SystemExit:  # so it ends a program whose executors fail
        raise RuntimeError(cluster.tf_status.get("error") or "TFCluster ended the program")
    paths = [os.path.join(folder, "%d.json" % number) for number in range(_EXECUTORS)]
    until = time.monotonic() + _SECONDS
    while not all(os.path.exists(path) for path in paths):
        if cluster.tf_status.get("error"):
            raise RuntimeError(cluster.tf_status["error"])
        if time.monotonic() > until:
            raise RuntimeError("no answer of both executors within %g s" % _SECONDS)
        time.sleep(_PAUSE)
    answers = []
    for path in paths:
        with open(path) as file:
            answers.append(json.load(file))
    until = time.monotonic() + _ENDING
    while context.statusTracker().getActiveJobsIds() and time.monotonic() < until:
        time.sleep(_PAUSE)
    return answers


def _writer():
    """A function of its own for executors, which have no envcheck: it goes there with all that it needs."""

    def write(folder, number, answer):
        import json
        import os

        draft = os.path.join(folder, "%d.draft" % number)
        with open(draft, "w") as file:
            json.dump(answer, file)
        os.rename(draft, os.path.join(folder, "%d.json" % number))

    return write


def _looker():
    write = _writer()

    def look(args, node):
        import os

        write(args.folder, node.executor_id, {"tf_config": os.environ.get("TF_CONFIG", "")})

    return look


def _train():
    write = _writer()

    def train(args, node):
        import importlib
        import os

        tf = importlib.import_module("tensorflow")
        number = node.executor_id + 1.0
        made = getattr(tf.distribute, "MultiWorkerMirroredStrategy", None)
        strategy = (made or tf.distribute.experimental.MultiWorkerMirroredStrategy)()
        with strategy.scope():
            weight = tf.Variable(number, aggregation=tf.VariableAggregation.SUM, dtype=tf.float32)

        def replica():
            given = tf.constant(number)
            weight.assign_add(given)
            context = tf.distribute.get_replica_context()
            return context.all_reduce(tf.distribute.ReduceOp.SUM, given)

        start = getattr(strategy, "run", None) or strategy.experimental_run_v2
        total = tf.function(lambda: start(replica))()
        mine = strategy.experimental_local_results
        answer = {
            "tf_config": os.environ.get("TF_CONFIG", ""),
            "version": tf.__version__,
            "replicas": int(strategy.num_replicas_in_sync),
            "sum": float(mine(total)[0].numpy()),
            "weight": float(mine(weight)[0].numpy()),
        }
        write(args.folder, node.executor_id, answer)

    return train


def _end(context):
    """Spark's JVM ends where its standard input does."""
    if context is None:
        return
    context.stop()
    process = getattr(context._gateway, "proc", None)
    if process is not None:
        process.stdin.close()
        process.wait(_ENDING)
