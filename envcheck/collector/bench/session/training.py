"""The loop of TensorFlow 1's users, the same for all models."""

from .. import models
from . import evidence, settings
from .layers import SessionDraw, forward, loss


class SessionTraining(object):
    """A Training (collector/bench/__init__.py)."""

    def __init__(self, tf, row, place):
        settings.check(tf, row, place)
        settings.switch_tf32(tf, row)
        self._tf, self._row, self._place = tf, row, place
        model = models.MODELS[row["model"]]
        if row["compiled"]:
            evidence.write_down_modules()
        graph = tf.Graph()
        # Of variables of the first kind, XLA compiles nothing.
        with graph.as_default(), tf.variable_scope("", use_resource=True):
            tf.set_random_seed(row["seed"])
            samples = model.samples(SessionDraw(tf, row), row)
            # In variables: Grappler would compute what depends on constants once and for all.
            inputs, targets = [[_kept(tf, one) for one in some] for some in samples]
            found = tf.cast(loss(tf, targets, forward(tf, row, inputs)), tf.float32)
            self.parameters = sum(one.shape.num_elements() for one in tf.trainable_variables())
            optimizer = settings.optimizer(tf, row, model)
            trained = optimizer.minimize(found, tf.train.get_or_create_global_step())
            self._scale = settings.loss_scale(optimizer)
            self._global_step = tf.convert_to_tensor(tf.train.get_global_step())
            self._loss = tf.get_variable("last_loss", [], tf.float32, trainable=False)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            self.step = tf.group(trained, self._loss.assign(found), *updates)
            begin = tf.global_variables_initializer()
        self._session = tf.Session(graph=graph, config=settings.config(tf, row))
        self._session.run(begin)

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
        if self._scale is not None:
            found["loss_scale"] = float(self._session.run(self._scale))
        convolved = found["convolutions"] > 0
        found["tf32_bits"] = evidence.bits_of_tf32(self._tf, self._place, convolved)
        return found

    def memory(self):
        return evidence.memory(self._tf, self._session, self._place)


def _kept(tf, value):
    variables = [tf.GraphKeys.GLOBAL_VARIABLES]
    return tf.identity(tf.Variable(value, trainable=False, collections=variables))
