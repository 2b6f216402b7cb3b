"""TF-TRT: a small graph, converted by TensorFlow's converter in each precision, run beside what it was.

An operation of TensorRT's in the converted graph is no engine yet: one whose engine cannot be built runs what
it replaced, without a message. Engines are therefore counted where the converter writes them down.
"""

import glob
import importlib
import os
import tempfile

from .running import records
from .shared import tensorflow_graphs

SYSTEM = "tf-trt"
FRAMEWORKS = ("tensorflow",)
BUILT_WITH = ("tensorrt_build", "TensorRT")
GPUS = 1
DEADLINE = 30.0

_CONVERTERS = "tensorflow.python.compiler.tensorrt.trt_convert"
_BATCH, _SIDE, _CHANNELS = 8, 16, 4
_FEWEST = 3  # operations that TensorRT takes over; the graph has six
_WORKSPACE_MIB = 64


def run(tf, params, tell):
    module = utils()
    linked = version(module.get_linked_tensorrt_version())
    if linked == "0.0.0":
        raise records.NotApplicable("this tensorflow is built without TensorRT")
    if not module.is_tensorrt_enabled():
        raise records.NotApplicable("TensorRT %s, which it is linked with, is not found" % linked)
    with tell.trial("TensorRT linked") as trial:
        trial["version"] = linked
    with tell.trial("TensorRT loaded") as trial:
        trial["version"] = version(module.get_loaded_tensorrt_version())
    with tempfile.TemporaryDirectory() as folder:
        mib = min(_WORKSPACE_MIB, (params["memory_mib"] or _WORKSPACE_MIB) // 2)
        first = tf.__version__.startswith("1.")
        side = (_FrozenGraphs if first else _SavedModels)(tf, folder, mib << 20)
        reference = None
        with tell.trial("graph", control=True) as trial:
            reference, trial["operations"] = side.plain()
            trial["engines"] = 0
        for precision in ("FP32", "FP16"):
            with tell.trial(precision) as trial:
                values, trial["operations"], trial["engines"] = side.converted(precision)
                trial.compare(values, reference)


def utils():
    """The module that tells versions; it has had two names."""
    for name in ("_pywrap_py_utils", "wrap_py_utils"):
        try:
            return importlib.import_module("tensorflow.compiler.tf2tensorrt." + name)
        except ImportError:
            continue
    raise records.NotApplicable("this tensorflow has no converter for TensorRT")


def version(numbers):
    return ".".join(map(str, numbers))


def _data():
    """(the input, two kernels): none below 0, so that no sum is small for its terms."""
    random = importlib.import_module("numpy").random.RandomState(0)
    shapes = (
        (_BATCH, _SIDE, _SIDE, _CHANNELS),
        (3, 3, _CHANNELS, 2 * _CHANNELS),
        (3, 3, 2 * _CHANNELS, 2 * _CHANNELS),
    )
    return [random.uniform(0, 1, shape).astype("float32") for shape in shapes]


def _net(tf, x, kernels):
    for kernel in kernels:
        bias = tf.constant([0.25] * kernel.shape[-1])
        y = tf.nn.conv2d(x, tf.constant(kernel), strides=[1, 1, 1, 1], padding="SAME")
        x = tf.nn.relu(tf.nn.bias_add(y, bias))
    return tf.identity(x, name="out")


def operations(graph_def):
    nodes = tensorflow_graphs.nodes_of(graph_def)
    return [node for node in nodes if node.op == "TRTEngineOp"]


def engines(tf, folder):
    """How many engines lie in the files there; each holds those that one operation has built."""
    pattern = os.path.join(folder, "**", "trt-serialized-engine.*")
    paths = glob.glob(pattern, recursive=True)
    return sum(1 for path in paths for _engine in tf.data.TFRecordDataset(path))


class _FrozenGraphs(object):
    """TensorFlow 1: graphs."""

    def __init__(self, tf, _folder, workspace):
        self._v1 = tf.compat.v1
        self._workspace = workspace
        self._data, *kernels = _data()
        with tf.Graph().as_default() as graph:
            x = self._v1.placeholder(tf.float32, self._data.shape, name="x")
            _net(tf, x, kernels)
            self._graph_def = graph.as_graph_def()

    def plain(self):
        return self._run(self._graph_def), len(operations(self._graph_def))

    def converted(self, precision):
        trt_convert = importlib.import_module(_CONVERTERS)
        settings = {
            "input_graph_def": self._graph_def,
            "max_batch_size": _BATCH,
            "max_workspace_size_bytes": self._workspace,
            "precision_mode": precision,
            "minimum_segment_size": _FEWEST,
            "is_dynamic_op": False,  # engines are then in the graph
            "use_calibration": False,
        }
        try:
            converter = trt_convert.TrtGraphConverter(nodes_blacklist=["out"], **settings)
        except TypeError:  # NVIDIA's later builds
            converter = trt_convert.TrtGraphConverter(nodes_denylist=["out"], **settings)
        graph_def = converter.convert()
        found = operations(graph_def)
        built = sum(1 for node in found if node.attr["serialized_segment"].s)
        return self._run(graph_def), len(found), built

    def _run(self, graph_def):
        with self._v1.Graph().as_default(), self._v1.Session() as session:
            self._v1.import_graph_def(graph_def, name="")
            return session.run("out:0", {"x:0": self._data})


class _SavedModels(object):
    """TensorFlow 2: SavedModels."""

    def __init__(self, tf, folder, workspace):
        self._tf = tf
        self._folder = folder
        self._workspace = workspace
        self._graph = os.path.join(folder, "graph")
        self._data, *kernels = _data()
        module = tf.Module()
        shape = tf.TensorSpec(self._data.shape, tf.float32, name="x")
        module.step = tf.function(lambda x: _net(tf, x, kernels), input_signature=[shape])
        tf.saved_model.save(module, self._graph, signatures=module.step.get_concrete_function())

    def plain(self):
        return self._run(self._graph)

    def converted(self, precision):
        trt_convert = importlib.import_module(_CONVERTERS)
        settings = trt_convert.DEFAULT_TRT_CONVERSION_PARAMS._replace(
            precision_mode=precision,
            minimum_segment_size=_FEWEST,
            max_workspace_size_bytes=self._workspace,
            use_calibration=False,
        )
        converter = trt_convert.TrtGraphConverterV2(
            input_saved_model_dir=self._graph, conversion_params=settings
        )
        converter.convert()
        converter.build(input_fn=lambda: iter([(self._tf.constant(self._data),)]))
        folder = os.path.join(self._folder, precision)
        converter.save(folder)
        values, operations = self._run(folder)
        return values, operations, engines(self._tf, folder)

    def _run(self, folder):
        """(values, how many operations of TensorRT's it has) of a SavedModel."""
        loaded = self._tf.saved_model.load(folder)
        function = loaded.signatures["serving_default"]
        (result,) = function(self._tf.constant(self._data)).values()
        return result.numpy(), len(operations(function.graph.as_graph_def()))
