"""ResNet-50 v1.5: the stride is in the bottleneck's 3×3. In keras.applications it is in the 1×1, as in v1."""

CLASSES = 1000
SIDE = 224
OPTIMIZER, SETTINGS = "SGD", {"learning_rate": 0.01, "momentum": 0.9}
_STAGES = ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2))  # filters, blocks, stride


def make(tf, row):
    keras = tf.keras
    layers = keras.layers
    side = row["image"] or SIDE
    inputs = keras.Input((side, side, 3))
    x = layers.ZeroPadding2D(3)(inputs)
    x = layers.Conv2D(64, 7, strides=2, use_bias=False, kernel_initializer="he_normal")(x)
    x = layers.Activation("relu")(_normalised(layers, x))
    x = layers.MaxPooling2D(3, strides=2, padding="same")(x)
    for filters, blocks, stride in _STAGES:
        for block in range(blocks):
            x = _bottleneck(layers, x, filters, stride if block == 0 else 1, block == 0)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x))


def _bottleneck(layers, x, filters, stride, projected):
    shortcut = x
    if projected:
        shortcut = _normalised(layers, _convolved(layers, x, 4 * filters, 1, stride))
    x = layers.Activation("relu")(_normalised(layers, _convolved(layers, x, filters, 1, 1)))
    x = layers.Activation("relu")(_normalised(layers, _convolved(layers, x, filters, 3, stride)))
    x = _normalised(layers, _convolved(layers, x, 4 * filters, 1, 1), last=True)
    return layers.Activation("relu")(layers.Add()([x, shortcut]))


def _convolved(layers, x, filters, size, stride):
    return layers.Conv2D(
        filters,
        size,
        strides=stride,
        padding="same",
        use_bias=False,
        kernel_initializer="he_normal",
    )(x)


def _normalised(layers, x, last=False):
    """The last of a block begins at zero, so that the block begins as its shortcut."""
    begins = "zeros" if last else "ones"
    return layers.BatchNormalization(momentum=0.9, epsilon=1e-5, gamma_initializer=begins)(x)


def samples(tf, row, count):
    seed, side = row["seed"], row["image"] or SIDE
    inputs = tf.random.stateless_normal([count, side, side, 3], [seed, 1])
    targets = tf.random.stateless_uniform([count], [seed, 2], maxval=CLASSES, dtype=tf.int64)
    return inputs, targets


def loss(tf, targets, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
