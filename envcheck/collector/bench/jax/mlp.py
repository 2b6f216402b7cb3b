"""A feed-forward network.

The file of a model holds init(jax, row, key), apply(…), loss(…) and data(…), all of them pure:
what it is trained by, OPTIMIZER and RATE, and what it keeps beside its parameters, the state.
"""

from . import layers

OPTIMIZER = "momentum"
RATE = 0.01
WIDTH = 1024
CLASSES = 10


def init(jax, row, key):
    """(parameters, state)."""
    wide = 256 if row["small"] else 4 * WIDTH
    sizes = [WIDTH, wide, wide, wide, CLASSES]
    some = layers.keys(jax, key)
    return [layers.dense_init(jax, next(some), *pair) for pair in zip(sizes, sizes[1:])], {}


def apply(jax, row, params, state, inputs, train):
    """(what the loss is taken of, state)."""
    x = inputs
    for layer in params[:-1]:
        x = jax.nn.relu(layers.dense(jax, layer, x))
    return layers.dense(jax, params[-1], x), state


def loss(jax, row, outputs, targets):
    return layers.cross_entropy(jax, outputs, targets)


def data(jax, row, key, batch):
    """(inputs, targets), made on the device."""
    one, other = jax.random.split(key)
    inputs = jax.random.normal(one, (batch, WIDTH))
    return inputs, jax.random.randint(other, (batch,), 0, CLASSES)
