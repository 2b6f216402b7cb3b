"""Interprets models in TensorFlow 1: layers become operations of a graph, and samples variables of it."""

import math

from ..models import EPSILON, MODELS, MOMENTUM, POSITIONS, TYPES

SCOPE = "model"
_STRIDE = 100003  # between the seeds of two rows' weights


class SessionLayers(object):
    """Each weight has a seed of its own: operations of a graph are counted otherwise in each precision."""

    def __init__(self, tf, row, dtype=None, fused=True):
        """fused: batch normalisation as one operation."""
        self._tf, self._fused = tf, fused
        self._seed = row["seed"] * _STRIDE
        self._dtype = dtype or tf.float32

    def outputs(self, layers, inputs):
        """The logits, a list."""
        self._inputs = inputs
        found = self.apply(layers, inputs[0])
        return found if isinstance(found, list) else [found]

    def apply(self, layers, x):
        for layer in layers:
            x = getattr(self, "_" + layer.kind)(x, **layer.options)
        return x

    def _start(self, scale=1.0, mode="fan_avg", deviation=None):
        self._seed += 1
        if deviation is not None:
            return self._tf.truncated_normal_initializer(stddev=deviation, seed=self._seed)
        return self._tf.variance_scaling_initializer(scale=scale, mode=mode, seed=self._seed)

    def _variable(self, name, shape, start):
        return self._tf.get_variable(name, shape, self._dtype, start)

    def _conv(self, x, filters, side, stride=1, bias=True, same=True):
        return self._tf.layers.conv2d(
            x,
            filters,
            side,
            stride,
            "same" if same else "valid",
            use_bias=bias,
            kernel_initializer=self._start(2.0, "fan_in"),
        )

    def _up(self, x, filters):
        return self._tf.layers.conv2d_transpose(x, filters, 2, 2, kernel_initializer=self._start())

    def _max_pool(self, x, side, stride, same=False):
        return self._tf.layers.max_pooling2d(x, side, stride, "same" if same else "valid")

    def _batch_norm(self, x, zero):
        tf = self._tf
        return tf.layers.batch_normalization(
            x,
            momentum=MOMENTUM,
            epsilon=EPSILON["batch_norm"],
            training=True,
            fused=self._fused,
            gamma_initializer=tf.zeros_initializer() if zero else tf.ones_initializer(),
        )

    def _layer_norm(self, x):
        tf, width = self._tf, [int(x.shape[-1])]
        with tf.variable_scope(None, "layer_norm"):
            scale = self._variable("scale", width, tf.ones_initializer())
            shift = self._variable("shift", width, tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, EPSILON["layer_norm"])

    def _activation(self, x, name):
        tf = self._tf
        if name == "gelu":  # as BERT's authors compute it
            return 0.5 * x * (1.0 + tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return {"relu": tf.nn.relu, "tanh": tf.tanh}[name](x)

    def _dense(self, x, width, deviation=None):
        return self._tf.layers.dense(x, width, kernel_initializer=self._start(deviation=deviation))

    def _dropout(self, x, rate):
        return self._tf.nn.dropout(x, rate=rate)

    def _mean(self, x):
        return self._tf.reduce_mean(x, [1, 2])

    def _flatten(self, x, cells):
        return self._tf.layers.flatten(x)

    def _residual(self, x, main, shortcut):
        return self.apply(shortcut, x) + self.apply(main, x)

    def _concat(self, x, inner):
        return self._tf.concat([x, self.apply(inner, x)], -1)

    def _heads(self, x, branches):
        return [self.apply(branch, x) for branch in branches]

    def _embed(self, words, vocabulary, width):
        tf, types = self._tf, self._inputs[1]
        self._table = self._variable("words", [vocabulary, width], self._start(deviation=0.02))
        positions = self._variable("positions", [POSITIONS, width], self._start(deviation=0.02))
        kinds = self._variable("types", [TYPES, width], self._start(deviation=0.02))
        # Of so small a table, a product is faster than a look into it.
        chosen = tf.tensordot(tf.one_hot(types, TYPES, dtype=self._dtype), kinds, 1)
        return tf.gather(self._table, words) + chosen + positions[: int(words.shape[1])]

    def _attention(self, x, width, heads, dropped):
        tf, (count, length, _width) = self._tf, x.shape.as_list()

        def split(x):
            parts = tf.reshape(x, [count, length, heads, width // heads])
            return tf.transpose(parts, [0, 2, 1, 3])

        query, key, value = [split(self._dense(x, width, 0.02)) for _each in range(3)]
        scores = tf.matmul(query, key, transpose_b=True) * (width // heads) ** -0.5
        weights = tf.nn.softmax(scores)
        if dropped:
            weights = self._dropout(weights, dropped)
        mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tf.reshape(mixed, [count, length, width])

    def _first(self, x):
        return x[:, 0]

    def _masked(self, x):
        tf, (count, length, width) = self._tf, x.shape.as_list()
        begins = tf.expand_dims(tf.range(count, dtype=tf.int64) * length, 1)
        found = tf.gather(tf.reshape(x, [-1, width]), tf.reshape(self._inputs[2] + begins, [-1]))
        return tf.reshape(found, [count, -1, width])

    def _words(self, x):
        """Logits by the embedding's own table."""
        tf, (vocabulary, width) = self._tf, self._table.shape.as_list()
        bias = self._variable("bias", [vocabulary], tf.zeros_initializer())
        logits = tf.matmul(tf.reshape(x, [-1, width]), self._table, transpose_b=True) + bias
        return tf.reshape(logits, [int(x.shape[0]), -1, vocabulary])


def forward(tf, row, inputs):
    with tf.variable_scope(SCOPE):
        return SessionLayers(tf, row).outputs(MODELS[row["model"]].layers(row), inputs)


def loss(tf, targets, outputs):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return tf.add_n(
        [
            tf.reduce_mean(entropy(labels=one, logits=logits))
            for one, logits in zip(targets, outputs)
        ]
    )


class SessionDraw(object):
    """Samples as tensors (models.py)."""

    def __init__(self, tf, row):
        self._tf, self._seed = tf, row["seed"] * _STRIDE + _STRIDE // 3

    def _next(self):
        self._seed += 1
        return self._seed

    def normal(self, shape):
        return self._tf.random_normal(shape, seed=self._next())

    def classes(self, shape, number):
        """Of 64 bits: TensorFlow keeps variables of 32-bit integers in the host's memory."""
        tf = self._tf
        return tf.random_uniform(shape, maxval=number, dtype=tf.int64, seed=self._next())

    def constant(self, values):
        return self._tf.constant(values, self._tf.int64)
