"""Forward alone: the graph as it is served, frozen or not, by TensorFlow or by TensorRT."""

from ...acceleration import telling
from ...acceleration.systems import tf_trt
from ...kernels.failures import NotSupported
from . import compiled, data, evidence, precision
from .training import SCOPE, session_layers

_FEWEST = 3  # operations that TensorRT takes over at once
_WORKSPACE = 1 << 30  # bytes
_HALVES = ("amp", "half")


def forward_alone(tf, row, place, model):
    precision.check(tf, row, place)
    precision.switch_tf32(tf, row)
    if row["together"]:
        raise NotSupported("forward alone is measured on each GPU by itself")
    return SessionForward(tf, row, place, model)


class SessionForward(object):
    """A Training (collector/bench/__init__.py) that trains nothing."""

    def __init__(self, tf, row, place, model):
        self._tf, self._row, self._place = tf, row, place
        self._engines = None
        if row["compiled"]:
            compiled.write_down()
        layers = session_layers(tf, row, place, False)
        frozen = _frozen(tf, row, place, model) if row["tensorrt"] else None
        graph = tf.Graph()
        with graph.as_default(), tf.variable_scope("", use_resource=True):
            tf.set_random_seed(row["seed"])
            inputs, targets = data.batches(tf, row, place, model, layers)
            if frozen is None:
                with tf.variable_scope(SCOPE):
                    outputs = model.forward(tf, row, inputs, layers)
                trained = tf.trainable_variables()
                self.parameters = sum(one.shape.num_elements() for one in trained)
            else:
                definition, names, self.parameters, self._engines = frozen
                given = {"input_%d" % number: one for number, one in enumerate(inputs)}
                outputs = tf.import_graph_def(definition, given, names, name="served")
            self._loss = tf.cast(model.loss(tf, targets, outputs), tf.float32)
            updates = tf.get_collection(tf.GraphKeys.UPDATE_OPS)
            self._forward = tf.group(_used(tf, outputs), *updates)
            begin = [tf.global_variables_initializer(), tf.tables_initializer()]
        self._session = tf.Session(graph=graph, config=precision.config(tf, row))
        self._session.run(begin)

    def run(self, steps):
        for _step in range(steps):
            self._session.run(self._forward)  # which comes back when the device has done it
        return 0

    def loss(self):
        return float(self._session.run(self._loss))

    def evidence(self):
        told = evidence.of_session(self._tf, self._session, self._forward)
        if self._engines is not None:
            told["tensorrt_engines"] = self._engines
        told["tf32_bits"] = evidence.bits_of_tf32(self._tf, self._place, told["convolutions"] > 0)
        return told

    def memory(self):
        return evidence.memory(self._tf, self._session, self._place)


def _used(tf, outputs):
    """An operation that needs every output: what nothing is done with, Grappler leaves out."""
    most = tf.get_variable("most", [], tf.float32, trainable=False)
    return most.assign(tf.add_n([tf.cast(tf.reduce_max(one), tf.float32) for one in outputs]))


def _frozen(tf, row, place, model):
    """(GraphDef, names of its outputs, parameters, engines): converted by TF-TRT, weights and all."""
    _tensorrt()
    layers = session_layers(tf, row, place, False)
    graph = tf.Graph()
    with graph.as_default():
        tf.set_random_seed(row["seed"])
        inputs, _targets = model.samples(tf, row, row["batch"], layers)
        given = [
            tf.placeholder(one.dtype, one.shape, name="input_%d" % number)
            for number, one in enumerate(inputs)
        ]
        with tf.variable_scope(SCOPE):
            outputs = model.forward(tf, row, given, layers)
        outputs = [tf.identity(one, name="output_%d" % n) for n, one in enumerate(outputs)]
        names = [one.op.name for one in outputs]
        parameters = sum(one.shape.num_elements() for one in tf.trainable_variables())
        with tf.Session(config=precision.config(tf, row)) as session:
            session.run(tf.global_variables_initializer())
            definition = tf.graph_util.convert_variables_to_constants(
                session, graph.as_graph_def(), names
            )
    definition, engines = _converted(definition, names, row)
    return definition, [name + ":0" for name in names], parameters, engines


def _tensorrt():
    """Raises NotSupported where this TensorFlow has no TensorRT."""
    try:
        told = tf_trt.utils()
    except telling.NotApplicable as error:
        raise NotSupported(str(error))
    linked = tf_trt.version(told.get_linked_tensorrt_version())
    if linked == "0.0.0":
        raise NotSupported("this tensorflow is built without TensorRT")
    if not told.is_tensorrt_enabled():
        raise NotSupported("TensorRT %s, which it is linked with, is not found" % linked)


def _converted(definition, names, row):
    """(GraphDef, how many engines are built into it)"""
    settings = {
        "input_graph_def": definition,
        "max_batch_size": row["batch"],
        "max_workspace_size_bytes": _WORKSPACE,
        "precision_mode": "FP16" if row["precision"] in _HALVES else "FP32",
        "minimum_segment_size": _FEWEST,
        "is_dynamic_op": False,
    }
    trt_convert = tf_trt.converters()
    try:
        converter = trt_convert.TrtGraphConverter(nodes_blacklist=names, **settings)
    except TypeError:  # NVIDIA's later builds
        converter = trt_convert.TrtGraphConverter(nodes_denylist=names, **settings)
    made = converter.convert()
    found = tf_trt.operations(made)
    return made, sum(1 for node in found if node.attr["serialized_segment"].s)
