"""BERT as published, and its pretraining: masked words and the next sentence."""

import math

from .. import architecture
from ..architecture import POSITIONS, TYPES, masked
from . import layers

OPTIMIZER = "adam"
RATE = 1e-4
_DEVIATION = 0.02


def init(jax, row, key):
    layer_count, width, _heads, words = architecture.bert(row)
    some = layers.keys(jax, key)

    def table(rows):
        return _DEVIATION * jax.random.truncated_normal(next(some), -2.0, 2.0, (rows, width))

    def dense(inputs, outputs):
        return layers.dense_init(jax, next(some), inputs, outputs, _DEVIATION)

    def encoder():
        return {
            "query": dense(width, width),
            "key": dense(width, width),
            "value": dense(width, width),
            "attended": dense(width, width),
            "attended_norm": layers.norm_init(jax, width),
            "inner": dense(width, 4 * width),
            "outer": dense(4 * width, width),
            "norm": layers.norm_init(jax, width),
        }

    params = {
        "words": table(words),
        "positions": table(POSITIONS),
        "types": table(TYPES),
        "norm": layers.norm_init(jax, width),
        "layers": [encoder() for _layer in range(layer_count)],
        "pooler": dense(width, width),
        "transform": dense(width, width),
        "transform_norm": layers.norm_init(jax, width),
        "words_bias": jax.numpy.zeros((words,)),
        "next": dense(width, 2),
    }
    return params, {"random": next(some)} if architecture.dropped(row) else {}


def apply(jax, row, params, state, inputs, train):
    heads, length = architecture.bert(row).heads, inputs["words"].shape[1]
    drop, state = _dropping(jax, state, train, architecture.dropped(row))
    x = params["words"][inputs["words"]] + params["types"][inputs["types"]]
    x = drop(layers.layer_norm(jax, params["norm"], x + params["positions"][:length]))
    for layer in params["layers"]:
        attended = layers.dense(jax, layer["attended"], _attention(jax, layer, x, heads, drop))
        x = layers.layer_norm(jax, layer["attended_norm"], x + drop(attended))
        inner = jax.nn.gelu(layers.dense(jax, layer["inner"], x), approximate=False)
        outer = layers.dense(jax, layer["outer"], inner)
        x = layers.layer_norm(jax, layer["norm"], x + drop(outer))
    pooled = drop(jax.numpy.tanh(layers.dense(jax, params["pooler"], x[:, 0])))
    hidden = jax.numpy.take_along_axis(x, inputs["places"][..., None], axis=1)
    hidden = jax.nn.gelu(layers.dense(jax, params["transform"], hidden), approximate=False)
    hidden = layers.layer_norm(jax, params["transform_norm"], hidden)
    words = jax.numpy.dot(hidden, params["words"].T) + params["words_bias"]
    return {"words": words, "next": layers.dense(jax, params["next"], pooled)}, state


def _dropping(jax, state, train, rate):
    """(what drops some numbers, the state after it)."""
    if not train or "random" not in state:
        return lambda x: x, state
    key, own = jax.random.split(state["random"])
    some = layers.keys(jax, own)
    return lambda x: layers.dropout(jax, next(some), x, rate), {"random": key}


def _attention(jax, layer, x, heads, drop):
    batch, length, width = x.shape

    def parts(name):
        return layers.dense(jax, layer[name], x).reshape((batch, length, heads, width // heads))

    scores = jax.numpy.einsum("bqhd,bkhd->bhqk", parts("query"), parts("key"))
    wide = jax.numpy.promote_types(x.dtype, jax.numpy.float32)
    weights = jax.nn.softmax(scores.astype(wide) / math.sqrt(width // heads)).astype(x.dtype)
    return jax.numpy.einsum("bhqk,bkhd->bqhd", drop(weights), parts("value")).reshape(x.shape)


def loss(jax, row, outputs, targets):
    words = layers.cross_entropy(jax, outputs["words"], targets["words"])
    return words + layers.cross_entropy(jax, outputs["next"], targets["next"])


def data(jax, row, key, batch):
    length, words = row["length"], architecture.bert(row).vocabulary
    some = layers.keys(jax, key)
    size, hidden = (batch, length), (batch, masked(length))
    inputs = {
        "words": jax.random.randint(next(some), size, 0, words),
        "types": (jax.numpy.arange(length) >= length // 2).astype("int32")
        * jax.numpy.ones(size, "int32"),
        "places": jax.random.randint(next(some), hidden, 0, length),
    }
    targets = {
        "words": jax.random.randint(next(some), hidden, 0, words),
        "next": jax.random.randint(next(some), (batch,), 0, 2),
    }
    return inputs, targets
