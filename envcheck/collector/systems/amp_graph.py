"""AMP by graph rewrite in TensorFlow: half types in the graph that ran, a loss scale, variables."""

import contextlib
import importlib
import os

from .. import framework
from .running import ranks, records
from .shared.amp import made_up_gpu, tensorflow_step, tensorflow_words

SYSTEM = "amp-graph"
FRAMEWORK = "tensorflow"
DEADLINE = 60.0  # in NVIDIA's builds a second process imports TensorFlow, too
ALONE = True  # the pace of a step tells what AMP gains

_WRAPPERS = (
    "train.experimental",  # TensorFlow 1.14 to 2.3
    "compat.v1.train.experimental",
    "compat.v1.mixed_precision",  # from 2.4 on
)
_OFF = 2  # RewriterConfig.Toggle
_BFLOAT16 = ("auto_mixed_precision_onednn_bfloat16", "auto_mixed_precision_mkl")
_TOO_MUCH = 3e38  # times a loss scale, it is no number of 32 bits
_RANK_SECONDS = 45.0


def run(tf, params, tell):
    gpu = params["device"] == "gpu"
    size = tensorflow_step.shape(params)
    known = _variables(tf, params, tell)
    with tell.trial("session") as trial:
        _session(trial, tf, params, size, wrapped=True)
    with tell.trial("session off", control=True) as trial:
        _session(trial, tf, params, size, wrapped=False)
    with tell.trial("loss scale") as trial:
        _overflow(trial, tf, wrapped=True)
    with tell.trial("loss scale off", control=True) as trial:
        _overflow(trial, tf, wrapped=False)
    if not _is_first(tf):
        with tell.trial("function") as trial:
            _function(trial, tf, params, size, auto_mixed_precision=True)
        with tell.trial("function off", control=True) as trial:
            _function(trial, tf, params, size, auto_mixed_precision=False)
    if not gpu:
        _without_gpu(tf, params, size, tell)
    elif known:
        with tell.trial("variable") as trial:
            _by_variable(trial, params)


def rank(tf, params):
    """A process of its own in which a variable alone asks for AMP."""
    with tensorflow_step.SessionStep(tf, tensorflow_step.shape(params)) as made:
        told = tensorflow_step.count(made.graphs())
        told["loss_scaling"] = getattr(made.optimizer, "_loss_scale", None) is not None
    return told


def _is_first(tf):
    """Whether it is TensorFlow 1, whose functions nobody trains with."""
    return str(tf.__version__).startswith("1.")


def _variables(tf, params, tell):
    """What this build knows; the names."""
    known = []
    with tell.trial("variables") as trial:
        known, seen, refused = tensorflow_words.look(framework.homes(tf))
        trial["known"] = known
        trial["rewrite_found"] = seen
        trial["no_effect"] = refused
        trial["set"] = tensorflow_words.are_set(os.environ)
        trial["cuda_build"] = bool(tf.test.is_built_with_cuda())
        if params["device"] == "gpu":
            trial["compute_capability"] = _capability(tf)
    return known


def _capability(tf):
    """The GPU's compute capability as TensorFlow has it: "8.0"; "" where it does not say."""
    with contextlib.suppress(Exception):  # from 2.3 on
        gpu = tf.config.list_physical_devices("GPU")[0]
        return "%d.%d" % tf.config.experimental.get_device_details(gpu)["compute_capability"]
    with contextlib.suppress(Exception):
        device_lib = importlib.import_module("tensorflow.python.client.device_lib")
        for device in device_lib.list_local_devices():
            words = device.physical_device_desc.rpartition("compute capability: ")
            if words[1]:
                return words[2].strip()
    return ""


def _call(tf, name):
    """The function of that name, wherever this version has it; None where it has none."""
    for place in _WRAPPERS:
        found = tf
        for part in place.split(".") + [name]:
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


def _wrapper(tf):
    wrap = _call(tf, "enable_mixed_precision_graph_rewrite")
    if wrap is None:
        raise records.NotSupported("this TensorFlow has no enable_mixed_precision_graph_rewrite")
    return wrap


@contextlib.contextmanager
def _wrapped_step(tf, size, wrapped):
    """A SessionStep with the rewrite asked for as a program does, or off."""
    wrap = _wrapper(tf) if wrapped else None
    try:
        with tensorflow_step.SessionStep(tf, size, wrap, None if wrapped else _switch_off) as made:
            yield made
    finally:
        switch_back = _call(tf, "disable_mixed_precision_graph_rewrite") if wrapped else None
        if switch_back is not None:
            switch_back()


def _switch_off(options):
    if hasattr(options, "auto_mixed_precision"):
        options.auto_mixed_precision = _OFF


def _session(trial, tf, params, size, wrapped):
    with _wrapped_step(tf, size, wrapped) as made:
        trial.update(tensorflow_step.count(made.graphs()))
        if params["device"] == "gpu":
            trial["step_ms"] = made.pace()


def _overflow(trial, tf, wrapped):
    """A step that overflows, and one that does not."""
    with _wrapped_step(tf, (8, 8, 8), wrapped) as made:
        before = made.values()
        if wrapped:
            trial["scale_before"] = made.scale()
        made.step(_TOO_MUCH)
        after = made.values()
        if wrapped:
            trial["scale_after"] = made.scale()
        trial["weights_changed"] = not _same(before, after)
        made.step()
        trial["next_step_changed"] = not _same(after, made.values())


def _same(some, others):
    """Whether all arrays are equal; what is no number is the same as what is none."""
    return all(
        ((one == other) | ((one != one) & (other != other))).all()
        for one, other in zip(some, others)
    )


def _function(trial, tf, params, size, **options):
    if not hasattr(getattr(tf, "config", None), "optimizer") or not tf.executing_eagerly():
        raise records.NotSupported("no tf.config.optimizer, or eager execution is off")
    tf.config.optimizer.set_experimental_options(options)
    try:
        timed = params["device"] == "gpu"
        graphs, spent = tensorflow_step.function_step(tf, size, timed)
    finally:
        tf.config.optimizer.set_experimental_options(dict.fromkeys(options, False))
    trial.update(tensorflow_step.count(graphs))
    if spent is not None:
        trial["step_ms"] = spent


def _without_gpu(tf, params, size, tell):
    if not _is_first(tf):
        with tell.trial("bfloat16") as trial:
            name = _bfloat16(tf)
            trial["option"] = name
            _function(trial, tf, params, size, **{name: True})
    for control in (False, True):
        name = "made-up GPU off" if control else "made-up GPU"
        with tell.trial(name, control=control) as trial:
            with tensorflow_step.SessionStep(tf, size) as made:
                told, trial["how"] = made_up_gpu.counted(
                    tf, made.graph, made.operation, "8.0", not control
                )
            trial.update(told)


def _bfloat16(tf):
    """The option of the rewrite for CPUs."""
    options = tf.compat.v1.ConfigProto().graph_options.rewrite_options
    for name in _BFLOAT16:
        if hasattr(options, name):
            return name
    raise records.NotSupported("this TensorFlow has no rewrite for CPUs")


def _by_variable(trial, params):
    asked = [one for one in tensorflow_words.are_set(os.environ) if one.startswith("TF_ENABLE_")]
    # As the user has it; where nothing is set, as it would be set. An empty one counts as none.
    environ = {
        tensorflow_words.VARIABLES[0]: "1",
        tensorflow_words.VARIABLES[1]: "",
    }
    if not asked:
        asked = [tensorflow_words.VARIABLES[0] + "=1"]
    else:
        environ = {}
    trial["asked"] = asked
    done = ranks.run(params, 1, _RANK_SECONDS, environ=lambda _rank: environ)[0]
    if done.answer is None:
        raise RuntimeError("its process %s" % done.reason)
    trial.update(done.answer)
