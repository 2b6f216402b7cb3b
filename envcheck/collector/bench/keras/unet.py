"""U-Net, for images and for volumes: every voxel gets a class."""

from .. import architecture

CLASSES = 2
OPTIMIZER, SETTINGS = "Adam", {"learning_rate": 0.0001}


def make(tf, row):
    keras = tf.keras
    layers = keras.layers
    dimensions, levels, filters, side = architecture.unet(row)
    convolution = getattr(layers, "Conv%dD" % dimensions)
    pooling = getattr(layers, "MaxPooling%dD" % dimensions)
    transposed = getattr(layers, "Conv%dDTranspose" % dimensions)

    def twice(x, wide):
        for _each in range(2):
            x = convolution(wide, 3, padding="same", activation="relu")(x)
        return x

    inputs = keras.Input((side,) * dimensions + (1,))
    x, passed = inputs, []
    for level in range(levels):
        x = twice(x, filters << level)
        passed.append(x)
        x = pooling(2)(x)
    x = twice(x, filters << levels)
    for level in reversed(range(levels)):
        x = transposed(filters << level, 2, strides=2)(x)
        x = layers.Concatenate()([passed[level], x])
        x = twice(x, filters << level)
    return keras.Model(inputs, convolution(CLASSES, 1)(x))


def samples(tf, row, count):
    """Noise, and whether it is above zero: what can be learned."""
    dimensions, _levels, _filters, side = architecture.unet(row)
    shape = [count] + [side] * dimensions
    inputs = tf.random.stateless_normal(shape + [1], [row["seed"], 1])
    return inputs, tf.cast(tf.reshape(inputs, shape) > 0, tf.int64)


def loss(tf, targets, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
