"""MirroredStrategy: a replica on every GPU, or on two made-up CPUs where there is none."""

import contextlib
import os

from .running.records import CouldNotRun, NotApplicable
from .shared import replicas

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
    os.environ.pop("TF_CONFIG", None)  # else it waits for the cluster that this names
    tf.compat.v1.enable_eager_execution()
    devices = _devices(tf, params["device"])
    with tell.trial("mirrored") as trial:
        strategy = distribute.MirroredStrategy(devices)
        weight = _reduce(tf, strategy, trial)
        trial["reduction"], trial["implementation"] = _reduction(strategy, weight)
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

    def number(context):
        return tf.cast(context.replica_id_in_sync_group, tf.float32) + 1.0

    count = int(strategy.num_replicas_in_sync)
    expected = float(sum(range(1, count + 1)))
    weight, values, sums = replicas.reduce(tf, strategy, 0.0, number, _NUMBERS)
    trial["replicas"], trial["expected"], trial["sum"] = count, expected, sums[0][1]
    trial["wrong"] = sum(one != (expected, expected) for one in sums)
    trial["weights"] = sorted(set(map(str, values)))
    return weight


def _reduction(strategy, value):
    """What sums between the devices: ("CollectiveAllReduce", "NCCL"); None where it does not show."""
    extended, found = strategy.extended, None
    with contextlib.suppress(Exception):
        found = extended._get_cross_device_ops(value)
    for name in ("_cross_device_ops", "_inferred_cross_device_ops"):
        found = found or getattr(extended, name, None)
    implementation = getattr(getattr(found, "_options", None), "implementation", None)
    name = None if found is None else type(found).__name__
    return name, getattr(implementation, "value", implementation)
