"""The training loop, the same for all of Keras' models: a step in a tf.function, called again and again."""

from ...kernels import framework_tensorflow
from ...kernels.failures import NotSupported
from .. import models
from . import graphs, precision
from .layers import KerasDraw, loss, model

_CHUNK = 1000  # test samples that go forward at once


def prepare(tf, row, place):
    """Everything that comes before the model. Raises NotSupported."""
    if place.device == "gpu":
        absent = framework_tensorflow.Eager(tf, "/GPU:0").absent()
        if absent:
            raise NotSupported(absent)
        _let_grow(tf)
    precision.prepare(tf, row)


def _let_grow(tf):
    """TensorFlow takes all of a GPU's memory otherwise, and rows that are compared live side by side."""
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


class KerasSamples(object):
    """Synthetic samples on the device: one batch, or an epoch from which batches are taken in turn.

    part, parts: of a job on several devices, each of which takes other batches of the epoch.
    """

    def __init__(self, tf, row, part=0, parts=1):
        self._tf, self._batch = tf, row["batch"]
        count = models.count(row)
        self.all = models.MODELS[row["model"]].samples(KerasDraw(tf, row), row, count)
        self.many = count > self._batch
        self._begin = tf.Variable(
            part * self._batch,
            dtype=tf.int64,
            trainable=False,
            aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
        )
        self._further = self._batch * parts

    def batch(self, replica=0):
        """The (inputs, targets) now."""
        if not self.many:
            return self.all
        tf = self._tf
        number = int(self.all[1][0].shape[0])
        begin = self._begin + tf.cast(replica, tf.int64) * self._batch
        places = (begin + tf.range(self._batch, dtype=tf.int64)) % number
        return tuple([tf.gather(one, places) for one in some] for some in self.all)

    def advance(self):
        if self.many:
            self._begin.assign_add(self._further)


class KerasModel(object):
    """What training and going forward have in common: the model, where it runs, what its graphs show."""

    replicas = 1  # in this process

    def __init__(self, tf, row, place):
        self._tf, self._row, self._place = tf, row, place
        self._device = "/GPU:0" if place.device == "gpu" else "/CPU:0"
        self._watched = self._last = None
        self._prepare()
        with self._scope():
            precision.seed(tf, row["seed"])
            self._samples = self._made_samples()
            layers = models.MODELS[row["model"]].layers(row)
            self.model = model(tf, row, layers, self._samples.batch()[0])
            self._step = self._made()
        variables = self.model.trainable_variables
        self.parameters = sum(_size(one.shape) for one in variables)

    def _prepare(self):
        """What comes before the model."""

    def _scope(self):
        """Where variables are made."""
        return self._tf.device(self._device)

    def _made_samples(self):
        return KerasSamples(self._tf, self._row)

    def outputs(self, inputs, training):
        return self.model(inputs if len(inputs) > 1 else inputs[0], training=training)

    def _run(self, steps):
        done = 0
        if self._watched is None:
            self._watched = graphs.Watched()
            self._last, done = self._watched.run(self._step), 1
        for _step in range(steps - done):
            self._last = self._step()

    def graph(self):
        """What shows in the step's graph."""
        if self._row["compiled"]:
            return graphs.compiled(self._step)
        return graphs.ran(self._watched, self._step)

    def evidence(self):
        found = self.graph()
        found["policy"] = precision.policy(self._row)
        found["tf32_bits"] = graphs.bits_of_tf32(self._tf, self._device)
        return found

    def memory(self):
        """The most that tensors took of a GPU. TensorFlow does not report what its allocator held."""
        ask = getattr(self._tf.config.experimental, "get_memory_info", None)  # 2.5
        if ask is None or self._place.device != "gpu":
            return {}
        peak = max(ask("GPU:%d" % number)["peak"] for number in range(self.replicas))
        return {"tensors_mib": int(peak) >> 20} if peak else {}


class KerasTraining(KerasModel):
    """A Training (collector/bench/__init__.py) on one device; jobs on several derive from it."""

    def __init__(self, tf, row, place):
        self._ran = self._applied = 0
        KerasModel.__init__(self, tf, row, place)
        if models.others(row):
            self.accuracy = self._accuracy

    def _made(self):
        self._optimizer = precision.optimizer(self._tf, self._row)
        self._scaling = precision.Scaling(self._tf, self._optimizer)
        for name in ("build", "_create_all_weights"):  # 2.11, 2.4: a step may be traced twice
            if hasattr(self._optimizer, name):
                getattr(self._optimizer, name)(self.model.trainable_variables)
                break
        return self._traced()

    def _traced(self):
        """The step in a graph."""

        def step():
            loss = self.train(*self._samples.batch())
            self._samples.advance()
            return loss

        return compiled(self._tf, step, self._row["compiled"])

    def _tape(self, tape):
        """The tape that gradients are taken from."""
        return tape

    def train(self, inputs, targets):
        """One step, as it is traced; the loss."""
        with self._tf.GradientTape() as tape:
            found = loss(self._tf, targets, self.outputs(inputs, True))
            # What replicas find is summed.
            scaled = self._scaling.scaled(found / self.replicas if self.replicas > 1 else found)
        variables = self.model.trainable_variables
        gradients = self._scaling.unscaled(self._tape(tape).gradient(scaled, variables))
        self._optimizer.apply_gradients(zip(gradients, variables))
        return found

    def run(self, steps):
        self._run(steps)
        before, self._applied = self._applied, self._scaling.applied()  # which waits for the last
        self._ran += steps
        return steps - (self._applied - before)

    def loss(self):
        return float(self._last.numpy())

    def _accuracy(self):
        tf, row = self._tf, dict(self._row, steps=0)  # without mistaken targets
        number, right = models.others(row), 0
        with tf.device(self._device):
            draw = KerasDraw(tf, row, other=True)
            inputs, (targets,) = models.MODELS[row["model"]].samples(draw, row, number)
            for start in range(0, number, _CHUNK):
                part = slice(start, start + _CHUNK)
                guessed = tf.argmax(self.outputs([inputs[0][part]], False), axis=-1)
                right += int(tf.reduce_sum(tf.cast(guessed == targets[part], tf.int64)))
        return right / float(number)

    def evidence(self):
        row, found = self._row, KerasModel.evidence(self)
        if row["compiled"] and row["way"] == "rewrite":  # which is not run on what XLA compiles
            found["hidden_by_compiler"] = True
        found["keras"] = str(getattr(self._tf.keras, "__version__", "") or self._tf.__version__)
        found["loss_scale"] = self._scaling.scale()
        found["skipped_steps"] = self._ran - self._applied
        names = {
            getattr(one.dtype, "name", None) or str(one.dtype)
            for one in self.model.trainable_variables
        }
        found["weights"] = ",".join(sorted(names))
        return found


def _size(shape):
    number = 1
    for length in shape:
        number *= int(length)
    return number
