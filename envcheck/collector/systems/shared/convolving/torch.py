"""PyTorch's side of the convolutions."""

import contextlib
import ctypes

from ....cuda import libraries
from ....kernels.failures import NotSupported
from . import Side, asked
from . import reference as convolutions

_TYPES = {"FP32": "float32", "TF32": "float32", "FP16": "float16", "BF16": "bfloat16"}


class TorchSide(Side):
    def __init__(self, module, device):
        Side.__init__(self, module, device)
        self.device = "cuda:0" if self.on_gpu else "cpu"
        self._ran = []

    def absent(self):
        if not self.on_gpu or self.module.cuda.is_available():
            return ""
        return "PyTorch sees no GPU here: torch.cuda.is_available() is False"

    def convolve(self, shape, kind, image, filter_, gradient):
        torch = self.module
        dtype = getattr(torch, _TYPES[kind], None)
        if dtype is None:
            raise NotSupported("this PyTorch has no torch.%s" % _TYPES[kind])
        self.choose(kind)
        sizes = self._sizes(shape)
        x, w = (
            torch.tensor(numbers, dtype=torch.float32).reshape(size).to(self.device).to(dtype)
            for numbers, size in zip((image, filter_), sizes)
        )
        x.requires_grad_()
        w.requires_grad_()
        with self._watched():
            y = self._function(shape)(x, w, stride=shape.stride)
        g = torch.tensor(gradient, dtype=torch.float32).reshape(y.shape)
        y.backward(g.to(self.device).to(dtype))
        return [one.detach().float().cpu().reshape(-1).tolist() for one in (y, x.grad, w.grad)]

    def words(self, shape, image, filter_):
        x, w = (
            self._from_bytes(data, size) for data, size in zip((image, filter_), self._sizes(shape))
        )
        with self.module.no_grad():
            y = self._function(shape)(x, w, stride=shape.stride).cpu().contiguous()
        return ctypes.string_at(y.data_ptr(), y.numel() * y.element_size())

    def _from_bytes(self, data, size):
        made = self.module.empty(size, dtype=self.module.float32)
        if len(data) != made.numel() * made.element_size():
            raise ValueError("%d bytes are no tensor of %r" % (len(data), size))
        ctypes.memmove(made.data_ptr(), data, len(data))
        return made.to(self.device)

    def _sizes(self, shape):
        return (
            [shape.batch, shape.inputs] + [shape.edge] * shape.dimensions,
            [shape.outputs, shape.inputs] + [shape.kernel] * shape.dimensions,
        )

    def _function(self, shape):
        functional = self.module.nn.functional
        return functional.conv2d if shape.dimensions == 2 else functional.conv3d

    @contextlib.contextmanager
    def _watched(self):
        """Note the names of the operations of the first convolution; old and new PyTorches have this."""
        if self._ran:
            yield
            return
        try:
            profile = self.module.autograd.profiler.profile()
            profile.__enter__()
        except Exception:
            yield
            return
        try:
            yield
        finally:
            with contextlib.suppress(Exception):
                profile.__exit__(None, None, None)
                self._ran = sorted({e.name for e in profile.function_events if "conv" in e.name})

    def ran_by(self):
        return {"operations": self._ran, "cudnn": _of_cudnn(self._ran)} if self._ran else {}

    def without_cudnn(self, tell):
        """The same convolution by PyTorch's own kernels, with cuDNN off."""
        case = convolutions.integers(convolutions.FLAT)
        with tell.trial("cuDNN off", control=True) as trial:
            self._ran = []
            # flags() would set TF32 too, by an interface that new PyTorches do not mix with theirs.
            cudnn = self.module.backends.cudnn
            before = cudnn.enabled
            cudnn.enabled = False
            try:
                results = self.convolve(case.shape, "FP32", *convolutions.floats(case))
            finally:
                cudnn.enabled = before
            told = convolutions.compared(case, convolutions.right(case), results)
            for key, value in sorted(dict(told, **self.ran_by()).items()):
                trial[key] = value

    def cudnn(self):
        """By PyTorch itself, which old wheels have cuDNN inside."""
        if not self.on_gpu:
            return Side.cudnn(self)
        version = self.module.backends.cudnn.version()
        if version is None:
            raise NotSupported("this PyTorch is built without cuDNN")
        told = {"version": _dotted(version)}
        built = asked(lambda: self.module._C._cudnn.getCompileVersion())
        if isinstance(built, tuple):
            told["built_with"] = ".".join(str(part) for part in built)
        elif built:
            told["built_with"] = _dotted(built)
        paths = [path for path in self.cudnn_files() if "/libcudnn.so" in path]
        return dict(told, path=paths[0]) if paths else told

    def flag(self):
        if self._new():
            told = asked(lambda: self.module.backends.cudnn.conv.fp32_precision)
            return "torch.backends.cudnn.conv.fp32_precision is %r" % (told,) if told else ""
        told = asked(lambda: bool(self.module.backends.cudnn.allow_tf32))
        return "" if told == "" else "torch.backends.cudnn.allow_tf32 is %s" % told

    def set_tf32(self, allowed):
        cudnn = self.module.backends.cudnn
        if self._new():
            cudnn.conv.fp32_precision = "tf32" if allowed else "ieee"
        elif hasattr(cudnn, "allow_tf32"):
            cudnn.allow_tf32 = allowed
        else:
            raise NotSupported("this PyTorch has no torch.backends.cudnn.allow_tf32")

    def _new(self):
        """Whether it has the switches of 2.9, which are not to be mixed with those before."""
        try:
            return hasattr(self.module.backends.cudnn.conv, "fp32_precision")
        except Exception:
            return False


def _of_cudnn(names):
    return sum("cudnn" in name for name in names)


def _dotted(number):
    return libraries.cudnn(int(number)) or str(number)
