"""MirroredStrategy: a replica on every GPU, or on two made-up CPUs where there is none."""

import importlib
import os

from .running.records import CouldNotRun, NotApplicable
from .shared.distributed import loopback

SYSTEM = "mirrored"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 30.0
GPUS = 2
ON_CPU = "none"
_CPUS = 2
_NUMBERS = 1 << 18  # that are summed in one go


def run(tf, params, tell):
    distribute = getattr(tf, "distribute", None)
    if not hasattr(distribute, "MirroredStrategy"):
        raise NotApplicable("it has no tf.distribute.MirroredStrategy")
    told = loopback.config(os.environ)
    os.environ.pop("TF_CONFIG", None)  # else it waits for the cluster that this names
    os.environ.setdefault("NCCL_DEBUG", "VERSION")
    tf.compat.v1.enable_eager_execution()
    devices = _devices(tf, params["device"])
    with tell.trial("mirrored") as trial:
        trial["tf_config"] = told or None
        trial["nccl_kernels"] = _nccl_kernels()
        strategy = distribute.MirroredStrategy(devices)
        _reduce(tf, strategy, trial)
    with tell.trial("OneDeviceStrategy", control=True) as trial:
        _reduce(tf, distribute.OneDeviceStrategy(devices[0]), trial)


def _devices(tf, kind):
    config = tf.config.experimental
    if kind == "cpu":
        (cpu,) = config.list_physical_devices("CPU")[:1]
        halves = [config.VirtualDeviceConfiguration() for _each in range(_CPUS)]
        config.set_virtual_device_configuration(cpu, halves)
    devices = [device.name for device in config.list_logical_devices(kind.upper())]
    if len(devices) < 2:
        raise CouldNotRun("TensorFlow sees %d devices of two and more" % len(devices))
    return devices


def _reduce(tf, strategy, trial):
    """Replica number N, from 1, gives N to a sum, and adds N to a variable."""
    replicas = int(strategy.num_replicas_in_sync)
    expected = float(sum(range(1, replicas + 1)))
    with strategy.scope():
        weight = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM, dtype=tf.float32)

    def replica():
        context = tf.distribute.get_replica_context()
        number = tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0
        weight.assign_add(number)
        total = context.all_reduce(tf.distribute.ReduceOp.SUM, tf.fill([_NUMBERS], number))
        return tf.reduce_min(total), tf.reduce_max(total)

    start = getattr(strategy, "run", None) or strategy.experimental_run_v2
    mine = strategy.experimental_local_results
    least, most = tf.function(lambda: start(replica))()
    found = [(float(low), float(high)) for low, high in zip(mine(least), mine(most))]
    weights = mine(weight)
    trial["replicas"] = replicas
    trial["expected"] = expected
    trial["sum"] = found[0][1]
    trial["wrong"] = sum(one != (expected, expected) for one in found)
    trial["weights"] = sorted({str(float(one.numpy())) for one in weights})
    trial["variable"] = type(weight).__name__
    trial["devices"] = [str(one.device) for one in weights]
    reduction, implementation = _reduction(strategy, weight)
    trial["reduction"], trial["implementation"] = reduction or None, implementation or None


def _reduction(strategy, value):
    """What sums between the devices: ("CollectiveAllReduce", "NCCL"); "" where it cannot be told."""
    extended = strategy.extended
    for ask in (
        lambda: extended._get_cross_device_ops(value),
        lambda: extended._cross_device_ops or extended._inferred_cross_device_ops,
    ):
        try:
            found = ask()
        except Exception:
            continue
        if found is not None:
            options = getattr(found, "_options", None)
            told = getattr(options, "implementation", "")
            return type(found).__name__, str(getattr(told, "value", told))
    return "", ""


def _nccl_kernels():
    """How many kernels for NCCL's sum are in it; -1 where it cannot be told."""
    try:
        kernels = importlib.import_module("tensorflow.python.framework.kernels")
        return len(kernels.get_registered_kernels_for_op("NcclAllReduce").kernel)
    except Exception:
        return -1
