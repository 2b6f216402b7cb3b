"""Grappler's rewrite for a GPU that is not there: whether this build can rewrite, where no GPU can run it.

Nothing is run: the graph alone is rewritten. Most builds look at the made-up device's compute capability.
TensorFlow 2 without CUDA looks at no device, and has a variable for its own tests instead.
"""

import contextlib
import importlib
import os

from ...running import records
from . import tensorflow_step

SIMULATE = "TF_AUTO_MIXED_PRECISION_GRAPH_REWRITE_SIMULATE_GPU"
_DEVICE = "/job:localhost/replica:0/task:0/device:GPU:0"
_ON, _OFF = 1, 2  # RewriterConfig.Toggle


def counted(tf, graph, target, capability, on):
    """(evidence of the rewritten graph, how the GPU was made up). target: the operation that is run."""
    made_up = "a made-up GPU of compute capability " + capability
    evidence = tensorflow_step.count([rewritten(tf, graph, target, capability, on)])
    if on and not evidence["half_convolutions"]:
        with _simulated():
            simulated = tensorflow_step.count([rewritten(tf, graph, target, capability, on)])
        if simulated["half_convolutions"]:
            return simulated, SIMULATE
    return evidence, made_up


def rewritten(tf, graph, target, capability, on):
    """The GraphDef that Grappler makes of a graph, with AMP's rewrite on or off."""
    try:
        device_properties_pb2 = _module("core.protobuf.device_properties_pb2")
        cluster = _module("python.grappler.cluster")
        tf_optimizer = _module("python.grappler.tf_optimizer")
    except ImportError as error:
        raise records.NotSupported("no Grappler from Python: %s" % error)
    with graph.as_default():
        wanted = graph.get_collection_ref("train_op")
        if target not in wanted:
            wanted.append(target)
        meta = tf.compat.v1.train.export_meta_graph(graph=graph)
    for node in meta.graph_def.node:
        node.device = _DEVICE
    device = device_properties_pb2.NamedDevice(name=_DEVICE)
    device.properties.type = "GPU"
    device.properties.num_cores = 108
    device.properties.frequency = 1410
    device.properties.environment["architecture"] = capability
    device.properties.environment["cuda"] = "10000"
    device.properties.environment["cudnn"] = "7605"
    config = tf.compat.v1.ConfigProto()
    options = config.graph_options.rewrite_options
    options.auto_mixed_precision = _ON if on else _OFF
    options.min_graph_nodes = -1
    return tf_optimizer.OptimizeGraph(config, meta, cluster=cluster.Cluster(devices=[device]))


def _module(name):
    return importlib.import_module("tensorflow." + name)


@contextlib.contextmanager
def _simulated():
    before = os.environ.get(SIMULATE)
    os.environ[SIMULATE] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[SIMULATE]
        else:
            os.environ[SIMULATE] = before
