"""The small network of the MNIST examples, on digits of its own: a prototype each, and noise."""

from . import layers

OPTIMIZER = "adam"
RATE = 1e-3
# Where losses are compared: Adam's steps at the other rate make much of a last bit. The mistaken targets
# keep the loss well above nothing.
COMPARED_RATE = 2e-4
_MISTAKEN = 0.2
SIDE = 28
CLASSES = 10
EPOCH = 60000  # samples
OTHERS = 10000  # that it is not trained on
_DEVIATION = 0.08  # Glorot's, of 9 numbers in and 288 out
_BLOCK = 4  # pixels on a side that are alike in a prototype
_NOISE = 1.0


def init(jax, row, key):
    some = layers.keys(jax, key)
    params = {
        "conv": layers.conv_init(jax, next(some), (3, 3), 1, 32, deviation=_DEVIATION),
        "dense": layers.dense_init(jax, next(some), 13 * 13 * 32, 64),
        "out": layers.dense_init(jax, next(some), 64, CLASSES),
    }
    return params, {}


def apply(jax, row, params, state, inputs, train):
    x = jax.nn.relu(layers.conv(jax, params["conv"], inputs, padding="VALID"))
    x = layers.max_pool(jax, x, 2, 2)
    x = jax.nn.relu(layers.dense(jax, params["dense"], x.reshape((x.shape[0], -1))))
    return layers.dense(jax, params["out"], x), state


def loss(jax, row, outputs, targets):
    return layers.cross_entropy(jax, outputs, targets)


def data(jax, row, key, batch):
    """An epoch's samples, of which each step has the next ``batch``."""
    count = max(batch, EPOCH // 10 if row["small"] else EPOCH)
    inputs, targets = _digits(jax, key, 0, count)
    return inputs, _mistaken(jax, key, targets) if row["steps"] else targets


def _mistaken(jax, key, targets):
    """A share of them is any class."""
    one, other = jax.random.split(jax.random.fold_in(key, 0))
    wrong = jax.random.uniform(one, targets.shape) < _MISTAKEN
    return jax.numpy.where(wrong, jax.random.randint(other, targets.shape, 0, CLASSES), targets)


def others(jax, row, key):
    return _digits(jax, key, 1, OTHERS // 10 if row["small"] else OTHERS)


def _digits(jax, key, which, count):
    blocks = jax.random.uniform(key, (CLASSES, SIDE // _BLOCK, SIDE // _BLOCK, 1))
    prototypes = blocks.repeat(_BLOCK, axis=1).repeat(_BLOCK, axis=2)
    one, other = jax.random.split(jax.random.fold_in(key, which + 1))
    labels = jax.random.randint(one, (count,), 0, CLASSES)
    noise = jax.random.normal(other, (count, SIDE, SIDE, 1))
    return prototypes[labels] + _NOISE * noise, labels
