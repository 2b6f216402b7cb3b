"""The loop of TensorFlow 1's users, the same for all models: training, or going forward alone."""

from .. import models
from . import evidence, settings, tensorrt
from .layers import SessionDraw, forward, loss


class SessionTraining(object):
    """A Training (collector/bench/__init__.py), which goes forward alone where the row does."""

    def __init__(self, tf, row, place):
        settings.check(tf, row, place)
        settings.switch_tf32(tf, row)
        self._tf, self._row, self._place = tf, row, place
        self._model = models.MODELS[row["model"]]
        self._hvd = settings.job(row, place)
        self._engines = self._scale = None
        if row["compiled"]:
            evidence.write_down_modules()
        converted = tensorrt.convert(tf, row) if row["tensorrt"] else None
        self.graph = tf.Graph()
        # Of variables of the first kind, XLA compiles nothing.
        with self.graph.as_default(), tf.variable_scope("", use_resource=True):
            tf.set_random_seed(row["seed"])
            inputs, targets = _batches(tf, row, self._model)
            if converted is None:
                outputs = forward(tf, row, inputs, row["train"])
                variables = tf.trainable_variables()
                self.parameters = sum(one.shape.num_elements() for one in variables)
            else:
                outputs = converted.outputs(tf, inputs)
                self.parameters, self._engines = converted.parameters, converted.engines
            self._loss = tf.cast(loss(tf, targets, outputs), tf.float32)
            self.step = self._trained() if row["train"] else self._used(outputs)
            if row["train"] and self._model.others:
                answers = self._answers()
                self.accuracy = lambda: float(self._session.run(answers))
            begin = [tf.global_variables_initializer()]
            if self._hvd is not None:
                begin.append(self._hvd.broadcast_global_variables(0))
        config = settings.config(tf, row)
        if self._hvd is not None and place.device == "gpu" and len(place.gpus) > 1:
            config.gpu_options.visible_device_list = str(self._hvd.local_rank())
        self._session = tf.Session(graph=self.graph, config=config)
        for one in begin:
            self._session.run(one)

    def _trained(self):
        """The operation that trains, and keeps the loss."""
        tf = self._tf
        optimizer = settings.optimizer(tf, self._row, self._model)
        trained = optimizer.minimize(self._loss, tf.train.get_or_create_global_step())
        self._scale = settings.loss_scale(optimizer)
        self._global_step = tf.convert_to_tensor(tf.train.get_global_step())
        last = tf.get_variable("last_loss", [], tf.float32, trainable=False)
        kept, self._loss = last.assign(self._loss), last
        return tf.group(trained, kept, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))

    def _used(self, outputs):
        """An operation that needs every output: Grappler removes what nothing needs."""
        tf = self._tf
        most = tf.get_variable("most", [], tf.float32, trainable=False)
        used = most.assign(tf.add_n([tf.cast(tf.reduce_max(one), tf.float32) for one in outputs]))
        return tf.group(used, *tf.get_collection(tf.GraphKeys.UPDATE_OPS))

    def _answers(self):
        """The share of the test samples that are answered rightly."""
        tf, row = self._tf, dict(self._row, steps=0)  # without mistaken targets
        draw = SessionDraw(tf, row, other=True)
        inputs, targets = _kept(tf, self._model.samples(draw, row, models.others(row)))
        with tf.variable_scope("", reuse=True):
            (logits,) = forward(tf, row, inputs, False)
        right = tf.equal(tf.argmax(logits, -1), targets[0])
        return tf.reduce_mean(tf.cast(right, tf.float32))

    def run(self, steps):
        applied = self._applied()
        for _step in range(steps):
            self._session.run(self.step)  # which returns when the device has done it
        return steps - (self._applied() - applied) if self._scale is not None else 0

    def _applied(self):
        """How many gradients were applied: the loss scale's optimizer counts no step that it skips."""
        return int(self._session.run(self._global_step)) if self._scale is not None else 0

    def loss(self):
        return float(self._session.run(self._loss))

    def evidence(self):
        found = evidence.of_session(self._tf, self._session, self.step)
        if self._engines is not None:
            found["tensorrt_engines"] = self._engines
        if self._scale is not None:
            found["loss_scale"] = float(self._session.run(self._scale))
        if self._hvd is not None:
            found.update(ranks=int(self._hvd.size()), rank=int(self._hvd.rank()))
        convolved = found["convolutions"] > 0
        found["tf32_bits"] = evidence.bits_of_tf32(self._tf, self._place, convolved)
        return found

    def memory(self):
        return evidence.memory(self._tf, self._session, self._place)


def _kept(tf, samples):
    """In variables: Grappler would compute what depends on constants once and for all."""
    return [[tf.identity(_variable(tf, one)) for one in some] for some in samples]


def _variable(tf, value):
    return tf.Variable(value, trainable=False, collections=[tf.GraphKeys.GLOBAL_VARIABLES])


def _batches(tf, row, model):
    """(inputs, targets): tensors with the next batch of an epoch at every step, or always with the same."""
    batch, count = row["batch"], models.count(row)
    samples = model.samples(SessionDraw(tf, row), row, count)
    if count == batch:
        return _kept(tf, samples)
    number = count // batch
    place = _variable(tf, tf.zeros([], tf.int64))
    now = place.read_value()
    taken = []
    for some in samples:
        shaped = [tf.reshape(one, [number, batch] + one.shape.as_list()[1:]) for one in some]
        taken.append([tf.gather(_variable(tf, one), now) for one in shaped])
    with tf.control_dependencies([one for some in taken for one in some]):
        after = tf.where(now + 1 < number, now + 1, tf.zeros_like(now))
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, place.assign(after))
    return taken
