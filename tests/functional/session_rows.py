"""Rows of TensorFlow 1's sessions, built and run by a target: requests as JSON, a line of answers.

A target runs it. argv: envcheck's folder, a list of {"do", "steps", "row": fields that differ from ROW}.
"""

import json
import os
import sys

sys.path.insert(0, sys.argv[1])
os.environ["CUDA_VISIBLE_DEVICES"] = "-1"

import numpy
import tensorflow as tf

from envcheck.collector.acceleration.amp import made_up_gpu, tensorflow_step
from envcheck.collector.bench import session, styles
from envcheck.collector.bench.place import Place
from envcheck.collector.bench.session.layers import SessionLayers
from envcheck.collector.kernels.failures import NotSupported

ROW = {
    "name": "a row", "what": "", "model": "mlp", "style": "session", "precision": "fp32", "half": "",
    "way": "", "scaler": "", "compiled": False, "tensorrt": False, "train": True, "batch": 4, "image": 0,
    "length": 0, "small": True, "data": "synthetic", "largest": False, "steps": 0, "seed": 1, "gpus": [],
    "together": "", "group": "",
}  # fmt: skip


def train(row, steps, folder):
    """Trains it, or goes forward; ``steps``: how many times, one by one."""
    training = session.build(tf, row, Place(folder=folder))
    told = {"parameters": training.parameters, "losses": [], "skipped": 0}
    for _step in range(steps):
        told["skipped"] += training.run(1)
        told["losses"].append(training.loss())
    told["evidence"] = training.evidence()
    told["memory"] = training.memory()
    if hasattr(training, "accuracy"):
        training.run(200)
        told["accuracy"] = training.accuracy()
    return told


def count(row, steps, folder):
    """Its trainable parameters, by the graph alone."""
    model = styles.model("session", row["model"])
    with tf.Graph().as_default():
        _loss(model, row, SessionLayers(tf, row, True))
        return sum(one.shape.num_elements() for one in tf.trainable_variables())


def gradient(row, steps, folder):
    """[TensorFlow's derivative along a random direction, the loss's finite difference]."""
    model = styles.model("session", row["model"])
    random = numpy.random.RandomState(3)
    # TensorFlow 1 has no pooling of volumes in 64 bits.
    dtype, size = (tf.float32, 3e-5) if row["model"] == "unet-3d" else (tf.float64, 1e-8)
    with tf.Graph().as_default(), tf.variable_scope("", use_resource=True):
        loss = _loss(model, row, SessionLayers(tf, row, True, dtype, fused=False))
        weights = tf.trainable_variables()
        slopes = [tf.convert_to_tensor(one) for one in tf.gradients(loss, weights)]
        given = {one: tf.placeholder(one.dtype, one.shape) for one in weights}
        moved = tf.group(*[one.assign_add(given[one]) for one in weights])
        with tf.Session() as run:
            run.run(tf.global_variables_initializer())
            way = [random.standard_normal(one.shape.as_list()) for one in weights]
            # Away from where it begins: many a rectifier stands at its bend there, by scales of zero.
            begin = {given[one]: 0.01 * way[place] for place, one in enumerate(weights)}
            run.run(moved, begin)
            slope = run.run(slopes)
            along = sum((slope[place] * way[place]).sum() for place in range(len(way)))
            ends = []
            for step in (size, -2 * size):
                fed = {given[one]: step * way[place] for place, one in enumerate(weights)}
                run.run(moved, fed)
                ends.append(run.run(loss))
    return [float(along), float(ends[0] - ends[1]) / (2 * size)]


def _loss(model, row, layers):
    samples = model.samples(tf, row, row["batch"], layers)
    inputs, targets = [[tf.Variable(one, trainable=False) for one in some] for some in samples]
    return model.loss(tf, targets, model.forward(tf, row, inputs, layers))


def rewritten(row, steps, folder):
    """What Grappler makes of its graph for GPUs that are not there: {capability: counts}."""
    training = session.build(tf, row, Place())
    return {
        capability: tensorflow_step.count(
            [made_up_gpu.rewritten(tf, training.graph, training.train_op, capability, True)]
        )
        for capability in ("8.0", "6.1")
    }


DO = {one.__name__: one for one in (train, count, gradient, rewritten)}
answers = []
for request in json.loads(sys.argv[2]):
    try:
        row = dict(ROW, **request["row"])
        answers.append(DO[request["do"]](row, request.get("steps", 8), request.get("folder", "")))
    except NotSupported as error:
        answers.append({"not_supported": str(error)})
print("\n" + json.dumps(answers))
