"""ResNet-50 v1.5 in TensorFlow 1, rewritten for made-up GPUs: how much of it is in half, as JSON.

A target runs it. Built by hand, for keras.applications has version 1: here a block's stride is in its
3x3 convolution.
"""

import json
import sys

sys.path.insert(0, sys.argv[1])

import tensorflow as tf

from envcheck.collector.systems.shared.amp import made_up_gpu, tensorflow_step

v1 = tf.compat.v1


def convolution(x, filters, edge, stride=1):
    x = v1.layers.conv2d(x, filters, edge, stride, padding="same", use_bias=False)
    return v1.layers.batch_normalization(x, training=True, fused=True)


def block(x, filters, stride):
    shortcut = x
    if stride > 1 or x.shape[-1] != 4 * filters:
        shortcut = convolution(x, 4 * filters, 1, stride)
    x = tf.nn.relu(convolution(x, filters, 1))
    x = tf.nn.relu(convolution(x, filters, 3, stride))
    return tf.nn.relu(convolution(x, 4 * filters, 1) + shortcut)


def training_step():
    """The operation that trains it for one step."""
    x = v1.placeholder(tf.float32, [32, 224, 224, 3])
    labels = v1.placeholder(tf.int32, [32])
    x = tf.nn.relu(convolution(x, 64, 7, 2))
    x = tf.nn.max_pool2d(x, 3, 2, "SAME")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for place in range(blocks):
            x = block(x, 64 << stage, 2 if stage and not place else 1)
    logits = v1.layers.dense(tf.reduce_mean(x, [1, 2]), 1000)
    loss = tf.reduce_mean(
        v1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)
    )
    return v1.train.MomentumOptimizer(0.1, 0.9).minimize(loss)


graph = tf.Graph()
with graph.as_default():
    step = training_step()
told = {}
for name, capability, on in (("8.0", "8.0", True), ("8.0 off", "8.0", False), ("6.1", "6.1", True)):
    told[name] = tensorflow_step.count([made_up_gpu.rewritten(tf, graph, step, capability, on)])
print(json.dumps(told))
