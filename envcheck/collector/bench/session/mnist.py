"""The small network for digits, and digits that can be learned: prototypes, and noise upon them."""

from .resnet50 import loss

__all__ = ("EPOCH", "OTHERS", "compared_optimizer", "forward", "loss", "optimizer", "samples")
SIDE = 28
CLASSES = 10
EPOCH, OTHERS = 60000, 10000
# Where losses are compared: Adam's steps at the other rate make much of a last bit. The mistaken targets
# keep the loss well above nothing.
_COMPARED_RATE = 0.0002
_MISTAKEN = 0.2
_BLOCK = 4  # pixels on a side that are alike in a prototype


def samples(tf, row, count, layers):
    """The same prototypes for every count; other digits and other noise."""
    blocks = SIDE // _BLOCK
    drawn = tf.random_uniform([CLASSES, blocks, 1, blocks, 1], seed=row["seed"] + 1)
    drawn = tf.tile(drawn, [1, 1, _BLOCK, 1, _BLOCK])
    prototypes = tf.reshape(drawn, [CLASSES, SIDE, SIDE, 1])
    digits = layers.random_classes([count], CLASSES)
    images = tf.gather(prototypes, digits) + layers.random_normal([count, SIDE, SIDE, 1])
    if row["steps"]:
        wrong = layers.random_uniform([count]) < _MISTAKEN
        digits = tf.where(wrong, layers.random_classes([count], CLASSES), digits)
    return [tf.cast(images, layers.dtype)], [digits]


def forward(tf, row, inputs, layers):
    x = layers.convolution(inputs[0], 32, 3, padding="valid", activation=tf.nn.relu)
    x = tf.layers.flatten(layers.pooled(x, 2, 2))
    return [layers.dense(layers.dense(x, 64, tf.nn.relu), CLASSES)]


def optimizer(tf):
    return tf.train.AdamOptimizer(0.001)


def compared_optimizer(tf):
    return tf.train.AdamOptimizer(_COMPARED_RATE)
