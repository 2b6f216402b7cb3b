"""XLA in TensorFlow: a function that is to be compiled, a graph that is to be clustered, and neither.

What XLA compiles it writes down, on request (--xla_dump_to): a module a file. That works in every version,
and shows what was compiled, not what was to be.
"""

import os
import tempfile
from collections import Counter

from .. import files
from .running import records
from .shared import fused, tensorflow_graphs

SYSTEM = "xla"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 20.0

_OPTIMISED = "after_optimizations.txt"  # ".cpu_…" and ".gpu_…" in later versions


def run(tf, params, tell):
    with tempfile.TemporaryDirectory() as folder:
        _add("XLA_FLAGS", "--xla_dump_to=%s --xla_dump_hlo_as_text" % folder)
        if params["device"] == "cpu":
            # Clusters are for GPUs alone, unless this is set before the first graph.
            _add("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit")
        side = _Sessions(tf) if tf.__version__.startswith("1.") else _Functions(tf)
        reference, known = None, set()
        for name, work in (
            ("off", lambda: side.clustered(False)),
            ("jit_compile", side.compiled),
            ("auto-clustering", lambda: side.clustered(True)),
        ):
            with tell.trial(name, control=name == "off") as trial:
                values, graphs = work()
                if graphs is not None:
                    operations = Counter(node.op for graph in graphs for node in graph.node)
                    trial["clusters"] = operations["_XlaCompile"]
                    trial["runs"] = operations["_XlaRun"] + operations["XlaLaunch"]
                modules = _compiled(folder, known)
                trial["modules"] = len(modules)
                trial["fusions"] = sum(text.count(" fusion(") for text in modules)
                trial.compare(values, reference)
                reference = values if name == "off" else reference


def _add(name, flags):
    """To a variable that XLA reads when it is first used, behind what the user has there."""
    os.environ[name] = (os.environ.get(name, "") + " " + flags).strip()


def _compiled(folder, known):
    """The texts of the modules that XLA has written there since the last look. known: files, which grows."""
    fresh = sorted(set(os.listdir(folder)) - known)
    known.update(fresh)
    paths = [os.path.join(folder, name) for name in fresh if name.endswith(_OPTIMISED)]
    return [files.read(path, 1 << 20).decode("utf-8", "replace") for path in paths]


def _step(tf, x):
    return tf.reduce_sum(fused.step(tf.math, x), axis=1)


class _Sessions(object):
    """TensorFlow 1: sessions. Each trial gives (values, the graphs that ran)."""

    def __init__(self, tf):
        self._tf = tf

    def clustered(self, on):
        return self._run(1 if on else -1, lambda x: _step(self._tf, x))

    def compiled(self):
        experimental = getattr(getattr(self._tf, "xla", None), "experimental", None)
        if not hasattr(experimental, "compile"):
            raise records.NotSupported("this TensorFlow has no tf.xla.experimental.compile")
        step = lambda x: experimental.compile(lambda one: _step(self._tf, one), [x])[0]  # noqa: E731
        return self._run(-1, step)

    def _run(self, level, step):
        def configure(options):
            options.optimizer_options.global_jit_level = level

        return tensorflow_graphs.in_session(self._tf, fused.data(), step, configure)


class _Functions(object):
    """TensorFlow 2: functions. Likewise; None for graphs that do not show."""

    def __init__(self, tf):
        self._tf = tf
        self._x = tf.constant(fused.data())

    def clustered(self, on):
        tf = self._tf
        tf.config.optimizer.set_jit(on)
        try:
            function = tf.function(lambda x: _step(tf, x))
            values, found = tensorflow_graphs.in_function(function, self._x)
        finally:
            tf.config.optimizer.set_jit(False)
        return values.numpy(), [graph for one in found for graph in one.partition_graphs]

    def compiled(self):
        tf = self._tf
        step = lambda x: _step(tf, x)  # noqa: E731
        for name in ("jit_compile", "experimental_compile"):  # before 2.5 it had the second name
            try:
                function = tf.function(step, **{name: True})
            except TypeError:
                continue
            return function(self._x).numpy(), None
        raise records.NotSupported("tf.function of this TensorFlow has no jit_compile")
