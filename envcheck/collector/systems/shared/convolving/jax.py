"""JAX's side of the convolutions, compiled by jax.jit.

JAX has no switch for TF32: a convolution says its precision, or has the default, which the user sets.
"""

from ....kernels import framework_jax
from ....kernels.failures import NotSupported
from . import Side

_TYPES = {"FP32": "float32", "TF32": "float32", "FP16": "float16", "BF16": "bfloat16"}
_PRECISION = {"FP32": "HIGHEST", "TF32": "HIGH"}  # HIGH is what "tensorfloat32" stands for


class JaxSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self._asked = None  # the precision of what ``words`` makes; None: the user's default
        self._calls = None

    def absent(self):
        return framework_jax.adapter(self.module, self._platform).absent() or ""

    @property
    def _platform(self):
        return "gpu" if self.on_gpu else "cpu"

    def convolve(self, shape, kind, image, filter_, gradient):
        import numpy

        jax = self.module
        dtype = getattr(jax.numpy, _TYPES[kind])
        self.choose(kind)
        place = jax.devices(self._platform)[0]
        # All but the convolution by numpy: every operation of JAX's own is compiled, too.
        arrays = [
            jax.device_put(numpy.array(numbers, "float32").reshape(size).astype(dtype), place)
            for numbers, size in zip((image, filter_, gradient), self._sizes(shape))
        ]
        convolution = self._convolution(shape, _PRECISION.get(kind))

        def passes(x, w, g):
            y, back = jax.vjp(convolution, x, w)
            return (y,) + tuple(back(g))

        made = self._compiled(jax.jit(passes), arrays)(*arrays)
        return [numpy.asarray(one).astype("float32").reshape(-1).tolist() for one in made]

    def words(self, shape, image, filter_):
        import numpy

        jax = self.module
        place = jax.devices(self._platform)[0]
        arrays = [
            jax.device_put(numpy.frombuffer(data, "float32").reshape(size), place)
            for data, size in zip((image, filter_), self._sizes(shape))
        ]
        made = jax.jit(self._convolution(shape, self._asked))(*arrays)
        return numpy.asarray(made).tobytes()

    def _convolution(self, shape, precision):
        lax = self.module.lax
        if precision is not None:
            precision = getattr(lax.Precision, precision)

        def convolution(x, w):
            strides = [shape.stride] * shape.dimensions
            return lax.conv_general_dilated(x, w, strides, "VALID", precision=precision)

        return convolution

    def _compiled(self, function, arrays):
        """The function compiled, with cuDNN's calls in it counted; as it is, before 0.4."""
        try:
            compiled = function.lower(*arrays).compile()
            if self._calls is None:
                self._calls = (compiled.as_text() or "").count('custom_call_target="__cudnn$conv')
        except (AttributeError, TypeError):
            return function
        return compiled

    def _sizes(self, shape):
        some = shape.dimensions
        edge = (shape.edge - shape.kernel) // shape.stride + 1
        return (
            [shape.batch, shape.inputs] + [shape.edge] * some,
            [shape.outputs, shape.inputs] + [shape.kernel] * some,
            [shape.batch, shape.outputs] + [edge] * some,
        )

    def ran_by(self):
        return {} if self._calls is None else {"cudnn": self._calls}

    def flag(self):
        if self._asked:
            return "precision is jax.lax.Precision.%s" % self._asked
        default = getattr(self.module.config, "jax_default_matmul_precision", None)
        return "jax_default_matmul_precision is %s" % default

    def set_tf32(self, allowed):
        if not hasattr(self.module.lax, "Precision"):
            raise NotSupported("this JAX has no jax.lax.Precision")
        self._asked = "HIGH" if allowed else "HIGHEST"
