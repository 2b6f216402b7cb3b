"""AMP in Keras: the types in which a training step computes under a mixed policy, and its loss scale.

The step is the one that ``fit`` runs: TensorFlow 2.4 and later, with Keras 2 or 3.
"""

from .running import records
from .shared import tensorflow_graphs
from .shared.amp import tensorflow_step

SYSTEM = "amp-keras"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 30.0

_INFINITE = 1e7  # times the inputs: no number of 16 bits


def run(tf, params, tell):
    keras = tf.keras
    mixed = getattr(keras, "mixed_precision", None)
    if not hasattr(mixed, "set_global_policy"):
        raise records.NotApplicable("Keras has mixed policies from TensorFlow 2.4 on")
    backend = getattr(getattr(keras, "backend", None), "backend", None)
    if callable(backend) and backend() != "tensorflow":
        raise records.NotApplicable("Keras runs on %s here (KERAS_BACKEND)" % backend())
    if params["device"] == "gpu" and not tf.config.list_physical_devices("GPU"):
        raise records.CouldNotRun("tf.config.list_physical_devices('GPU') is empty")
    for policy in ("float32", "mixed_float16", "mixed_bfloat16"):
        with tell.trial(policy, control=policy == "float32") as trial:
            trial["keras"] = getattr(keras, "__version__", None) or tf.__version__
            before = mixed.global_policy()
            try:
                mixed.set_global_policy(policy)
            except (ValueError, TypeError) as error:
                raise records.NotSupported("no policy %s: %s" % (policy, error))
            try:
                _train(tf, policy, trial)
            finally:
                mixed.set_global_policy(before)


def _train(tf, policy, trial):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Conv2D(16, 3, padding="same"), layers.Flatten(), layers.Dense(8)]
    )
    model.build((None, 8, 8, 8))
    model.compile(optimizer=tf.keras.optimizers.SGD(0.01), loss="mse")
    optimizer = model.optimizer
    x, y = tf.ones([8, 8, 8, 8]) * 0.05, tf.ones([8, 8])
    step = tf.function(lambda x, y: model.train_step((x, y)))
    if hasattr(optimizer, "build"):  # makes variables, which a traced step must not
        optimizer.build(model.trainable_variables)
    nodes = tensorflow_graphs.nodes_of(step.get_concrete_function(x, y).graph.as_graph_def())
    wanted = {
        number: name
        for number, name in tensorflow_step.HALF.items()
        if policy in ("float32", "mixed_" + name)
    }
    counted = tensorflow_step.count_nodes(nodes, wanted)
    for name in ("convolutions", "products"):
        trial[name], trial[name + "_half"] = counted[name], counted["half_" + name]
    types = {getattr(one.dtype, "name", None) or str(one.dtype) for one in model.weights}
    trial["variables"] = ", ".join(sorted(types))
    trial["scale"] = _scale(optimizer)
    trial["moved_by_step"] = _moves(model, step, x, y)
    trial["scale_after_step"] = _scale(optimizer)
    if _scale(optimizer) is not None:
        trial["moved_by_overflow"] = _moves(model, step, x * _INFINITE, y)
        trial["scale_after_overflow"] = _scale(optimizer)


def _moves(model, step, x, y):
    before = model.get_weights()
    step(x, y)
    return any((old != new).any() for old, new in zip(before, model.get_weights()))


def _scale(optimizer):
    for name in ("dynamic_scale", "loss_scale"):  # Keras 3, Keras 2
        value = getattr(optimizer, name, None)
        if value is not None:
            return float(value() if callable(value) else value)
    return None
