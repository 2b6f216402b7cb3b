"""Forward alone: the model in a tf.function, or as TF-TRT converts it."""

import os
import tempfile

from ...kernels.failures import NotSupported
from ...systems import tf_trt
from . import graphs
from .layers import loss
from .training import KerasModel, compiled

_FEWEST = 3  # operations that TensorRT takes over


class KerasForward(KerasModel):
    """A Training (collector/bench/__init__.py) that does not train."""

    def _made(self):
        """What goes forward once."""
        inputs = self._samples.batch()[0]
        return compiled(self._tf, lambda: self.outputs(inputs, False), self._row["compiled"])

    def run(self, steps):
        self._run(steps)
        self._tf.nest.map_structure(lambda one: one[:1].numpy(), self._last)
        return 0

    def loss(self):
        return float(loss(self._tf, self._samples.batch()[1], self._last).numpy())


class TensorRTForward(KerasForward):
    """The same by TF-TRT, from a SavedModel. AMP is then TensorRT's: the model itself has FP32 weights."""

    def _made(self):
        self._versions = tf_trt.versions_for_bench()
        with tempfile.TemporaryDirectory(prefix="envcheck-trt-") as folder:
            plain = os.path.join(folder, "plain")
            self.save(plain)
            return self._converted(plain, os.path.join(folder, "converted"))

    def save(self, folder):
        """As a SavedModel, which takes the samples as x0, x1, …"""
        tf = self._tf
        specs = [
            tf.TensorSpec(one.shape, one.dtype, name="x%d" % number)
            for number, one in enumerate(self._inputs())
        ]
        module = tf.Module()
        module.model = self.model
        module.step = tf.function(lambda *given: self.outputs(given, False), input_signature=specs)
        tf.saved_model.save(module, folder, signatures=module.step.get_concrete_function())

    def load(self, folder):
        """(what goes forward once, its GraphDef) of a SavedModel."""
        # Kept: a function does not keep its model's variables alive.
        self._loaded = self._tf.saved_model.load(folder)
        function = self._loaded.signatures["serving_default"]
        given = {"x%d" % number: one for number, one in enumerate(self._inputs())}

        def step():
            outputs = function(**given)
            return [outputs[name] for name in sorted(outputs)]

        return step, function.graph.as_graph_def()

    def _inputs(self):
        return tuple(self._samples.batch()[0])

    def _converted(self, plain, folder):
        wanted = "FP32"
        if self._row["precision"] == "amp":
            wanted = "FP16"
            if self._row["half"] == "bfloat16":
                raise NotSupported("TF-TRT has no bfloat16")
        convert = tf_trt.converters()
        settings = convert.DEFAULT_TRT_CONVERSION_PARAMS._replace(
            precision_mode=wanted, minimum_segment_size=_FEWEST
        )
        converter = convert.TrtGraphConverterV2(
            input_saved_model_dir=plain, conversion_params=settings
        )
        converter.convert()
        converter.build(input_fn=lambda: iter([self._inputs()]))
        converter.save(folder)
        step, graph = self.load(folder)
        self._versions["tensorrt_engines"] = tf_trt.engines(folder)
        self._versions["tensorrt_operations"] = len(tf_trt.operations(graph))
        self._versions["tensorrt_precision"] = wanted
        return step

    def evidence(self):  # what TensorRT computes in stands in no graph
        return dict(self._versions, tf32_bits=graphs.bits_of_tf32(self._tf, self._device))
