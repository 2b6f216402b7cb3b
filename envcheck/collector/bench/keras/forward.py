"""Forward alone: the model in a tf.function, or as TF-TRT converts it."""

import os
import tempfile

from ...acceleration import telling
from ...acceleration.systems import tf_trt
from ...kernels.failures import NotSupported
from . import graphs, precision
from .training import KerasSamples, compiled, make, memory, parameters

_FEWEST = 3  # operations that TensorRT takes over
_PRECISIONS = {"float16": "FP16"}


def forward(tf, row, place, model):
    if row["tensorrt"]:
        return TensorRTForward(tf, row, place, model)
    return KerasForward(tf, row, place, model)


class KerasForward(object):
    """A Training (collector/bench/__init__.py) that does not train."""

    def __init__(self, tf, row, place, model):
        self._tf, self._row, self._file = tf, row, model
        self._device = "/GPU:0" if place.device == "gpu" else "/CPU:0"
        self._inputs, self._targets = KerasSamples(tf, row, model, self._device).first()
        with tf.device(self._device):
            precision.seed(tf, row["seed"])
            self.model = make(tf, row, model)
        self.parameters = parameters(self.model)
        self._watched = None
        self._last = None
        self._step = self._made()

    def _made(self):
        """What goes forward once."""
        return compiled(
            self._tf, lambda: self.model(self._inputs, training=False), self._row["compiled"]
        )

    def run(self, steps):
        done = 0
        if self._watched is None:
            self._watched = graphs.Watched()
            self._last, done = self._watched.run(self._step), 1
        for _step in range(steps - done):
            self._last = self._step()
        self._tf.nest.map_structure(lambda one: one[:1].numpy(), self._last)
        return 0

    def loss(self):
        tf = self._tf
        outputs = tf.nest.map_structure(lambda one: tf.cast(one, tf.float32), self._last)
        return float(tf.reduce_mean(self._file.loss(tf, self._targets, outputs)).numpy())

    def evidence(self):
        if self._row["compiled"]:
            found = graphs.compiled(self._step)
        else:
            found = graphs.ran(self._watched, self._step)
        found["policy"] = precision.policy(self._row)
        found["tf32_bits"] = graphs.tf32_bits(self._tf, self._device)
        return found

    def memory(self):
        return memory(self._tf, ["GPU:0"]) if self._device.startswith("/GPU") else {}


class TensorRTForward(KerasForward):
    """The same by TF-TRT, from a SavedModel. AMP is then TensorRT's: the model itself has FP32 weights."""

    def _made(self):
        self._versions = _versions()
        with tempfile.TemporaryDirectory(prefix="envcheck-trt-") as folder:
            plain = os.path.join(folder, "plain")
            self.save(plain)
            return self._converted(plain, os.path.join(folder, "converted"))

    def save(self, folder):
        """As a SavedModel, which takes the samples as x0, x1, …"""
        tf, inputs = self._tf, tf_inputs(self._tf, self._inputs)
        specs = [
            tf.TensorSpec(one.shape, one.dtype, name="x%d" % number)
            for number, one in enumerate(inputs)
        ]
        module = tf.Module()
        module.model = self.model
        module.step = tf.function(
            lambda *given: self.model(list(given) if len(given) > 1 else given[0], training=False),
            input_signature=specs,
        )
        tf.saved_model.save(module, folder, signatures=module.step.get_concrete_function())

    def load(self, folder):
        """(what goes forward once, its GraphDef) of a SavedModel."""
        self._loaded = self._tf.saved_model.load(
            folder
        )  # whose variables a function keeps not alive
        function = self._loaded.signatures["serving_default"]
        given = {
            "x%d" % number: one for number, one in enumerate(tf_inputs(self._tf, self._inputs))
        }

        def step():
            outputs = function(**given)
            found = [outputs[name] for name in sorted(outputs)]
            return found if len(found) > 1 else found[0]

        return step, function.graph.as_graph_def()

    def _converted(self, plain, folder):
        wanted = "FP32"
        if self._row["precision"] != "fp32" and self._row["precision"] != "tf32":
            wanted = _PRECISIONS.get(self._row["half"] or "float16")
            if wanted is None:
                raise NotSupported("TF-TRT has no %s" % self._row["half"])
        convert = tf_trt.converters()
        settings = convert.DEFAULT_TRT_CONVERSION_PARAMS._replace(
            precision_mode=wanted, minimum_segment_size=_FEWEST
        )
        converter = convert.TrtGraphConverterV2(
            input_saved_model_dir=plain, conversion_params=settings
        )
        converter.convert()
        converter.build(input_fn=self._feed)
        converter.save(folder)
        step, graph = self.load(folder)
        self._versions["tensorrt_engines"] = tf_trt.engines(folder)
        self._versions["tensorrt_operations"] = len(tf_trt.operations(graph))
        self._versions["tensorrt_precision"] = wanted
        return step

    def _feed(self):
        yield tf_inputs(self._tf, self._inputs)

    def evidence(self):
        found = dict(self._versions)  # what TensorRT computes in stands in no graph
        found["tf32_bits"] = graphs.tf32_bits(self._tf, self._device)
        return found


def tf_inputs(tf, inputs):
    return tuple(tf.nest.flatten(inputs))


def _versions():
    """Of TensorRT. Raises NotSupported where it is not there."""
    try:
        utils = tf_trt.utils()
    except telling.NotApplicable as error:
        raise NotSupported(str(error))
    linked = tf_trt.version(utils.get_linked_tensorrt_version())
    if linked == "0.0.0":
        raise NotSupported("this tensorflow is built without TensorRT")
    if not utils.is_tensorrt_enabled():
        raise NotSupported("TensorRT %s, which it is linked with, is not found" % linked)
    loaded = tf_trt.version(utils.get_loaded_tensorrt_version())
    return {"tensorrt_linked": linked, "tensorrt_loaded": loaded}
