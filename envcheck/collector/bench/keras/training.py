"""The training loop, the same for all of Keras' models: a step in a tf.function, called again and again."""

from ...kernels import framework_tensorflow
from ...kernels.failures import NotSupported
from .. import models
from . import graphs, precision
from .layers import KerasDraw, loss, model


def prepare(tf, row, place):
    """Everything that comes before the model. Raises NotSupported."""
    if place.device == "gpu":
        absent = framework_tensorflow.Eager(tf, "/GPU:0").absent()
        if absent:
            raise NotSupported(absent)
        _let_grow(tf)
    if row["together"] and (row["together"] != "mirrored" or row["compiled"]):
        words = "with XLA" if row["compiled"] else "in Keras"
        raise NotSupported("%s is not run %s" % (row["together"], words))
    precision.prepare(tf, row)


def _let_grow(tf):
    """TensorFlow takes all of a GPU's memory otherwise."""
    for gpu in tf.config.experimental.list_physical_devices("GPU"):
        try:
            tf.config.experimental.set_memory_growth(gpu, True)
        except RuntimeError:  # it is in use already
            return


def compiled(tf, function, wanted):
    """The function in a graph, by XLA where that is wanted."""
    if not wanted:
        return tf.function(function)
    for name in ("jit_compile", "experimental_compile"):  # before 2.5 it had the second name
        try:
            return tf.function(function, **{name: True})
        except TypeError:
            continue
    raise NotSupported("tf.function of TensorFlow %s has no jit_compile" % tf.__version__)


class KerasTraining(object):
    """A Training (collector/bench/__init__.py) on one device."""

    replicas = 1

    def __init__(self, tf, row, place):
        self._tf, self._row, self._place = tf, row, place
        self._device = "/GPU:0" if place.device == "gpu" else "/CPU:0"
        self._watched = self._last = None
        self._ran = self._applied = 0
        described = models.MODELS[row["model"]]
        with self._scope():
            precision.seed(tf, row["seed"])
            self._samples = described.samples(KerasDraw(tf, row), row)
            self.model = model(tf, row, described.layers(row), self._samples[0])
            self._optimizer = precision.optimizer(tf, row)
            self._scaling = precision.Scaling(tf, self._optimizer)
            for name in ("build", "_create_all_weights"):  # 2.11, 2.4: a step may be traced twice
                if hasattr(self._optimizer, name):
                    getattr(self._optimizer, name)(self.model.trainable_variables)
                    break
            self._step = self._traced()
        variables = self.model.trainable_variables
        self.parameters = sum(_size(one.shape) for one in variables)

    def _scope(self):
        """Where variables are made."""
        return self._tf.device(self._device)

    def _traced(self):
        """The step in a graph."""
        return compiled(self._tf, self.train, self._row["compiled"])

    def train(self):
        """One step, as it is traced; the loss."""
        inputs, targets = self._samples
        with self._tf.GradientTape() as tape:
            outputs = self.model(inputs if len(inputs) > 1 else inputs[0], training=True)
            found = loss(self._tf, targets, outputs)
            # What replicas find is summed.
            scaled = self._scaling.scaled(found / self.replicas if self.replicas > 1 else found)
        variables = self.model.trainable_variables
        gradients = self._scaling.unscaled(tape.gradient(scaled, variables))
        self._optimizer.apply_gradients(zip(gradients, variables))
        return found

    def run(self, steps):
        done = 0
        if self._watched is None:
            self._watched = graphs.Watched()
            self._last, done = self._watched.run(self._step), 1
        for _step in range(steps - done):
            self._last = self._step()
        before, self._applied = self._applied, self._scaling.applied()  # which waits for the last
        self._ran += steps
        return steps - (self._applied - before)

    def loss(self):
        return float(self._last.numpy())

    def evidence(self):
        row, tf = self._row, self._tf
        step = self._step
        found = graphs.compiled(step) if row["compiled"] else graphs.ran(self._watched, step)
        found["policy"] = precision.policy(row)
        found["tf32_bits"] = graphs.bits_of_tf32(tf, self._device)
        found["keras"] = str(getattr(tf.keras, "__version__", "") or tf.__version__)
        found["loss_scale"] = self._scaling.scale()
        found["skipped_steps"] = self._ran - self._applied
        return found

    def memory(self):
        """The most that tensors took of a GPU. TensorFlow does not report what its allocator held."""
        ask = getattr(self._tf.config.experimental, "get_memory_info", None)  # 2.5
        if ask is None or self._place.device != "gpu":
            return {}
        peak = max(ask("GPU:%d" % number)["peak"] for number in range(self.replicas))
        return {"tensors_mib": int(peak) >> 20} if peak else {}


class MirroredTraining(KerasTraining):
    """A replica on each GPU by MirroredStrategy; on two made-up CPUs, where a test wants them."""

    def __init__(self, tf, row, place):
        device, self.replicas = place.device.upper(), max(2, place.gpus)
        if device == "CPU":
            config = tf.config.experimental
            (cpu,) = config.list_physical_devices("CPU")[:1]
            parts = [config.VirtualDeviceConfiguration() for _each in range(self.replicas)]
            config.set_virtual_device_configuration(cpu, parts)
        names = ["/%s:%d" % (device, number) for number in range(self.replicas)]
        self._strategy = tf.distribute.MirroredStrategy(names)
        KerasTraining.__init__(self, tf, row, place)

    def _scope(self):
        return self._strategy.scope()

    def _traced(self):
        tf, strategy = self._tf, self._strategy
        on_each = getattr(strategy, "run", None) or strategy.experimental_run_v2

        def step():
            with strategy.scope():
                return strategy.reduce(tf.distribute.ReduceOp.MEAN, on_each(self.train), axis=None)

        return tf.function(step)

    def evidence(self):
        found = KerasTraining.evidence(self)
        found["replicas"] = int(self._strategy.num_replicas_in_sync)
        return found


def _size(shape):
    number = 1
    for length in shape:
        number *= int(length)
    return number
