"""AMP by graph rewrite in TensorFlow: half types in the graph that ran, a loss scale, variables.

The rewrite wants a GPU; on a CPU TensorFlow 2 has one for bfloat16.
"""

import contextlib
import importlib
import os

from .running import records
from .shared.amp import tensorflow_step

SYSTEM = "amp-graph"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 60.0

_PLACES = (
    "train.experimental",  # TensorFlow 1.14 to 2.3
    "compat.v1.train.experimental",
    "compat.v1.mixed_precision",  # from 2.4 on
)
VARIABLES = (
    "TF_ENABLE_AUTO_MIXED_PRECISION",
    "TF_ENABLE_AUTO_MIXED_PRECISION_GRAPH_REWRITE",
    "TF_ENABLE_AUTO_MIXED_PRECISION_LOSS_SCALING",
)
_SWITCHES = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_"
_OFF = 2  # RewriterConfig.Toggle
_BFLOAT16 = ("auto_mixed_precision_onednn_bfloat16", "auto_mixed_precision_mkl")
_TOO_MUCH = 3e38  # times a loss scale, it is no number of 32 bits


def run(tf, params, tell):
    names = [one for one in os.environ if one in VARIABLES or one.startswith(_SWITCHES)]
    asked = ["%s=%s" % (name, os.environ[name][:60]) for name in sorted(names)]
    on_gpu = params["device"] == "gpu"
    with tell.trial("variables") as trial:
        trial["set"] = asked
        trial["cuda_build"] = bool(tf.test.is_built_with_cuda())
        if on_gpu:
            trial["compute_capability"] = _capability(tf)
    for wrapped in (True, False):
        with tell.trial("session" if wrapped else "session off", control=not wrapped) as trial:
            with _step(tf, wrapped) as made:
                trial.update(tensorflow_step.count(made.graphs()))
    for wrapped in (True, False):
        with tell.trial(
            "loss scale" if wrapped else "loss scale off", control=not wrapped
        ) as trial:
            _overflow(trial, tf, wrapped)
    if not str(tf.__version__).startswith("1."):  # whose functions nobody trains with
        for on in (True, False):
            with tell.trial("function" if on else "function off", control=not on) as trial:
                _function(trial, tf, auto_mixed_precision=on)
        if not on_gpu:
            with tell.trial("bfloat16") as trial:
                _function(trial, tf, **{_bfloat16(tf): True})


def _capability(tf):
    """The GPU's compute capability as TensorFlow has it: "8.0"; "" where it does not say."""
    with contextlib.suppress(Exception):
        device_lib = importlib.import_module("tensorflow.python.client.device_lib")
        for device in device_lib.list_local_devices():
            _before, found, capability = device.physical_device_desc.rpartition(
                "compute capability: "
            )
            if found:
                return capability.strip()
    return ""


def _call(tf, name):
    """The function of that name, wherever this version has it; None where it has none."""
    for place in _PLACES:
        found = tf
        for part in place.split(".") + [name]:
            found = getattr(found, part, None)
        if callable(found):
            return found
    return None


@contextlib.contextmanager
def _step(tf, wrapped):
    """A SessionStep with the rewrite asked for as a program does, or off."""
    if not wrapped:
        with tensorflow_step.SessionStep(tf, None, _switch_off) as made:
            yield made
        return
    wrap = _call(tf, "enable_mixed_precision_graph_rewrite")
    if wrap is None:
        raise records.NotSupported("this TensorFlow has no enable_mixed_precision_graph_rewrite")
    try:
        with tensorflow_step.SessionStep(tf, wrap) as made:
            yield made
    finally:
        switch_back = _call(tf, "disable_mixed_precision_graph_rewrite")
        if switch_back is not None:
            switch_back()


def _switch_off(options):
    if hasattr(options, "auto_mixed_precision"):
        options.auto_mixed_precision = _OFF


def _overflow(trial, tf, wrapped):
    """A step that overflows, and one that does not."""
    with _step(tf, wrapped) as made:
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


def _function(trial, tf, **options):
    if not hasattr(getattr(tf, "config", None), "optimizer") or not tf.executing_eagerly():
        raise records.NotSupported("no tf.config.optimizer, or eager execution is off")
    tf.config.optimizer.set_experimental_options(options)
    try:
        trial.update(tensorflow_step.count(tensorflow_step.function_graphs(tf)))
    finally:
        tf.config.optimizer.set_experimental_options(dict.fromkeys(options, False))


def _bfloat16(tf):
    """The option of the rewrite for CPUs."""
    options = tf.compat.v1.ConfigProto().graph_options.rewrite_options
    for name in _BFLOAT16:
        if hasattr(options, name):
            return name
    raise records.NotSupported("this TensorFlow has no rewrite for CPUs")
