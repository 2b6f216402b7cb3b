"""A model as TF-TRT converts it in TensorFlow 1: frozen, with its weights."""

from ...systems import tf_trt
from .. import models
from . import settings
from .layers import SessionDraw, forward

_FEWEST = 3  # operations that TensorRT takes over at once
_WORKSPACE = 1 << 30  # bytes


class Converted(object):
    def __init__(self, definition, names, parameters, engines):
        self._definition, self._names = definition, names
        self.parameters, self.engines = parameters, engines

    def outputs(self, tf, inputs):
        given = {"input_%d" % number: one for number, one in enumerate(inputs)}
        names = [name + ":0" for name in self._names]
        return tf.import_graph_def(self._definition, given, names, name="served")


def convert(tf, row):
    """Raises NotSupported where this TensorFlow has no TensorRT."""
    tf_trt.versions_for_bench()
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(row["seed"])
        samples = models.MODELS[row["model"]].samples
        inputs, _targets = samples(SessionDraw(tf, row), row, row["batch"])
        given = [
            tf.placeholder(one.dtype, one.shape, name="input_%d" % number)
            for number, one in enumerate(inputs)
        ]
        outputs = forward(tf, row, given, False)
        outputs = [tf.identity(one, name="output_%d" % n) for n, one in enumerate(outputs)]
        names = [one.op.name for one in outputs]
        parameters = sum(one.shape.num_elements() for one in tf.trainable_variables())
        with tf.Session(config=settings.config(tf, row)) as session:
            session.run(tf.global_variables_initializer())
            definition = tf.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), names
            )
    definition, engines = _converted(definition, names, row)
    return Converted(definition, names, parameters, engines)


def _converted(definition, names, row):
    """(GraphDef, how many engines are built into it)"""
    options = {
        "input_graph_def": definition,
        "max_batch_size": row["batch"],
        "max_workspace_size_bytes": _WORKSPACE,
        "precision_mode": "FP16" if row["precision"] == "amp" else "FP32",
        "minimum_segment_size": _FEWEST,
        "is_dynamic_op": False,
    }
    trt_convert = tf_trt.converters()
    try:
        converter = trt_convert.TrtGraphConverter(nodes_blacklist=names, **options)
    except TypeError:  # NVIDIA's later builds
        converter = trt_convert.TrtGraphConverter(nodes_denylist=names, **options)
    made = converter.convert()
    found = tf_trt.operations(made)
    return made, sum(1 for node in found if node.attr["serialized_segment"].s)
