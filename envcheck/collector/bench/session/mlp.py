"""A feed-forward network."""

from .resnet50 import loss

__all__ = ("forward", "loss", "optimizer", "samples")
INPUTS = 1024
CLASSES = 10


def samples(tf, row, count, layers):
    inputs = tf.cast(layers.random_normal([count, INPUTS]), layers.dtype)
    return [inputs], [layers.random_classes([count], CLASSES)]


def forward(tf, row, inputs, layers):
    x = inputs[0]
    for _layer in range(3):
        x = layers.dense(x, 256 if row["small"] else 4096, tf.nn.relu)
    return [layers.dense(x, CLASSES)]


def optimizer(tf):
    return tf.train.MomentumOptimizer(0.01, 0.9)
