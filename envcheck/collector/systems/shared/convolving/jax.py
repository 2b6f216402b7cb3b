"""JAX's side of the convolutions, compiled by jax.jit.

JAX has no switch for TF32: a convolution says its precision, or has the default, which the user sets.
"""

from ....kernels import framework_jax
from ....kernels.failures import NotSupported
from . import TYPES, Side

_CALL = 'custom_call_target="__cudnn$conv'


class JaxSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self._precision = None  # None: the user's default
        self._calls = None
        self._platform = "gpu" if self.on_gpu else "cpu"

    def absent(self):
        return framework_jax.adapter(self.module, self._platform).absent()

    def convolve(self, shape, kind, image, filter_, gradient=None):
        import numpy

        jax = self.module
        dtype = getattr(jax.numpy, TYPES[kind])
        place = jax.devices(self._platform)[0]
        numbers = [image, filter_] + ([gradient] if gradient is not None else [])
        # By numpy: every operation of JAX's own is compiled, too.
        arrays = [
            jax.device_put(numpy.array(one, "float32").reshape(size).astype(dtype), place)
            for one, size in zip(numbers, shape.sizes)
        ]
        precision = self._precision and getattr(jax.lax.Precision, self._precision)
        strides = [shape.stride] * shape.dimensions

        def convolution(x, w):
            return jax.lax.conv_general_dilated(x, w, strides, "VALID", precision=precision)

        def passes(x, w, *gradients):
            if not gradients:
                return (convolution(x, w),)
            y, back = jax.vjp(convolution, x, w)
            return (y,) + tuple(back(*gradients))

        function = jax.jit(passes)
        if self._calls is None and hasattr(function, "lower"):  # 0.4
            compiled = function.lower(*arrays).compile()
            self._calls = (compiled.as_text() or "").count(_CALL)
        made = function(*arrays)
        return [numpy.asarray(one).astype("float32").reshape(-1).tolist() for one in made]

    def by_cudnn(self):
        return self._calls

    def set_tf32(self, allowed):
        if not hasattr(self.module.lax, "Precision"):
            raise NotSupported("this JAX has no jax.lax.Precision")
        self._precision = (
            "HIGH" if allowed else "HIGHEST"
        )  # HIGH is what "tensorfloat32" stands for
