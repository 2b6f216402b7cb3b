"""L2 in PyTorch: torch.matmul, its TF32 switch, and CUDA events around it.

Works without NumPy, which PyTorch does not need: a matrix's bytes are copied by their address.
"""

import ctypes

from .adapter import Adapter, Product
from .failures import NotSupported

_TYPES = {"fp32": "float32", "fp16": "float16", "bf16": "bfloat16"}


def adapter(torch, device="cuda:0"):
    return Torch(torch, device)


class Torch(Adapter):
    name = "PyTorch"
    function = "torch.matmul"
    flag = "torch.backends.cuda.matmul.allow_tf32"

    def __init__(self, module, device):
        Adapter.__init__(self, module, device)
        self._on_gpu = device.startswith("cuda")
        self.timer = "cuda-events" if self._on_gpu else "host-clock"

    def absent(self):
        torch = self.module
        if torch.version.cuda is None:
            return "PyTorch sees no GPU here: it was built without CUDA"
        if torch.cuda.is_available():
            return None
        reason = "PyTorch sees no GPU here: torch.cuda.is_available() is False"
        try:
            torch.cuda.init()
        except Exception as error:  # this is where it says why
            reason += " (%s)" % " ".join(str(error).split())
        return reason

    def built_cuda(self):
        return self.module.version.cuda

    def tf32(self):
        try:
            return bool(self.module.backends.cuda.matmul.allow_tf32)
        except AttributeError:  # before 1.7
            pass
        try:
            return self.module.get_float32_matmul_precision() != "highest"
        except AttributeError:
            return None

    def set_tf32(self, allowed):
        matmul = getattr(self.module.backends.cuda, "matmul", None)
        if hasattr(matmul, "allow_tf32"):
            matmul.allow_tf32 = allowed
        else:
            self.module.set_float32_matmul_precision("high" if allowed else "highest")

    def product(self, setting, element_type, shape, data=None):
        dtype = getattr(self.module, _TYPES[element_type], None)
        if dtype is None:
            raise NotSupported("this PyTorch has no torch.%s" % _TYPES[element_type])
        m, n, k = shape
        if data is None:
            matrices = self._random(dtype, (m, k)), self._random(dtype, (k, n))
        else:
            matrices = self._matrix(data[0], dtype, (m, k)), self._matrix(data[1], dtype, (k, n))
        kind = TimedByEvents if self._on_gpu else TorchProduct
        return kind(self, setting, shape, matrices)

    def _random(self, dtype, shape):
        return self.module.randn(shape, device=self.device).to(dtype)

    def _matrix(self, data, dtype, shape):
        matrix = self.module.empty(shape, dtype=dtype)
        if len(data) != matrix.numel() * matrix.element_size():
            raise ValueError("%d bytes are no matrix of %r" % (len(data), shape))
        ctypes.memmove(matrix.data_ptr(), data, len(data))
        return matrix.to(self.device)

    def ping(self):
        one = self.module.ones(8, device=self.device)
        if float((one + one).sum().cpu()) != 16.0:
            raise RuntimeError("eight times 1 + 1 is not 16 on %s" % self.device)

    def release(self):
        if self._on_gpu:
            self.module.cuda.empty_cache()


class TorchProduct(Product):
    def __init__(self, adapter, setting, shape, matrices):
        Product.__init__(self, adapter, setting, shape)
        self._left, self._right = matrices

    def launch(self):
        return self.adapter.module.matmul(self._left, self._right)

    def wait(self, result):
        if result.is_cuda:
            self.adapter.module.cuda.synchronize()

    def data(self, result):
        matrix = result.cpu().contiguous()
        return ctypes.string_at(matrix.data_ptr(), matrix.numel() * matrix.element_size())


class TimedByEvents(TorchProduct):
    def seconds(self, count, meanwhile=None):
        self.adapter.switch(self.setting)
        cuda = self.adapter.module.cuda
        first, last = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        first.record()
        for _ in range(count):
            self.launch()
        last.record()
        if meanwhile is not None:
            meanwhile()
        last.synchronize()
        return first.elapsed_time(last) / 1000.0
