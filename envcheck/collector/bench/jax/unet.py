"""UNet: two convolutions a level, down by pooling and up by transposed convolutions, in 2D and 3D."""

from .. import architecture
from . import layers

OPTIMIZER = "adam"
RATE = 1e-4
CLASSES = 2


def _channels(row):
    """Of every level, the lowest last."""
    size = architecture.unet(row)
    return [size.filters << level for level in range(size.levels + 1)]


def init(jax, row, key):
    some, kernel = layers.keys(jax, key), (3,) * architecture.unet(row).dimensions

    def twice(inputs, outputs):
        return [
            layers.conv_init(jax, next(some), kernel, inputs, outputs),
            layers.conv_init(jax, next(some), kernel, outputs, outputs),
        ]

    channels = _channels(row)
    params = {"down": [], "up": []}
    for inputs, outputs in zip([1] + channels, channels):
        params["down"].append(twice(inputs, outputs))
    for outputs in channels[-2::-1]:
        params["up"].append(
            {
                "up": layers.conv_init(jax, next(some), (2,) * len(kernel), 2 * outputs, outputs),
                "convs": twice(2 * outputs, outputs),
            }
        )
    params["out"] = layers.conv_init(jax, next(some), (1,) * len(kernel), channels[0], CLASSES)
    return params, {}


def apply(jax, row, params, state, inputs, train):
    def twice(convs, x):
        for layer in convs:
            x = jax.nn.relu(layers.conv(jax, layer, x))
        return x

    x, kept = inputs, []
    for convs in params["down"][:-1]:
        x = twice(convs, x)
        kept.append(x)
        x = layers.max_pool(jax, x, 2, 2)
    x = twice(params["down"][-1], x)
    for level in params["up"]:
        x = layers.up(jax, level["up"], x)
        x = twice(level["convs"], jax.numpy.concatenate([kept.pop(), x], axis=-1))
    return layers.conv(jax, params["out"], x), state


def loss(jax, row, outputs, targets):
    return layers.cross_entropy(jax, outputs, targets)


def data(jax, row, key, batch):
    """What is to be found is where a smoothed picture is bright: it can be learned."""
    size = architecture.unet(row)
    shape = (batch,) + (size.side,) * size.dimensions + (1,)
    inputs = jax.random.normal(key, shape)
    window = (1,) + (3,) * size.dimensions + (1,)
    sums = jax.lax.reduce_window(inputs, 0.0, jax.lax.add, window, (1,) * len(shape), "SAME")
    return inputs, (sums[..., 0] > 0).astype("int32")
