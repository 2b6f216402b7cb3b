"""Stand-ins for TensorRT.

IN_TENSORFLOW is put in front of a real TensorFlow without it: its converters give the graph back with an
operation of TensorRT's in it (which the loader hides from TensorFlow), and write engines down as the real
ones do. A ``library`` is what a TensorFlow that was built with TensorRT loads: it tells its version alone.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

# STANDIN_TRT says what it does: "engaged", "no-engine", "wrong", "crash", "nothing".
IN_TENSORFLOW = r"""
import os, sys
def stand_in():
    import importlib, shutil
    import numpy
    import tensorflow as tf
    what = os.environ["STANDIN_TRT"]
    for name in ("_pywrap_py_utils", "wrap_py_utils"):
        try:
            utils = importlib.import_module("tensorflow.compiler.tf2tensorrt." + name)
            break
        except ImportError:
            pass
    from tensorflow.python.compiler.tensorrt import trt_convert as trt
    utils.is_tensorrt_enabled = lambda: True
    utils.get_linked_tensorrt_version = lambda: (8, 6, 1)
    utils.get_loaded_tensorrt_version = lambda: (8, 6, 1)
    number = 0 if what == "no-engine" else 1
    off = 9.0 if what == "wrong" else 0.001

    def with_operation(graph_def):
        if what != "nothing":
            node = graph_def.node.add()
            node.op, node.name = "TRTEngineOp", "TRTEngineOp_000_000"
            node.device = "/device:CPU:0"
            node.attr["serialized_segment"].s = b"engine" * number
        return graph_def

    def write_engines(path):
        Writer = getattr(tf.io, "TFRecordWriter", None)
        with Writer(path) as file:
            for _ in range(number):
                file.write(b"an engine")

    class V2(object):
        def __init__(self, input_saved_model_dir, conversion_params):
            assert conversion_params.minimum_segment_size == 3
            self._from = input_saved_model_dir

        def convert(self):
            if what == "crash":
                os.abort()

        def build(self, input_fn):
            assert [len(one) for one in input_fn()] == [1]

        def save(self, folder):
            shutil.copytree(self._from, folder)
            os.makedirs(os.path.join(folder, "assets"), exist_ok=True)
            write_engines(os.path.join(folder, "assets", "trt-serialized-engine.TRTEngineOp_000_000"))

    class V1(object):
        def __init__(self, input_graph_def, precision_mode, is_dynamic_op, use_calibration, **more):
            assert not use_calibration and not is_dynamic_op
            self._graph_def = input_graph_def

        def convert(self):
            if what == "crash":
                os.abort()
            copy = type(self._graph_def)()
            copy.CopyFrom(self._graph_def)
            return with_operation(copy)

    trt.TrtGraphConverterV2, trt.TrtGraphConverter = V2, V1
    load = getattr(tf.saved_model, "load", None)
    real_import = tf.compat.v1.import_graph_def

    def import_graph_def(graph_def, name=""):
        kept, left = type(graph_def)(), [one for one in graph_def.node if one.op != "TRTEngineOp"]
        kept.CopyFrom(graph_def)
        del kept.node[:]
        kept.node.extend(left)
        return real_import(kept, name=name)

    class Loaded(object):
        def __init__(self, model):
            function = model.signatures["serving_default"]

            class Graph(object):
                def as_graph_def(self):
                    return with_operation(function.graph.as_graph_def())

            class Function(object):
                graph = Graph()

                def __call__(self, x):
                    return {name: one * (1 + off) for name, one in function(x).items()}

            self.signatures = {"serving_default": Function()}

    def load_with_operation(folder):
        model = load(folder)
        return Loaded(model) if os.path.exists(os.path.join(folder, "assets", "trt-serialized-engine."
                                                            "TRTEngineOp_000_000")) else model

    if tf.__version__.startswith("1."):
        tf.compat.v1.import_graph_def = import_graph_def
    else:
        tf.saved_model.load = load_with_operation
stand_in()
"""


def library(folder: Path, version: int | None) -> Path:
    """A directory with the libraries that TensorFlow 2.15 loads; without a version they have no function."""
    gcc = shutil.which("gcc")
    if gcc is None:
        pytest.skip("there is no gcc to make a library with")
    source = folder / "made.c"
    source.write_text(
        "int nothing;"
        if version is None
        else f"int getInferLibVersion(void) {{ return {version}; }}"
    )
    for name in ("libnvinfer.so.8.6.1", "libnvinfer_plugin.so.8.6.1"):
        subprocess.run([gcc, "-shared", "-fPIC", "-o", folder / name, source], check=True)
    return folder
