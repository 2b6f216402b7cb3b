"""AMP in Keras: the types in which a training step computes under a mixed policy, and its loss scale.

The step is the one that ``fit`` runs. Keras 2 belongs to TensorFlow up to 2.15, Keras 3 comes beside it from
2.16 on; TensorFlow 2.1 to 2.3 have the policies among what is experimental.
"""

from ..kernels.failures import NotSupported
from .running import records

SYSTEM = "amp-keras"
FRAMEWORK = "tensorflow"
DEADLINE = 30.0

_HALVES = {"mixed_float16": 19, "mixed_bfloat16": 14}  # DT_HALF, DT_BFLOAT16
_CONVOLUTIONS = ("Conv2D", "Conv2DBackpropFilter", "Conv2DBackpropInput")
_PRODUCTS = ("MatMul", "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3", "_FusedMatMul")
_FUSED = ("_FusedConv2D",)
_INFINITE = 1e7  # times the inputs: no number of 16 bits


def run(tf, params, tell):
    if str(tf.__version__).startswith("1."):
        raise records.NotApplicable(
            "Keras has mixed policies from TensorFlow 2.1 on; AMP here is the graph rewrite"
        )
    keras = tf.keras
    mixed = _policies(keras)
    if mixed is None:
        raise records.NotApplicable("Keras has mixed policies from TensorFlow 2.1 on")
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    if callable(backend) and backend() != "tensorflow":
        raise records.NotApplicable("Keras runs on %s here (KERAS_BACKEND)" % backend())
    if params["device"] == "gpu" and not tf.config.experimental.list_physical_devices("GPU"):
        raise records.CouldNotRun("tf.config.list_physical_devices('GPU') is empty")
    for policy in ("float32", "mixed_float16", "mixed_bfloat16"):
        with tell.trial(policy, control=policy == "float32") as trial:
            trial["keras"] = getattr(keras, "__version__", None) or tf.__version__
            with _Policy(mixed, policy):
                _train(tf, policy, trial)


def _policies(keras):
    """The module that sets policies; None where there is none."""
    mixed = getattr(keras, "mixed_precision", None)
    if hasattr(mixed, "set_global_policy"):
        return mixed
    mixed = getattr(mixed, "experimental", None)
    return mixed if hasattr(mixed, "set_policy") else None


class _Policy(object):
    """``with _Policy(mixed, name):`` everything made inside has it."""

    def __init__(self, mixed, name):
        self._set = getattr(mixed, "set_global_policy", None) or mixed.set_policy
        self._before = mixed.global_policy()
        self._name = name

    def __enter__(self):
        try:
            self._set(self._name)
        except (ValueError, TypeError) as error:
            raise NotSupported("no policy %s: %s" % (self._name, error))

    def __exit__(self, *_raised):
        self._set(self._before)


def _train(tf, policy, trial):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Conv2D(16, 3, padding="same"), layers.Flatten(), layers.Dense(8)]
    )
    model.build((None, 8, 8, 8))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    optimizer = model.optimizer
    x, y = tf.ones([8, 8, 8, 8]) * 0.05, tf.ones([8, 8])
    step = tf.function(_stepper(tf, model, policy))
    if hasattr(optimizer, "build"):  # makes variables, which a traced step must not
        optimizer.build(model.trainable_variables)
    nodes = _nodes(step.get_concrete_function(x, y).graph.as_graph_def())
    half = _HALVES.get(policy)
    for name, kinds in (("convolutions", _CONVOLUTIONS + _FUSED), ("products", _PRODUCTS)):
        types = [kind for what, kind in nodes if what in kinds]
        trial[name] = len(types)
        if half is None:
            trial[name + "_half"] = sum(kind in _HALVES.values() for kind in types)
        else:
            trial[name + "_half"] = types.count(half)
    trial["variables"] = ", ".join(sorted({_type_name(v.dtype) for v in model.weights}))
    if getattr(model, "jit_compile", None) is not None:
        trial["jit_compile"] = bool(model.jit_compile)
    _note_scale(trial, "scale", optimizer)
    trial["moved_by_step"] = _moves(model, step, x, y)
    _note_scale(trial, "scale_after_step", optimizer)
    if _scale(optimizer) is not None:
        trial["moved_by_overflow"] = _moves(model, step, x * _INFINITE, y)
        _note_scale(trial, "scale_after_overflow", optimizer)


def _stepper(tf, model, policy):
    """A function of (x, y) that trains one step, as ``fit`` does."""
    if hasattr(model, "train_step"):  # TensorFlow 2.2

        def train(x, y):
            return model.train_step((x, y))

        return train

    optimizer = model.optimizer
    scaled = hasattr(optimizer, "get_scaled_loss")

    def train_by_hand(x, y):
        with tf.GradientTape() as tape:
            difference = tf.cast(model(x, training=True), tf.float32) - y
            loss = tf.reduce_mean(tf.square(difference))
            wanted = optimizer.get_scaled_loss(loss) if scaled else loss
        gradients = tape.gradient(wanted, model.trainable_variables)
        if scaled:
            gradients = optimizer.get_unscaled_gradients(gradients)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    return train_by_hand


def _nodes(graph):
    """[(operation, its type)] of a GraphDef and the functions in it."""
    found = list(graph.node)
    for function in graph.library.function:
        found += function.node_def
    return [(node.op, node.attr["T"].type) for node in found]


def _moves(model, step, x, y):
    """Whether the weights are other ones after this step."""
    before = model.get_weights()
    step(x, y)
    return any((old != new).any() for old, new in zip(before, model.get_weights()))


def _note_scale(trial, name, optimizer):
    scale = _scale(optimizer)
    if scale is not None:
        trial[name] = scale


def _scale(optimizer):
    """The loss scale; None where the optimizer has none."""
    for name in ("dynamic_scale", "loss_scale"):  # Keras 3, Keras 2
        value = getattr(optimizer, name, None)
        if value is not None:
            return float(value() if callable(value) else value)
    return None


def _type_name(dtype):
    return getattr(dtype, "name", None) or str(dtype)
