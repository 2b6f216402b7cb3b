"""The small network for digits, and digits that can be learned: prototypes, and noise upon them."""

SIDE = 28
CLASSES = 10
_EPOCH, _OTHERS = 60000, 10000
_SMALLER = 10  # times, on a machine without a GPU
OPTIMIZER, SETTINGS = "Adam", {"learning_rate": 0.001}
# Where losses are compared: Adam's steps at the other rate make much of a last bit. The mistaken targets
# keep the loss well above nothing.
COMPARED = {"learning_rate": 0.0002}
_MISTAKEN = 0.2
_BLOCK = 4  # pixels on a side that are alike in a prototype
_NOISE = 1.0
_CONTRAST = 0.3


def make(tf, row):
    keras = tf.keras
    layers = keras.layers
    inputs = keras.Input((SIDE, SIDE, 1))
    x = layers.Conv2D(32, 3, activation="relu")(inputs)
    x = layers.MaxPooling2D(2)(x)
    x = layers.Flatten()(x)
    x = layers.Dense(64, activation="relu")(x)
    return keras.Model(inputs, layers.Dense(CLASSES)(x))


def epoch(row):
    return _EPOCH // _SMALLER if row["small"] else _EPOCH


def others(row):
    return _OTHERS // _SMALLER if row["small"] else _OTHERS


def samples(tf, row, count):
    """The same prototypes for every count; other digits and other noise."""
    seed = row["seed"]
    blocks = SIDE // _BLOCK
    prototypes = tf.random.stateless_uniform([CLASSES, blocks, blocks, 1], [seed, 1])
    prototypes = tf.repeat(tf.repeat(prototypes, _BLOCK, axis=1), _BLOCK, axis=2)
    targets = tf.random.stateless_uniform([count], [seed, count], maxval=CLASSES, dtype=tf.int64)
    noise = tf.random.stateless_normal([count, SIDE, SIDE, 1], [seed, count + 1], stddev=_NOISE)
    images = _CONTRAST * (tf.gather(prototypes, targets) - 0.5 + noise)
    return images, _mistaken(tf, seed, targets) if row["steps"] else targets


def _mistaken(tf, seed, targets):
    """A share of them is any class."""
    count = targets.shape[0]
    wrong = tf.random.stateless_uniform([count], [seed, count + 2]) < _MISTAKEN
    others = tf.random.stateless_uniform([count], [seed, count + 3], maxval=CLASSES, dtype=tf.int64)
    return tf.where(wrong, others, targets)


def loss(tf, targets, outputs):
    return tf.nn.sparse_softmax_cross_entropy_with_logits(targets, outputs)
