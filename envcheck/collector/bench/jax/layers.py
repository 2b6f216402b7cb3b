"""Interprets models in JAX: pure functions, weights in lists beside the layers, channels last.

Layers compute in the type of their input; sums of a normalisation or a softmax are taken in FP32.
"""

import math

from ..models import EPSILON, MOMENTUM, POSITIONS, TYPES

_ORDER = ("NHWC", "HWIO", "NHWC")


def parameters(jax, layers, key, inputs):
    """(weights, what is not trained) for such inputs: lists, an item a layer."""
    maker = JaxWeights(jax, key)
    weights, _width = maker.all(layers, inputs[0].shape[-1])
    return weights, {"norms": maker.norms, "random": maker.key()}


def outputs(jax, layers, weights, state, inputs):
    """(the logits, a list; the state after it)."""
    passing = JaxForward(jax, state, inputs)
    found = passing.all(layers, weights, inputs[0])
    after = {"norms": passing.norms, "random": passing.random}
    return found if isinstance(found, list) else [found], after


class JaxWeights(object):
    """Makes the weights of layers. A method returns (weights, channels or width after it)."""

    def __init__(self, jax, key):
        self._jax, self._numpy, self._random = jax, jax.numpy, key
        self.norms = []  # running statistics of each batch normalisation

    def key(self):
        self._random, own = self._jax.random.split(self._random)
        return own

    def all(self, layers, width):
        weights = []
        for layer in layers:
            make = getattr(self, "_" + layer.kind, None)
            made, width = make(width, **layer.options) if make else ({}, width)
            weights.append(made)
        return weights, width

    def _normal(self, shape, deviation):
        return deviation * self._jax.random.truncated_normal(self.key(), -2.0, 2.0, tuple(shape))

    def _conv(self, width, filters, side, stride=1, bias=True, same=True):
        made = {
            "w": self._normal((side, side, width, filters), (2.0 / (side * side * width)) ** 0.5)
        }
        if bias:
            made["b"] = self._numpy.zeros((filters,))
        return made, filters

    def _up(self, width, filters):
        return self._conv(width, filters, 2)

    def _batch_norm(self, width, zero):
        numpy = self._numpy
        self.norms.append({"mean": numpy.zeros((width,)), "variance": numpy.ones((width,))})
        scale = numpy.zeros((width,)) if zero else numpy.ones((width,))
        return {"scale": scale, "shift": numpy.zeros((width,))}, width

    def _layer_norm(self, width):
        return {"scale": self._numpy.ones((width,)), "shift": self._numpy.zeros((width,))}, width

    def _dense(self, inputs, width, deviation=None):
        deviation = deviation or (2.0 / (inputs + width)) ** 0.5
        made = {"w": self._normal((inputs, width), deviation), "b": self._numpy.zeros((width,))}
        return made, width

    def _flatten(self, width, cells):
        return {}, width * cells

    def _residual(self, width, main, shortcut):
        (weights, after), (beside, _width) = self.all(main, width), self.all(shortcut, width)
        return [weights, beside], after

    def _concat(self, width, inner):
        weights, more = self.all(inner, width)
        return weights, width + more

    def _heads(self, width, branches):
        return [self.all(branch, width)[0] for branch in branches], width

    def _embed(self, _width, vocabulary, width):
        sizes = {"words": vocabulary, "types": TYPES, "positions": POSITIONS}
        self._vocabulary = vocabulary
        return {name: self._normal((sizes[name], width), 0.02) for name in sorted(sizes)}, width

    def _attention(self, inputs, width, heads, dropped):
        return [self._dense(inputs, width, 0.02)[0] for _each in range(3)], width

    def _words(self, width):
        return {"b": self._numpy.zeros((self._vocabulary,))}, self._vocabulary


class JaxForward(object):
    """One forward pass."""

    def __init__(self, jax, state, inputs):
        self._jax, self._numpy, self._inputs = jax, jax.numpy, inputs
        self.norms, self._norm = list(state["norms"]), 0
        self.random = state["random"]

    def all(self, layers, weights, x):
        for layer, own in zip(layers, weights):
            x = getattr(self, "_" + layer.kind)(own, x, **layer.options)
        return x

    def _conv(self, own, x, filters, side, stride=1, bias=True, same=True):
        padding = [(side // 2, side // 2)] * 2 if same else "VALID"
        found = self._jax.lax.conv_general_dilated(
            x, own["w"], (stride, stride), padding, dimension_numbers=_ORDER
        )
        return found + own["b"] if bias else found

    def _up(self, own, x, filters):
        found = self._jax.lax.conv_transpose(x, own["w"], (2, 2), "VALID", dimension_numbers=_ORDER)
        return found + own["b"]

    def _max_pool(self, own, x, side, stride, same=False):
        each = side // 2 if same else 0
        padding = ((0, 0), (each, each), (each, each), (0, 0))
        window, strides = (1, side, side, 1), (1, stride, stride, 1)
        lax = self._jax.lax
        return lax.reduce_window(x, -math.inf, lax.max, window, strides, padding)

    def _batch_norm(self, own, x, zero):
        wide, number = self._wide(x), self._norm
        self._norm += 1
        mean = wide.mean((0, 1, 2))
        variance = ((wide - mean) ** 2).mean((0, 1, 2))
        found = {"mean": mean, "variance": variance}
        self.norms[number] = {
            name: (MOMENTUM * was + (1 - MOMENTUM) * found[name]).astype(was.dtype)
            for name, was in self.norms[number].items()
        }
        return self._scaled(own, wide, mean, variance, "batch_norm").astype(x.dtype)

    def _layer_norm(self, own, x):
        wide = self._wide(x)
        mean = wide.mean(-1, keepdims=True)
        variance = ((wide - mean) ** 2).mean(-1, keepdims=True)
        return self._scaled(own, wide, mean, variance, "layer_norm").astype(x.dtype)

    def _scaled(self, own, wide, mean, variance, kind):
        factor = self._jax.lax.rsqrt(variance + EPSILON[kind]) * own["scale"].astype(wide.dtype)
        return (wide - mean) * factor + own["shift"].astype(wide.dtype)

    def _activation(self, own, x, name):
        if name == "gelu":
            return self._jax.nn.gelu(x, approximate=False)
        return {"relu": self._jax.nn.relu, "tanh": self._numpy.tanh}[name](x)

    def _dense(self, own, x, width, deviation=None):
        return self._numpy.dot(x, own["w"]) + own["b"]

    def _dropout(self, own, x, rate):
        if not rate:
            return x
        self.random, key = self._jax.random.split(self.random)
        kept = self._jax.random.bernoulli(key, 1 - rate, x.shape)
        return self._numpy.where(kept, x / (1 - rate), self._numpy.zeros_like(x))

    def _mean(self, own, x):
        return x.mean((1, 2))

    def _flatten(self, own, x, cells):
        return x.reshape((x.shape[0], -1))

    def _residual(self, own, x, main, shortcut):
        return self.all(main, own[0], x) + self.all(shortcut, own[1], x)

    def _concat(self, own, x, inner):
        return self._numpy.concatenate([x, self.all(inner, own, x)], axis=-1)

    def _heads(self, own, x, branches):
        return [self.all(branch, one, x) for branch, one in zip(branches, own)]

    def _embed(self, own, x, vocabulary, width):
        self._table = own["words"]
        return own["words"][x] + own["types"][self._inputs[1]] + own["positions"][: x.shape[1]]

    def _attention(self, own, x, width, heads, dropped):
        numpy, shape = self._numpy, x.shape[:2] + (heads, width // heads)
        query, key, value = [self._dense(one, x, width).reshape(shape) for one in own]
        scores = self._wide(numpy.einsum("bqhd,bkhd->bhqk", query, key))
        weights = self._jax.nn.softmax(scores / math.sqrt(shape[-1])).astype(x.dtype)
        weights = self._dropout(None, weights, dropped)
        return numpy.einsum("bhqk,bkhd->bqhd", weights, value).reshape(x.shape)

    def _first(self, own, x):
        return x[:, 0]

    def _masked(self, own, x):
        return self._numpy.take_along_axis(x, self._inputs[2][..., None], axis=1)

    def _words(self, own, x):
        return self._numpy.dot(x, self._table.T) + own["b"]

    def _wide(self, x):
        return x.astype(self._numpy.promote_types(x.dtype, self._numpy.float32))


def loss(jax, targets, outputs):
    """The sum of the outputs' mean cross entropies."""
    numpy, total = jax.numpy, 0.0
    for one, logits in zip(targets, outputs):
        logits = logits.astype(numpy.promote_types(logits.dtype, numpy.float32))
        found = jax.nn.log_softmax(logits)
        total -= numpy.take_along_axis(found, one[..., None], axis=-1)[..., 0].mean()
    return total


class JaxDraw(object):
    """Samples as arrays (models.py)."""

    def __init__(self, jax, key):
        self._jax, self._key = jax, key

    def _next(self):
        self._key, own = self._jax.random.split(self._key)
        return own

    def normal(self, shape):
        return self._jax.random.normal(self._next(), tuple(shape))

    def classes(self, shape, number):
        return self._jax.random.randint(self._next(), tuple(shape), 0, number)

    def constant(self, values):
        return self._jax.numpy.asarray(values, "int32")
