"""BERT as published, and a step of its pretraining: masked words, and whether one sentence follows."""

import collections

from .. import architecture
from ..architecture import EPSILON, POSITIONS, TYPES, masked

OPTIMIZER, SETTINGS = "Adam", {"learning_rate": 0.0001}
_LENGTH = 128


def make(tf, row):
    """The model of (words, types, masked positions) gives (logits of the masked words, of the sentence)."""
    keras = tf.keras
    layers = keras.layers
    kinds = _kinds(tf)
    size, length = architecture.bert(row), row["length"] or _LENGTH
    rate = architecture.dropped(row)
    words = keras.Input((length,), dtype="int64")
    types = keras.Input((length,), dtype="int64")
    places = keras.Input((masked(length),), dtype="int64")

    def dense(wide, activation=None):
        return layers.Dense(wide, activation=activation, kernel_initializer=_normal(tf))

    def dropped(x):
        return layers.Dropout(rate)(x) if rate else x

    embedding = layers.Embedding(size.vocabulary, size.width, embeddings_initializer=_normal(tf))
    kind = layers.Embedding(TYPES, size.width, embeddings_initializer=_normal(tf))
    x = layers.Add()([embedding(words), kind(types)])
    x = dropped(layers.LayerNormalization(epsilon=EPSILON)(kinds.BertPositions(size.width)(x)))
    for _layer in range(size.layers):
        attended = dense(size.width)(kinds.BertAttention(size.width, size.heads, rate)(x))
        x = layers.LayerNormalization(epsilon=EPSILON)(layers.Add()([x, dropped(attended)]))
        wide = dropped(dense(size.width)(dense(4 * size.width, _gelu(tf))(x)))
        x = layers.LayerNormalization(epsilon=EPSILON)(layers.Add()([x, wide]))
    first = kinds.BertFirst()(x)
    follows = dense(2)(dense(size.width, "tanh")(first))
    x = dense(size.width, _gelu(tf))(kinds.BertTaken()([x, places]))
    x = layers.LayerNormalization(epsilon=EPSILON)(x)
    return keras.Model([words, types, places], [kinds.BertWords(embedding)(x), follows])


def samples(tf, row, count):
    """Words by chance; the masked ones are guessed as what they are, so that it can be learned."""
    seed, size, length = row["seed"], architecture.bert(row), row["length"] or _LENGTH

    def chosen(shape, most, place):
        return tf.random.stateless_uniform(shape, [seed, place], maxval=most, dtype=tf.int64)

    words = chosen([count, length], size.vocabulary, 1)
    types = tf.cast(tf.range(length) >= length // 2, tf.int64) * tf.ones([count, 1], tf.int64)
    number = masked(length)
    places = tf.range(number, dtype=tf.int64) * (length // number)
    places = places + tf.zeros([count, 1], tf.int64)
    guessed = tf.gather(words, places, batch_dims=1)
    return (words, types, places), (guessed, chosen([count], 2, 2))


def loss(tf, targets, outputs):
    entropy = tf.nn.sparse_softmax_cross_entropy_with_logits
    words = tf.reduce_mean(entropy(targets[0], outputs[0]), axis=1)
    return words + entropy(targets[1], outputs[1])


def _normal(tf):
    return tf.keras.initializers.TruncatedNormal(stddev=0.02)


def _gelu(tf):
    """GELU, which TensorFlow has from 2.4 on."""
    if hasattr(tf.nn, "gelu"):
        return tf.nn.gelu
    return lambda x: 0.5 * x * (1.0 + tf.math.erf(x * 0.5**0.5))


def _kinds(tf):
    """The layers that Keras does not have, or not in every version."""
    layers = tf.keras.layers

    class BertPositions(layers.Layer):
        def __init__(self, width):
            layers.Layer.__init__(self)
            self._width = width

        def build(self, shape):
            self._table = self.add_weight(
                name="positions", shape=(POSITIONS, self._width), initializer=_normal(tf)
            )
            self.built = True

        def call(self, x):
            return x + tf.cast(self._table, x.dtype)[: x.shape[1]]

    class BertAttention(layers.Layer):
        """Every word looks at all others, by several heads at once."""

        def __init__(self, width, heads, rate):
            layers.Layer.__init__(self)
            self._dropout = layers.Dropout(rate)
            self._heads, self._each = heads, width // heads
            made = [layers.Dense(width, kernel_initializer=_normal(tf)) for _each in range(3)]
            self.query, self.key, self.value = made

        def build(self, shape):
            for one in (self.query, self.key, self.value):
                one.build(shape)
            self.built = True

        def call(self, x, training=None):
            length = x.shape[1]

            def split(one):
                return tf.reshape(one(x), [-1, length, self._heads, self._each])

            query, key, value = split(self.query), split(self.key), split(self.value)
            scores = tf.einsum("bqhd,bkhd->bhqk", query, key) * self._each**-0.5
            weights = self._dropout(tf.nn.softmax(scores), training=training)
            mixed = tf.einsum("bhqk,bkhd->bqhd", weights, value)
            return tf.reshape(mixed, [-1, length, self._heads * self._each])

        def compute_output_shape(self, shape):
            return shape

    class BertFirst(layers.Layer):
        def call(self, x):
            return x[:, 0]

    class BertTaken(layers.Layer):
        """The words at some places."""

        def call(self, given):
            x, places = given
            return tf.gather(x, tf.cast(places, tf.int64), batch_dims=1)

    class BertWords(layers.Layer):
        """Logits by the embedding's own table, which makes them, too, and a bias."""

        def __init__(self, embedding):
            layers.Layer.__init__(self)
            self.embedding = embedding

        def build(self, shape):
            words = self.embedding.input_dim
            self.bias = self.add_weight(name="bias", shape=(words,), initializer="zeros")
            self.built = True

        def call(self, x):
            table = tf.cast(self.embedding.embeddings, x.dtype)
            logits = tf.einsum("bpw,vw->bpv", x, table)
            return logits + tf.cast(self.bias, x.dtype)

    made = (BertPositions, BertAttention, BertFirst, BertTaken, BertWords)
    names = [one.__name__ for one in made]
    return collections.namedtuple("BertKinds", names)(*made)
