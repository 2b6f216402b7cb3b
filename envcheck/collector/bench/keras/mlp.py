"""A feed-forward network."""

INPUTS = 1024
CLASSES = 10
OPTIMIZER, SETTINGS = "SGD", {"learning_rate": 0.01, "momentum": 0.9}


def make(tf, row):
    keras = tf.keras
    width = 256 if row["small"] else 4096
    inputs = keras.Input((INPUTS,))
    x = inputs
    for _layer in range(3):
        x = keras.layers.Dense(width, activation="relu")(x)
    return keras.Model(inputs, keras.layers.Dense(CLASSES)(x))


def samples(tf, row, count):
    seed = row["seed"]
    inputs = tf.random.stateless_normal([count, INPUTS], [seed, 1])
    targets = tf.random.stateless_uniform([count], [seed, 2], maxval=CLASSES, dtype=tf.int64)
    return inputs, targets


def loss(tf, targets, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
