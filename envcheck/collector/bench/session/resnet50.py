"""ResNet-50 v1.5: the stride is that of the bottleneck's 3×3."""

CLASSES = 1000
SIDE = 224
_BLOCKS = (3, 4, 6, 3)


def samples(tf, row, count, layers):
    side = row["image"] or SIDE
    images = tf.cast(layers.random_normal([count, side, side, 3]), layers.dtype)
    return [images], [layers.random_classes([count], CLASSES)]


def forward(tf, row, inputs, layers):
    x = tf.pad(inputs[0], [[0, 0], [3, 3], [3, 3], [0, 0]])
    x = layers.convolution(x, 64, 7, 2, padding="valid", use_bias=False)
    x = layers.pooled(tf.nn.relu(layers.normalised(x)), 3, 2, "same")
    for stage, blocks in enumerate(_BLOCKS):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _bottleneck(tf, x, 64 << stage, stride, not block, layers)
    return [layers.dense(tf.reduce_mean(x, [1, 2]), CLASSES)]


def _bottleneck(tf, x, filters, stride, projected, layers):
    def convolved(x, wide, size, step=1, zero=False):
        x = layers.convolution(x, wide, size, step, use_bias=False)
        return layers.normalised(x, zero)

    shortcut = convolved(x, 4 * filters, 1, stride) if projected else x
    x = tf.nn.relu(convolved(x, filters, 1))
    x = tf.nn.relu(convolved(x, filters, 3, stride))
    # The last scale begins at zero, so that a block begins as its shortcut.
    return tf.nn.relu(convolved(x, 4 * filters, 1, zero=True) + shortcut)


def loss(tf, targets, outputs):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return tf.reduce_mean(entropy(labels=targets[0], logits=outputs[0]))


def optimizer(tf):
    return tf.train.MomentumOptimizer(0.01, 0.9)
