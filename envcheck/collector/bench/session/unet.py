"""U-Net, for images and for volumes: every pixel gets a class."""

from .. import architecture
from .resnet50 import loss

__all__ = ("forward", "loss", "optimizer", "samples")
CLASSES = 2


def samples(tf, row, count, layers):
    """Noise, and whether it is above zero: what can be learned."""
    dimensions, _levels, _filters, side = architecture.unet(row)
    drawn = layers.random_normal([count] + [side] * dimensions)
    return [tf.cast(tf.expand_dims(drawn, -1), layers.dtype)], [tf.cast(drawn > 0, tf.int64)]


def forward(tf, row, inputs, layers):
    _dimensions, levels, filters, _side = architecture.unet(row)

    def twice(x, wide):
        for _each in range(2):
            x = layers.convolution(x, wide, 3, activation=tf.nn.relu)
        return x

    x, passed = inputs[0], []
    for level in range(levels):
        x = twice(x, filters << level)
        passed.append(x)
        x = layers.pooled(x, 2, 2)
    x = twice(x, filters << levels)
    for level in reversed(range(levels)):
        x = layers.transposed(x, filters << level, 2, 2)
        x = twice(tf.concat([passed[level], x], -1), filters << level)
    return [layers.convolution(x, CLASSES, 1)]


def optimizer(tf):
    return tf.train.AdamOptimizer(0.0001)
