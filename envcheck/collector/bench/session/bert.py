"""BERT as published, and a step of its pretraining: masked words, and whether a sentence follows."""

import math

from .. import architecture
from ..architecture import EPSILON, POSITIONS, TYPES, masked

_LENGTH = 128


def samples(tf, row, count, layers):
    """Words by chance; the masked ones are guessed as what they are, so that it can be learned."""
    length = row["length"] or _LENGTH
    number = masked(length)
    words = layers.random_classes([count, length], architecture.bert(row).vocabulary)
    types = tf.cast(tf.range(length) >= length // 2, tf.int64)
    places = tf.range(number, dtype=tf.int64) * (length // number)
    guessed = tf.gather(words, places, axis=1)
    inputs = [words, _repeated(tf, types, count), _repeated(tf, places, count)]
    return inputs, [guessed, layers.random_classes([count], 2)]


def _repeated(tf, values, count):
    return tf.tile(tf.expand_dims(values, 0), [count, 1])


def forward(tf, row, inputs, layers):
    """[logits of the masked words, logits of the sentence]"""
    size, (words, types, places) = architecture.bert(row), inputs
    bert = _Bert(tf, size, layers, architecture.dropped(row))
    count, length = words.shape.as_list()
    table = bert.table("words", size.vocabulary)
    x = tf.gather(table, words)
    # Of so small a table, a product is faster than a look into it.
    x += tf.tensordot(tf.one_hot(types, TYPES, dtype=layers.dtype), bert.table("types", TYPES), 1)
    x = bert.dropped(bert.normalised(x + bert.table("positions", POSITIONS)[:length]))
    x = tf.reshape(x, [count * length, size.width])
    for _layer in range(size.layers):
        x = bert.normalised(x + bert.dropped(bert.dense(bert.attended(x, count, length))))
        wide = bert.dense(x, 4 * size.width, bert.gelu)
        x = bert.normalised(x + bert.dropped(bert.dense(wide)))
    first = tf.reshape(x, [count, length, size.width])[:, 0]
    follows = bert.dense(bert.dense(first, activation=tf.tanh), 2)
    begins = tf.expand_dims(tf.range(count, dtype=tf.int64) * length, 1)
    x = tf.gather(x, tf.reshape(places + begins, [-1]))
    x = bert.normalised(bert.dense(x, activation=bert.gelu))
    bias = tf.get_variable("bias", [size.vocabulary], layers.dtype, tf.zeros_initializer())
    logits = tf.matmul(x, table, transpose_b=True) + bias
    return [tf.reshape(logits, [count, -1, size.vocabulary]), follows]


def loss(tf, targets, outputs):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    return sum(
        tf.reduce_mean(entropy(labels=one, logits=logits)) for one, logits in zip(targets, outputs)
    )


def optimizer(tf):
    return tf.train.AdamOptimizer(0.0001)


class _Bert(object):
    """What its layers have in common."""

    def __init__(self, tf, size, layers, rate):
        self._tf, self._size, self._layers, self._rate = tf, size, layers, rate

    def table(self, name, rows):
        shape = [rows, self._size.width]
        return self._tf.get_variable(name, shape, self._layers.dtype, self._layers.normal(0.02))

    def dense(self, x, wide=None, activation=None):
        start = self._layers.normal(0.02)
        return self._layers.dense(x, wide or self._size.width, activation, start)

    def dropped(self, x):
        return self._tf.nn.dropout(x, rate=self._rate) if self._rate else x

    def normalised(self, x):
        """Layer normalisation."""
        tf, width = self._tf, [self._size.width]
        with tf.variable_scope(None, "normalised"):
            scale = tf.get_variable("scale", width, self._layers.dtype, tf.ones_initializer())
            shift = tf.get_variable("shift", width, self._layers.dtype, tf.zeros_initializer())
        mean, variance = tf.nn.moments(x, [-1], keep_dims=True)
        return tf.nn.batch_normalization(x, mean, variance, shift, scale, EPSILON)

    def attended(self, x, count, length):
        """Every word looks at all others, by several heads at once."""
        tf, size = self._tf, self._size
        each = size.width // size.heads

        def split(x):
            return tf.transpose(tf.reshape(x, [count, length, size.heads, each]), [0, 2, 1, 3])

        query, key, value = [split(self.dense(x)) for _each in range(3)]
        scores = tf.matmul(query, key, transpose_b=True) * (1.0 / math.sqrt(each))
        weights = self.dropped(tf.nn.softmax(scores))
        mixed = tf.transpose(tf.matmul(weights, value), [0, 2, 1, 3])
        return tf.reshape(mixed, [count * length, size.width])

    def gelu(self, x):
        """As BERT's authors compute it."""
        return 0.5 * x * (1.0 + self._tf.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
