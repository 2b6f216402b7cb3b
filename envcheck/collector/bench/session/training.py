"""The training loop, the same for all of TensorFlow 1's models."""

from . import compiled, data, evidence, precision, reading, together
from .layers import SessionLayers

SCOPE = "model"


class SessionTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, tf, row, place, model):
        precision.check(tf, row, place)
        precision.switch_tf32(tf, row)
        self._tf, self._row, self._place, self._model = tf, row, place, model
        if row["compiled"]:
            compiled.write_down()
        self._job = together.job(tf, row, place)
        self.graph = graph = tf.Graph()
        # Of variables of the first kind, XLA compiles nothing.
        with graph.as_default(), tf.variable_scope("", use_resource=True):
            tf.set_random_seed(row["seed"])
            self._optimizer = None
            trained, loss = self._job.built(self._replica)
            self._last = tf.get_variable("last_loss", [], tf.float32, trainable=False)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            self.train_op = tf.group(trained, self._last.assign(loss), *updates)
            self._scale = precision.loss_scale(self._optimizer)
            self._global_step = tf.convert_to_tensor(tf.train.get_global_step())
            self.parameters = sum(one.shape.num_elements() for one in tf.trainable_variables())
            if hasattr(model, "OTHERS"):
                answers = self._answers()
                self.accuracy = lambda: float(self._session.run(answers))
            begin = [
                tf.global_variables_initializer(),
                tf.tables_initializer(),
                self._job.broadcast(),
            ]
        config = self._job.configured(precision.config(tf, row))
        self._session = tf.Session(graph=graph, config=config)
        for one in begin:
            if one is not None:
                self._session.run(one)

    def _replica(self):
        """(the operation that trains, the loss) of one device."""
        tf, row, model = self._tf, self._row, self._model
        layers = self._layers(True)
        inputs, targets = data.batches(tf, row, self._place, model, layers)
        self._batch = inputs + targets
        with tf.variable_scope(SCOPE):
            outputs = model.forward(tf, row, inputs, layers)
        loss = model.loss(tf, targets, outputs)
        if self._job.replicas > 1:
            loss /= self._job.replicas  # whose gradients are summed
        make = model.optimizer
        if row["steps"]:
            make = getattr(model, "compared_optimizer", make)
        optimizer = precision.wrapped(tf, row, self._job.distributed(make(tf)))
        trained = optimizer.minimize(loss, tf.train.get_or_create_global_step())
        self._optimizer = self._optimizer or optimizer
        return trained, tf.cast(loss, tf.float32)

    def _layers(self, training):
        return session_layers(self._tf, self._row, self._place, training)

    def _answers(self):
        """How many of the other samples are answered rightly, as a share."""
        tf, model = self._tf, self._model
        row = dict(self._row, steps=0)  # with no mistaken targets
        inputs, targets = data.kept(tf, row, model, model.OTHERS, self._layers(False))
        with tf.variable_scope(SCOPE, reuse=True):
            (logits,) = model.forward(tf, self._row, inputs, self._layers(False))
        right = tf.equal(tf.argmax(logits, -1), targets[0])
        return tf.reduce_mean(tf.cast(right, tf.float32))

    def run(self, steps):
        applied = self._applied()
        for _step in range(steps):
            self._session.run(self.train_op)
        self._session.run(self._last)
        return steps - (self._applied() - applied) if self._scale is not None else 0

    def _applied(self):
        """How many gradients were applied: the loss scale's optimizer counts no step that it skips."""
        return int(self._session.run(self._global_step)) if self._scale is not None else 0

    def loss(self):
        return float(self._session.run(self._last))

    def evidence(self):
        told = evidence.of_session(self._tf, self._session, self.train_op)
        if self._scale is not None:
            told["loss_scale"] = float(self._session.run(self._scale))
        told.update(self._job.evidence())
        if self._row["data"] != "synthetic":
            batch = self._row["batch"]
            told.update(reading.rates(self._session, self._batch, self.train_op, batch))
        told["tf32_bits"] = evidence.bits_of_tf32(self._tf, self._place, told["convolutions"] > 0)
        return told

    def memory(self):
        return evidence.memory(self._tf, self._session, self._place)


def session_layers(tf, row, place, training):
    """The layers of a row. On CPUs, batch normalisation of 16 bits is no operation of its own."""
    dtype = precision.dtype(tf, row)
    fused = place.device == "gpu" or dtype == tf.float32
    return SessionLayers(tf, row, training, dtype, fused)
