"""AMP by graph rewrite in TensorFlow: half types in the graph that ran, and the variables that ask for it."""

import contextlib
import os
from operator import attrgetter

from .running import records
from .shared.amp import tensorflow_step

SYSTEM = "amp-graph"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 60.0
GPUS = 1

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


def run(tf, params, tell):
    names = [one for one in os.environ if one in VARIABLES or one.startswith(_SWITCHES)]
    with tell.trial("variables") as trial:
        trial["set"] = ["%s=%s" % (name, os.environ[name][:60]) for name in sorted(names)]
    with tell.trial("session") as trial, _wrapped(tf) as wrap:
        trial.update(tensorflow_step.in_session(tf, wrap))
    with tell.trial("session off", control=True) as trial:
        trial.update(tensorflow_step.in_session(tf, rewrite=_switch_off))
    if not str(tf.__version__).startswith("1."):  # whose functions nobody trains with
        for on in (True, False):
            with tell.trial("function" if on else "function off", control=not on) as trial:
                trial.update(_function(tf, on))


def _call(tf, name):
    """The function of that name, wherever this version has it; None where it has none."""
    for place in _PLACES:
        with contextlib.suppress(AttributeError):
            return attrgetter("%s.%s" % (place, name))(tf)
    return None


@contextlib.contextmanager
def _wrapped(tf):
    """What wraps an optimizer as a program does; the rewrite is switched back afterwards."""
    wrap = _call(tf, "enable_mixed_precision_graph_rewrite")
    if wrap is None:
        raise records.NotSupported("this TensorFlow has no enable_mixed_precision_graph_rewrite")
    try:
        yield wrap
    finally:
        switch_back = _call(tf, "disable_mixed_precision_graph_rewrite")
        if switch_back is not None:
            switch_back()


def _switch_off(options):
    if hasattr(options, "auto_mixed_precision"):
        options.auto_mixed_precision = _OFF


def _function(tf, on):
    if not hasattr(getattr(tf, "config", None), "optimizer") or not tf.executing_eagerly():
        raise records.NotSupported("no tf.config.optimizer, or eager execution is off")
    tf.config.optimizer.set_experimental_options({"auto_mixed_precision": on})
    try:
        return tensorflow_step.in_function(tf)
    finally:
        tf.config.optimizer.set_experimental_options({"auto_mixed_precision": False})
