"""The training loop, the same for all of Keras' models: a step in a tf.function, called again and again."""

from ...kernels import framework_tensorflow
from ...kernels.failures import NotSupported
from . import graphs, precision

_CHUNK = 1000  # samples that are guessed at once


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


def make(tf, row, model):
    """The model. In pure half its weights are those of FP32, rounded."""
    if row["precision"] != "half":
        return model.make(tf, row)
    precision.set_policy(tf, "float32")
    weights = model.make(tf, row).get_weights()
    precision.set_policy(tf, precision.policy(row))
    made = model.make(tf, row)
    made.set_weights([one.astype(old.dtype) for one, old in zip(weights, made.get_weights())])
    return made


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


def parameters(model):
    return sum(int(_size(one.shape)) for one in model.trainable_variables)


def _size(shape):
    number = 1
    for length in shape:
        number *= int(length)
    return number


def memory(tf, devices):
    """The most that tensors took of a GPU. TensorFlow does not tell what its allocator held."""
    ask = getattr(tf.config.experimental, "get_memory_info", None)  # 2.5
    if ask is None:
        return {}
    try:
        peak = max(ask(device)["peak"] for device in devices)
    except (ValueError, KeyError):  # a CPU, whose allocator counts nothing
        return {}
    return {"tensors_mib": int(peak) >> 20} if peak else {}


class KerasSamples(object):
    """Synthetic samples on the device: a batch of them, or an epoch that batches are taken from.

    part, parts: of a job on several devices, each of which takes other batches of the epoch.
    """

    def __init__(self, tf, row, model, device, part=0, parts=1):
        self._tf, self._batch = tf, row["batch"]
        self._epoch = model.epoch(row) if hasattr(model, "epoch") else 0
        with tf.device(device):
            self._all = model.samples(tf, row, self._epoch or self._batch)
            if self._epoch:
                self._begin = tf.Variable(part * self._batch, dtype=tf.int64, trainable=False)
                self._further = self._batch * parts

    def batch(self):
        """The next (inputs, targets), in a graph."""
        if not self._epoch:
            return self._all
        found = taken(self._tf, self._all, self._begin, self._batch)
        self._begin.assign_add(self._further)
        return found

    def first(self):
        if not self._epoch:
            return self._all
        return taken(self._tf, self._all, self._begin, self._batch)


def taken(tf, samples, begin, count):
    """So many of an epoch's samples, from one place on, and from its own beginning again."""
    number = samples[1].shape[0]
    places = (begin + tf.range(count, dtype=tf.int64)) % number
    return tuple(tf.gather(one, places) for one in samples)


class KerasTraining(object):
    """A Training (collector/bench/__init__.py) on one device; jobs on several are kinds of it."""

    replicas = 1  # in this process

    def __init__(self, tf, row, place, model):
        self._tf, self._row, self._place, self._file = tf, row, place, model
        self._device = "/GPU:0" if place.device == "gpu" else "/CPU:0"
        self._watched = self._last = None
        self._ran = self._applied = 0
        self._prepare()
        with self._scope():
            precision.seed(tf, row["seed"])
            self.model = make(tf, row, model)
            settings = model.SETTINGS
            if row["steps"]:
                settings = getattr(model, "COMPARED", settings)
            self._optimizer = precision.optimizer(tf, row, model.OPTIMIZER, settings)
            self._scaling = precision.Scaling(tf, self._optimizer)
            _build(self._optimizer, self.model.trainable_variables)
            self._step = self._traced()
        self.parameters = parameters(self.model)
        if hasattr(model, "others"):
            self.accuracy = self._accuracy

    def _prepare(self):
        """What comes before the model."""

    def _scope(self):
        """Where variables are made."""
        return self._tf.device(self._device)

    def _traced(self):
        """The step in a graph."""
        samples = KerasSamples(self._tf, self._row, self._file, self._device)
        return compiled(self._tf, lambda: self.train(*samples.batch()), self._row["compiled"])

    def _tape(self, tape):
        """The tape that gradients are taken from."""
        return tape

    def train(self, inputs, targets):
        """One step, as it is traced; the loss."""
        with self._tf.GradientTape() as tape:
            loss = self.loss_of(self.model(inputs, training=True), targets)
            # What replicas find is summed.
            scaled = self._scaling.scaled(loss / self.replicas if self.replicas > 1 else loss)
        variables = self.model.trainable_variables
        gradients = self._tape(tape).gradient(scaled, variables)
        gradients = self._scaling.unscaled(gradients)
        self._optimizer.apply_gradients(zip(gradients, variables))
        return loss

    def loss_of(self, outputs, targets):
        """The mean over a batch: computed in FP32, but where all is to be half."""
        tf = self._tf
        if self._row["precision"] != "half":
            many = isinstance(outputs, (list, tuple))
            outputs = (
                [tf.cast(one, tf.float32) for one in outputs]
                if many
                else tf.cast(outputs, tf.float32)
            )
        return tf.reduce_mean(self._file.loss(tf, targets, outputs))

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

    def _accuracy(self):
        tf, others = self._tf, self._file.others(self._row)
        right = 0
        with tf.device(self._device):
            inputs, targets = self._file.samples(tf, dict(self._row, steps=0), others)
            for start in range(0, others, _CHUNK):
                outputs = self.model(inputs[start : start + _CHUNK], training=False)
                guessed = tf.argmax(outputs, axis=-1)
                right += int(
                    tf.reduce_sum(tf.cast(guessed == targets[start : start + _CHUNK], tf.int64))
                )
        return right / float(others)

    def evidence(self):
        row = self._row
        found = self.graph()
        if row["compiled"] and row["way"] == "rewrite":  # which is not run on what XLA compiles
            found["hidden_by_compiler"] = True
        found["policy"] = precision.policy(row)
        found["keras"] = str(getattr(self._tf.keras, "__version__", "") or self._tf.__version__)
        found["loss_scale"] = self._scaling.scale()
        found["skipped_steps"] = self._ran - self._applied
        found["weights"] = ",".join(
            sorted({_name(one.dtype) for one in self.model.trainable_variables})
        )
        found["tf32_bits"] = graphs.tf32_bits(self._tf, self._device)
        return found

    def graph(self):
        """What shows in the step's graph."""
        if self._row["compiled"]:
            return graphs.compiled(self._step)
        return graphs.ran(self._watched, self._step)

    def memory(self):
        if self._place.device != "gpu":
            return {}
        return memory(self._tf, ["GPU:%d" % number for number in range(self.replicas)])


def _build(optimizer, variables):
    """Make the optimizer's variables, which a step that is traced more than once must not."""
    for name in ("build", "_create_all_weights"):  # 2.11, 2.4
        if hasattr(optimizer, name):
            getattr(optimizer, name)(variables)
            return


def _name(dtype):
    return getattr(dtype, "name", None) or str(dtype)
