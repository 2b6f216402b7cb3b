"""L2 in JAX: jax.numpy.matmul under jit, with the precision that the setting asks for.

JAX has no switch for TF32: a product says its precision, or has the user's default. On a GPU that default
lets XLA use TF32, and HIGHEST is what keeps it in FP32 (jax.lax.Precision's documentation).
"""

from .adapter import TF32, Adapter, Product

_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}
_PRECISION = {True: "tensorfloat32", False: "highest", None: None}  # by what TF32 is to be


def adapter(jax, device="gpu"):
    return Jax(jax, device)


class Jax(Adapter):
    """device: a platform's name, "gpu"; its first device is taken once ``absent`` has found it."""

    name = "JAX"
    function = "jax.numpy.matmul"
    compiles = True

    def __init__(self, module, device):
        Adapter.__init__(self, module, None)
        self._platform = device
        self._compiled = {}

    def absent(self):
        why = "JAX sees no GPU here: jax.devices(%r)" % self._platform
        try:
            self.device = self.module.devices(self._platform)[0]
        except IndexError:
            return why + " is empty"
        except RuntimeError as error:  # its way of saying that it has none
            return "%s: %s" % (why, " ".join(str(error).split()))
        return None

    def switch(self, setting):
        pass  # it is a part of the product

    def call(self, setting):
        precision = _PRECISION[TF32.get(setting)]
        if precision is not None:
            return "%s, precision=%r" % (self.function, precision)
        default = getattr(self.module.config, "jax_default_matmul_precision", None)
        return "%s, jax_default_matmul_precision is %s" % (self.function, default)

    def product(self, setting, element_type, shape, data=None):
        m, n, k = shape
        dtype = getattr(self.module.numpy, _TYPES[element_type])
        matrices = [
            self._random(dtype, size, seed)
            if data is None
            else self._matrix(dtype, size, data[seed])
            for seed, size in enumerate(((m, k), (k, n)))
        ]
        return JaxProduct(self, setting, shape, matrices)

    def compiled(self, precision):
        """The product under jit, the same function each time, so that nothing is compiled twice."""
        if precision not in self._compiled:
            numpy = self.module.numpy

            # The matrices are arguments of what is compiled, never its constants: nothing to fold.
            def matmul(left, right):
                return numpy.matmul(left, right, precision=precision)

            self._compiled[precision] = self.module.jit(matmul)
        return self._compiled[precision]

    def _random(self, dtype, shape, seed):
        jax = self.module
        with jax.default_device(self.device):
            return jax.random.normal(jax.random.PRNGKey(seed), shape).astype(dtype)

    def _matrix(self, dtype, shape, data):
        import numpy

        array = numpy.frombuffer(data, dtype=self.module.numpy.dtype(dtype)).reshape(shape)
        return self.module.device_put(array, self.device)

    def ping(self):
        import numpy

        one = self.module.device_put(numpy.ones(8, numpy.float32), self.device)
        if float((one + one).sum()) != 16.0:
            raise RuntimeError("eight times 1 + 1 is not 16 on %s" % self.device)


class JaxProduct(Product):
    def __init__(self, adapter, setting, shape, matrices):
        Product.__init__(self, adapter, setting, shape)
        self._left, self._right = matrices
        self._function = adapter.compiled(_PRECISION[TF32.get(setting)])

    def launch(self):
        return self._function(self._left, self._right)

    def wait(self, result):
        result.block_until_ready()

    def data(self, result):
        import numpy

        return numpy.asarray(result).tobytes()
