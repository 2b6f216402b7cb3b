"""XLA in TensorFlow: a function that is to be compiled, a graph that is to be clustered, and neither.

What XLA compiles it writes down, on request (--xla_dump_to): a module a file. That works in every version,
and shows what was compiled, not what was to be.
"""

import importlib
import os
import tempfile

from .running import records

SYSTEM = "xla"
FRAMEWORKS = ("tensorflow",)
DEADLINE = 20.0

_ROWS, _COLUMNS = 64, 32
_OPTIMISED = "after_optimizations.txt"  # ".cpu_…" and ".gpu_…" in later versions


def run(tf, params, tell):
    with tempfile.TemporaryDirectory() as folder:
        _add("XLA_FLAGS", "--xla_dump_to=%s --xla_dump_hlo_as_text" % folder)
        if params["device"] == "cpu":
            # Clusters are for GPUs alone, unless this is set before the first graph.
            _add("TF_XLA_FLAGS", "--tf_xla_cpu_global_jit")
        side = _Sessions(tf) if tf.__version__.startswith("1.") else _Functions(tf)
        dump = _Compiled(folder)
        reference = None
        with tell.trial("off", control=True) as trial:
            reference = side.clustered(False)
            _write(trial, reference, None, dump)
        with tell.trial("jit_compile") as trial:
            _write(trial, side.compiled(), reference, dump)
        with tell.trial("auto-clustering") as trial:
            _write(trial, side.clustered(True), reference, dump)


def _add(name, flags):
    """To a variable that XLA reads when it is first used, behind what the user has there."""
    os.environ[name] = (os.environ.get(name, "") + " " + flags).strip()


def _write(trial, ran, reference, dump):
    """The evidence of one trial. ran, reference: (values, {operation: count})."""
    values, operations = ran
    if operations is not None:
        trial["clusters"] = operations.get("_XlaCompile", 0)
        trial["runs"] = operations.get("_XlaRun", 0) + operations.get("XlaLaunch", 0)
    modules = dump.since()
    trial["modules"] = len(modules)
    trial["fusions"] = sum(text.count(" fusion(") for text in modules)
    if reference is not None:
        largest = float(abs(reference[0]).max())
        trial["difference"] = float(abs(values - reference[0]).max()) / largest


class _Compiled(object):
    """What XLA has written into the folder."""

    def __init__(self, folder):
        self._folder = folder
        self._known = set()

    def since(self):
        """The texts of the modules that it has compiled since the last look."""
        fresh = sorted(set(os.listdir(self._folder)) - self._known)
        self._known.update(fresh)
        return [self._read(name) for name in fresh if name.endswith(_OPTIMISED)]

    def _read(self, name):
        with open(os.path.join(self._folder, name), "rb") as file:
            return file.read(1 << 20).decode("utf-8", "replace")


def _step(tf, x):
    """What fuses into one kernel, and takes functions of libdevice."""
    y = tf.tanh(x * 2.0 + 1.0)
    z = tf.exp(-y) * tf.sin(y) + tf.math.log1p(tf.abs(y))
    return tf.reduce_sum(z * z + y, axis=1)


def _count(graphs):
    found = {}
    for graph in graphs:
        for node in graph.node:
            found[node.op] = found.get(node.op, 0) + 1
    return found


class _Sessions(object):
    """TensorFlow 1: sessions."""

    def __init__(self, tf):
        numpy = importlib.import_module("numpy")
        self._tf = tf
        values = numpy.arange(_ROWS * _COLUMNS, dtype="float32").reshape(_ROWS, _COLUMNS)
        self._data = values / (_ROWS * _COLUMNS)

    def clustered(self, on):
        return self._run(1 if on else -1, lambda x: _step(self._tf, x))

    def compiled(self):
        experimental = getattr(getattr(self._tf, "xla", None), "experimental", None)
        if not hasattr(experimental, "compile"):
            raise records.NotSupported("this TensorFlow has no tf.xla.experimental.compile")
        step = lambda x: experimental.compile(lambda one: _step(self._tf, one), [x])[0]  # noqa: E731
        return self._run(-1, step)

    def _run(self, level, step):
        v1 = self._tf.compat.v1
        config = v1.ConfigProto()
        config.graph_options.optimizer_options.global_jit_level = level
        meta = v1.RunMetadata()
        with self._tf.Graph().as_default():
            x = v1.placeholder(self._tf.float32, self._data.shape)
            result = step(x)
            with v1.Session(config=config) as session:
                options = v1.RunOptions(output_partition_graphs=True)
                values = session.run(result, {x: self._data}, options=options, run_metadata=meta)
        return values, _count(meta.partition_graphs)


class _Functions(object):
    """TensorFlow 2: functions."""

    def __init__(self, tf):
        self._tf = tf
        self._x = tf.reshape(tf.range(float(_ROWS * _COLUMNS)), (_ROWS, _COLUMNS))
        self._x = self._x / (_ROWS * _COLUMNS)

    def clustered(self, on):
        context = importlib.import_module("tensorflow.python.eager.context")
        if not hasattr(context, "enable_run_metadata"):
            raise records.NotSupported("this TensorFlow does not show the graph that ran")
        tf = self._tf
        tf.config.optimizer.set_jit(on)
        context.enable_run_metadata()
        try:
            values = tf.function(lambda x: _step(tf, x))(self._x).numpy()
            metadata = context.export_run_metadata()
        finally:
            context.disable_run_metadata()
            tf.config.optimizer.set_jit(False)
        return values, _count(
            graph for one in metadata.function_graphs for graph in one.partition_graphs
        )

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
