"""What the models are made of: TensorFlow 1's own layers, each weight's start from a seed of its own."""

_STRIDE = 100003  # between the seeds of two rows' weights


class SessionLayers(object):
    """Seeds count the weights and the data, not the graph's operations, which differ with the precision."""

    def __init__(self, tf, row, training, dtype=None, fused=True):
        """dtype: of inputs and weights. fused: batch normalisation as one operation."""
        self._tf = tf
        self._seed = row["seed"] * _STRIDE
        self._made = 0
        self._training = training
        self._fused = fused
        self.dtype = dtype or tf.float32

    def seed(self):
        self._made += 1
        return self._seed + self._made

    def normal(self, deviation):
        """An initializer. What is drawn is the same in every precision."""
        return self._cast(self._tf.truncated_normal_initializer(stddev=deviation, seed=self.seed()))

    def variance_scaling(self, scale, mode):
        return self._cast(
            self._tf.variance_scaling_initializer(scale=scale, mode=mode, seed=self.seed())
        )

    def he(self):
        return self.variance_scaling(2.0, "fan_in")

    def glorot(self):
        return self.variance_scaling(1.0, "fan_avg")

    def _cast(self, initializer):
        tf = self._tf

        def start(shape, dtype=None, partition_info=None):
            return tf.cast(initializer(shape, dtype=tf.float32), dtype or tf.float32)

        return start

    def random_normal(self, shape):
        return self._tf.random_normal(shape, seed=self.seed())

    def random_uniform(self, shape):
        return self._tf.random_uniform(shape, seed=self.seed())

    def random_classes(self, shape, number):
        """Of 64 bits: TensorFlow keeps variables of 32-bit integers in the host's memory."""
        return self._tf.random_uniform(shape, maxval=number, dtype=self._tf.int64, seed=self.seed())

    def convolution(self, x, filters, size, stride=1, **options):
        """In two or three dimensions, as its input is."""
        function = self._by_rank(x, "conv2d", "conv3d")
        options.setdefault("padding", "same")
        return function(x, filters, size, stride, kernel_initializer=self.he(), **options)

    def transposed(self, x, filters, size, stride):
        function = self._by_rank(x, "conv2d_transpose", "conv3d_transpose")
        return function(x, filters, size, stride, kernel_initializer=self.glorot())

    def pooled(self, x, size, stride, padding="valid"):
        return self._by_rank(x, "max_pooling2d", "max_pooling3d")(x, size, stride, padding)

    def _by_rank(self, x, two, three):
        return getattr(self._tf.layers, two if x.shape.ndims == 4 else three)

    def normalised(self, x, zero=False):
        """Batch normalisation. zero: its scale begins there."""
        tf = self._tf
        return tf.layers.batch_normalization(
            x,
            momentum=0.9,
            epsilon=1e-5,
            training=self._training,
            fused=self._fused,
            gamma_initializer=tf.zeros_initializer() if zero else tf.ones_initializer(),
        )

    def dense(self, x, wide, activation=None, initializer=None):
        start = initializer or self.glorot()
        return self._tf.layers.dense(x, wide, activation, kernel_initializer=start)
