"""A row's precision in Keras: its policy, its optimizer's loss scale, and TF32."""

import random

from ...kernels.failures import NotSupported
from ..models import MODELS, MOMENTUM


def prepare(tf, row):
    """Everything that is to be switched before the model is made. Raises NotSupported."""
    if str(tf.__version__).startswith("1."):
        raise NotSupported("TensorFlow %s is trained in sessions" % tf.__version__)
    keras = tf.keras
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    if callable(backend) and backend() != "tensorflow":
        raise NotSupported("Keras runs on %s here (KERAS_BACKEND)" % backend())
    _set_tf32(tf, row["precision"])
    set_policy(tf, policy(row))
    seed(tf, row["seed"])


def seed(tf, number):
    """From here on, the same weights come out."""
    together = getattr(tf.keras.utils, "set_random_seed", None)  # 2.7
    if together is not None:
        together(number)
    else:
        random.seed(number)
        tf.random.set_seed(number)


def policy(row):
    """The name of the row's policy."""
    return "mixed_" + row["half"] if row["precision"] == "amp" else "float32"


def set_policy(tf, name):
    mixed = getattr(tf.keras, "mixed_precision", None)
    if hasattr(mixed, "set_global_policy"):
        change = mixed.set_global_policy
    else:
        change = getattr(getattr(mixed, "experimental", None), "set_policy", None)  # to 2.3
    if change is None:
        raise NotSupported("TensorFlow %s has no policies for mixed precision" % tf.__version__)
    try:
        change(name)
    except (ValueError, TypeError) as error:
        raise NotSupported("no policy %s: %s" % (name, error))


def optimizer(tf, row):
    """The row's optimizer, in its loss scale where it has one."""
    model = MODELS[row["model"]]
    kind = {"adam": "Adam", "momentum": "SGD"}[model.optimizer]
    options = {"learning_rate": model.rate}
    if kind == "SGD":
        options["momentum"] = MOMENTUM
    make = getattr(tf.keras.optimizers, kind)
    try:
        # Keras 2.11 to 2.15 would have XLA compile the update on a GPU, unasked.
        made = make(jit_compile=False, **options)
    except (TypeError, ValueError):  # other versions compile nothing by themselves
        made = make(**options)
    if row["half"] != "float16":
        return made
    mixed = getattr(tf.keras, "mixed_precision", None)
    if hasattr(mixed, "LossScaleOptimizer"):  # 2.4
        return mixed.LossScaleOptimizer(made)
    older = getattr(getattr(mixed, "experimental", None), "LossScaleOptimizer", None)
    if older is None:
        raise NotSupported("TensorFlow %s has no LossScaleOptimizer" % tf.__version__)
    return older(made, loss_scale="dynamic")


class Scaling(object):
    """How an optimizer of any version scales a loss."""

    def __init__(self, tf, optimizer):
        self._optimizer = optimizer
        inner = getattr(optimizer, "inner_optimizer", None)
        if inner is None:  # before 2.4
            inner = getattr(optimizer, "_optimizer", None)
        self._steps = None
        if inner is not None and hasattr(optimizer, "get_scaled_loss"):
            self._steps = _counted(tf, inner)
        self._inner = inner if inner is not None else optimizer

    def scaled(self, loss):
        for name in ("get_scaled_loss", "scale_loss"):  # Keras 2, Keras 3
            if hasattr(self._optimizer, name):
                return getattr(self._optimizer, name)(loss)
        return loss

    def unscaled(self, gradients):
        """Keras 3 does it while it applies them."""
        if hasattr(self._optimizer, "get_unscaled_gradients"):
            return self._optimizer.get_unscaled_gradients(gradients)
        return gradients

    def applied(self):
        """How many steps changed the weights: those with gradients that are no number do not."""
        steps = self._steps if self._steps is not None else self._inner.iterations
        return int(steps.numpy())

    def scale(self):
        """The loss scale now; None where there is none."""
        for name in ("dynamic_scale", "loss_scale"):  # Keras 3, Keras 2
            value = getattr(self._optimizer, name, None)
            if value is not None:
                value = value() if callable(value) else value
                value = getattr(value, "value", value)  # of Keras 3's own variables
                return float(value.numpy() if hasattr(value, "numpy") else value)
        return None


def _counted(tf, inner):
    """A variable in which the applied steps are counted. Keras 2 has its iterations count the others, too."""
    steps = tf.Variable(
        0,
        dtype=tf.int64,
        trainable=False,
        aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA,
    )
    plain = inner.apply_gradients

    def apply_gradients(*given, **named):
        steps.assign_add(1)
        return plain(*given, **named)

    inner.apply_gradients = apply_gradients
    return steps


def _set_tf32(tf, precision):
    if precision not in ("fp32", "tf32"):
        return
    switch = getattr(tf.config.experimental, "enable_tensor_float_32_execution", None)
    if switch is not None:
        switch(precision == "tf32")
    elif precision == "tf32":
        raise NotSupported("TensorFlow %s has no switch for TF32" % tf.__version__)
