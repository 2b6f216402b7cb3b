"""Layers as pure functions: parameters in a dictionary, what comes in first, channels last.

They compute in the type of what they are given; sums of a normalisation or a softmax are taken in FP32.
"""

import math

_MOMENTUM = 0.9  # of batch norm's running statistics
_LETTERS = "DHW"


def dense_init(jax, key, inputs, outputs, deviation=None):
    """Glorot's uniform weights, or normal ones of a deviation; no bias to begin with."""
    shape = (inputs, outputs)
    if deviation is None:
        limit = math.sqrt(6.0 / (inputs + outputs))
        weights = jax.random.uniform(key, shape, minval=-limit, maxval=limit)
    else:
        weights = deviation * jax.random.truncated_normal(key, -2.0, 2.0, shape)
    return {"w": weights, "b": jax.numpy.zeros((outputs,))}


def dense(jax, layer, x):
    return jax.numpy.dot(x, layer["w"]) + layer["b"]


def conv_init(jax, key, kernel, inputs, outputs, bias=True, deviation=None):
    """He's normal weights, or those of a deviation. kernel: (3, 3), a side for each dimension."""
    deviation = deviation or math.sqrt(2.0 / (_product(kernel) * inputs))
    layer = {"w": deviation * jax.random.normal(key, tuple(kernel) + (inputs, outputs))}
    if bias:
        layer["b"] = jax.numpy.zeros((outputs,))
    return layer


def conv(jax, layer, x, stride=1, padding="SAME"):
    some = x.ndim - 2
    made = jax.lax.conv_general_dilated(
        x, layer["w"], (stride,) * some, padding, dimension_numbers=_order(some)
    )
    return made + layer["b"] if "b" in layer else made


def up(jax, layer, x):
    """A transposed convolution that doubles each side."""
    some = x.ndim - 2
    made = jax.lax.conv_transpose(
        x, layer["w"], (2,) * some, "VALID", dimension_numbers=_order(some)
    )
    return made + layer["b"]


def max_pool(jax, x, side, stride, padding="VALID"):
    some = x.ndim - 2
    if not isinstance(padding, str):
        padding = [(0, 0)] + list(padding) + [(0, 0)]
    return jax.lax.reduce_window(
        x,
        -math.inf,
        jax.lax.max,
        (1,) + (side,) * some + (1,),
        (1,) + (stride,) * some + (1,),
        padding,
    )


def norm_init(jax, channels):
    return {"scale": jax.numpy.ones((channels,)), "shift": jax.numpy.zeros((channels,))}


def batch_norm_state(jax, channels):
    return {"mean": jax.numpy.zeros((channels,)), "variance": jax.numpy.ones((channels,))}


def batch_norm(jax, layer, state, x, train):
    """(result, running statistics)."""
    wide = x.astype(_wide(jax, x))
    if train:
        axes = tuple(range(x.ndim - 1))
        mean = wide.mean(axes)
        variance = ((wide - mean) ** 2).mean(axes)
        found = {"mean": mean, "variance": variance}
        state = {
            name: (_MOMENTUM * was + (1 - _MOMENTUM) * found[name]).astype(was.dtype)
            for name, was in state.items()
        }
    else:
        mean, variance = state["mean"], state["variance"]
    return _scaled(jax, layer, wide, mean, variance, 1e-5).astype(x.dtype), state


def layer_norm(jax, layer, x):
    wide = x.astype(_wide(jax, x))
    mean = wide.mean(-1, keepdims=True)
    variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
    return _scaled(jax, layer, wide, mean, variance, 1e-12).astype(x.dtype)


def _scaled(jax, layer, wide, mean, variance, epsilon):
    factor = jax.lax.rsqrt(variance + epsilon) * layer["scale"].astype(wide.dtype)
    return (wide - mean) * factor + layer["shift"].astype(wide.dtype)


def dropout(jax, key, x, rate):
    kept = jax.random.bernoulli(key, 1 - rate, x.shape)
    return jax.numpy.where(kept, x / (1 - rate), jax.numpy.zeros_like(x))


def cross_entropy(jax, logits, labels):
    """The mean over all places."""
    logits = logits.astype(_wide(jax, logits))
    found = jax.nn.log_softmax(logits)
    return -jax.numpy.take_along_axis(found, labels[..., None], axis=-1)[..., 0].mean()


def keys(jax, key):
    """Keys without an end, each of its own."""
    while True:
        key, own = jax.random.split(key)
        yield own


def _wide(jax, x):
    return jax.numpy.promote_types(x.dtype, jax.numpy.float32)


def _order(some):
    """Dimension numbers with channels last: ("NHWC", "HWIO", "NHWC")."""
    letters = _LETTERS[-some:]
    return "N%sC" % letters, "%sIO" % letters, "N%sC" % letters


def _product(numbers):
    total = 1
    for number in numbers:
        total *= number
    return total
