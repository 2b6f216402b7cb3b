"""Interprets models in Keras: each layer one of Keras', or a small one of our own."""

from ..models import EPSILON, MOMENTUM, POSITIONS, TYPES


def model(tf, row, layers, inputs):
    """A Keras model for such inputs, whose outputs are logits."""
    given = [tf.keras.Input(one.shape[1:], dtype=one.dtype.name) for one in inputs]
    outputs = KerasLayers(tf, given).apply(layers, given[0])
    return tf.keras.Model(given if len(given) > 1 else given[0], outputs)


class KerasLayers(object):
    def __init__(self, tf, inputs):
        self._tf, self._inputs = tf, inputs
        self._layers = tf.keras.layers

    def apply(self, layers, x):
        for layer in layers:
            x = getattr(self, "_" + layer.kind)(x, **layer.options)
        return x

    def _normal(self, deviation=0.02):
        return self._tf.keras.initializers.TruncatedNormal(stddev=deviation)

    def _conv(self, x, filters, side, stride=1, bias=True, same=True):
        return self._layers.Conv2D(
            filters,
            side,
            strides=stride,
            padding="same" if same else "valid",
            use_bias=bias,
            kernel_initializer="he_normal",
        )(x)

    def _up(self, x, filters):
        return self._layers.Conv2DTranspose(filters, 2, strides=2)(x)

    def _max_pool(self, x, side, stride, same=False):
        padding = "same" if same else "valid"
        return self._layers.MaxPooling2D(side, strides=stride, padding=padding)(x)

    def _batch_norm(self, x, zero):
        return self._layers.BatchNormalization(
            momentum=MOMENTUM,
            epsilon=EPSILON["batch_norm"],
            gamma_initializer="zeros" if zero else "ones",
        )(x)

    def _layer_norm(self, x):
        return self._layers.LayerNormalization(epsilon=EPSILON["layer_norm"])(x)

    def _activation(self, x, name):
        if name == "gelu":
            return self._layers.Activation(_gelu(self._tf))(x)
        return self._layers.Activation(name)(x)

    def _dense(self, x, width, deviation=None):
        start = "glorot_uniform" if deviation is None else self._normal(deviation)
        return self._layers.Dense(width, kernel_initializer=start)(x)

    def _dropout(self, x, rate):
        return self._layers.Dropout(rate)(x)

    def _mean(self, x):
        return self._layers.GlobalAveragePooling2D()(x)

    def _flatten(self, x, cells):
        return self._layers.Flatten()(x)

    def _residual(self, x, main, shortcut):
        return self._layers.Add()([self.apply(shortcut, x), self.apply(main, x)])

    def _concat(self, x, inner):
        return self._layers.Concatenate()([x, self.apply(inner, x)])

    def _heads(self, x, branches):
        return [self.apply(branch, x) for branch in branches]

    def _embed(self, words, vocabulary, width):
        layers = self._layers
        self._table = layers.Embedding(vocabulary, width, embeddings_initializer=self._normal())
        types = layers.Embedding(TYPES, width, embeddings_initializer=self._normal())
        x = layers.Add()([self._table(words), types(self._inputs[1])])
        return _positions(self._tf, width, self._normal())(x)

    def _attention(self, x, width, heads, dropped):
        parts = [self._dense(x, width, 0.02) for _each in range(3)]
        return _attention(self._tf, width, heads, dropped)(parts)

    def _first(self, x):
        return _call(self._tf, "BertFirst", lambda x: x[:, 0])(x)

    def _masked(self, x):
        tf = self._tf

        def masked(given):
            return tf.gather(given[0], tf.cast(given[1], tf.int64), batch_dims=1)

        return _call(tf, "BertMasked", masked)([x, self._inputs[2]])

    def _words(self, x):
        return _words(self._tf, self._table)(x)


def loss(tf, targets, outputs):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return tf.add_n(
        [
            tf.reduce_mean(entropy(one, tf.cast(logits, tf.float32)))
            for one, logits in zip(targets, outputs)
        ]
    )


def _gelu(tf):
    """GELU, which TensorFlow has from 2.4 on."""
    if hasattr(tf.nn, "gelu"):
        return tf.nn.gelu
    return lambda x: 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


def _call(tf, name, function):
    """A layer without weights. Lambda layers are not saved by all versions."""
    return type(name, (tf.keras.layers.Layer,), {"call": lambda self, given: function(given)})()


def _positions(tf, width, start):
    class BertPositions(tf.keras.layers.Layer):
        def build(self, shape):
            self.table = self.add_weight(
                name="positions", shape=(POSITIONS, width), initializer=start
            )
            self.built = True

        def call(self, x):
            return x + tf.cast(self.table, x.dtype)[: x.shape[1]]

    return BertPositions()


def _attention(tf, width, heads, dropped):
    class BertAttention(tf.keras.layers.Layer):
        def __init__(self):
            tf.keras.layers.Layer.__init__(self)
            self.dropout = tf.keras.layers.Dropout(dropped)

        def call(self, given, training=None):
            length, each = given[0].shape[1], width // heads
            query, key, value = [tf.reshape(one, [-1, length, heads, each]) for one in given]
            scores = tf.einsum("bqhd,bkhd->bhqk", query, key) * each**-0.5
            weights = self.dropout(tf.nn.softmax(scores), training=training)
            return tf.reshape(tf.einsum("bhqk,bkhd->bqhd", weights, value), [-1, length, width])

        def compute_output_shape(self, shapes):
            return shapes[0]

    return BertAttention()


def _words(tf, embedding):
    class BertWords(tf.keras.layers.Layer):
        """Logits by the embedding's own table, and a bias."""

        def __init__(self):
            tf.keras.layers.Layer.__init__(self)
            self.embedding = embedding

        def build(self, shape):
            words = self.embedding.input_dim
            self.bias = self.add_weight(name="bias", shape=(words,), initializer="zeros")
            self.built = True

        def call(self, x):
            table = tf.cast(self.embedding.embeddings, x.dtype)
            return tf.einsum("bpw,vw->bpv", x, table) + tf.cast(self.bias, x.dtype)

    return BertWords()


class KerasDraw(object):
    """Samples as tensors (models.py)."""

    def __init__(self, tf, row):
        self._tf, self._seed, self._number = tf, row["seed"], 0

    def _next(self):
        self._number += 1
        return [self._seed, self._number]

    def normal(self, shape):
        return self._tf.random.stateless_normal(shape, self._next())

    def classes(self, shape, number):
        tf = self._tf
        return tf.random.stateless_uniform(shape, self._next(), maxval=number, dtype=tf.int64)

    def constant(self, values):
        return self._tf.constant(values, self._tf.int64)
