"""A stand-in for PyTorch, of two or three square matrices: what envcheck asks of the real one, and no more.

It is copied as ``torch/__init__.py`` into a target. Its products go through the libcublas that the loader
finds, its memory and times through libcuda; both are those of tests/world/c.
"""

import ctypes
import math
import os
from types import SimpleNamespace

# On the host no time is to pass for products.
os.environ["SHIM_SLOW"] = "0"
_driver = ctypes.CDLL("libcuda.so.1")
_blas = ctypes.CDLL("libcublas.so.12")
_blas.cublasGemmEx.argtypes = [
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
    ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int,
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_void_p,
    ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_int,
]  # fmt: skip

__version__ = "2.9.0+standin"
version = SimpleNamespace(cuda="12.4")


class dtype:
    def __init__(self, size, letter, number):
        self.size = size
        self.letter = letter  # of memoryview.cast
        self.number = number  # cudaDataType


float32 = dtype(4, "I", 0)
float16 = dtype(2, "H", 2)
bfloat16 = dtype(2, "H", 14)


class Tensor:
    def __init__(self, shape, kind, is_cuda=False, data=None):
        self.shape = shape
        self.dtype = kind
        self.is_cuda = is_cuda
        self.memory = ctypes.create_string_buffer(data or b"", kind.size * self.numel())
        self.random = False
        self.other_way = None  # the same by columns
        self.result = None

    def numel(self):
        return math.prod(self.shape)

    def element_size(self):
        return self.dtype.size

    def data_ptr(self):
        return ctypes.addressof(self.memory)

    def to(self, what):
        if isinstance(what, dtype):
            return randn(self.shape, None, what)
        self.is_cuda = what.startswith("cuda")
        return self

    def cpu(self):
        _check()
        return self

    def contiguous(self):
        return self

    def sum(self):
        return self

    def __add__(self, other):
        return self

    def __float__(self):
        return 16.0

    def by_columns(self):
        """The matrix the other way round, made once; random ones stay as they are."""
        if self.random:
            return self
        if self.other_way is None:
            self.other_way = Tensor(self.shape, self.dtype, True, _transposed(self))
        return self.other_way


def _check():
    if _driver.cuCtxSynchronize():
        raise RuntimeError("CUDA error: an illegal memory access was encountered")


def _transposed(matrix):
    _rows, columns = matrix.shape
    words = memoryview(matrix.memory.raw).cast(matrix.dtype.letter)
    return b"".join(words[i::columns].tobytes() for i in range(columns))


def empty(shape, dtype):
    return Tensor(shape, dtype)


def ones(count, device):
    return Tensor((count,), float32, True)


def randn(shape, device, kind=float32):
    made = Tensor(shape, kind, True, b"\x31\x3d" * (math.prod(shape) * kind.size // 2))
    made.random = True
    return made


_handle = ctypes.c_void_p()
_one, _zero = ctypes.c_float(1), ctypes.c_float(0)


def matmul(left, right):
    if not _handle and _blas.cublasCreate_v2(ctypes.byref(_handle)):
        raise RuntimeError("CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling cublasCreate")
    n, kind = left.shape[0], left.dtype
    made = left.result if left.random and left.result else Tensor(left.shape, kind, True)
    left.result = made
    right = right.by_columns()
    single = 77 if backends.cuda.matmul.allow_tf32 else 69  # FAST_TF32, or PEDANTIC FP32
    status = _blas.cublasGemmEx(
        _handle, 1, 0, n, n, n, ctypes.addressof(_one), left.data_ptr(), kind.number, n,
        right.data_ptr(), kind.number, n, ctypes.addressof(_zero), made.data_ptr(), kind.number, n,
        single if kind is float32 else 68, -1,
    )  # fmt: skip
    if status:
        raise RuntimeError(f"CUDA error: cuBLAS status {status} when calling cublasGemmEx")
    if not left.random:
        made.memory = ctypes.create_string_buffer(_transposed(made), len(made.memory))
    return made


class Event:
    def __init__(self, enable_timing):
        self.handle = ctypes.c_void_p()
        _driver.cuEventCreate(ctypes.byref(self.handle), 0)

    def record(self):
        _driver.cuEventRecord(self.handle, None)

    def synchronize(self):
        _driver.cuEventSynchronize(self.handle)

    def elapsed_time(self, later):
        milliseconds = ctypes.c_float()
        _driver.cuEventElapsedTime(ctypes.byref(milliseconds), self.handle, later.handle)
        return milliseconds.value


def _count():
    number = ctypes.c_int()
    return (
        0 if _driver.cuInit(0) or _driver.cuDeviceGetCount(ctypes.byref(number)) else number.value
    )


def _properties(index):
    device, name, bus = (
        ctypes.c_int(),
        ctypes.create_string_buffer(80),
        ctypes.create_string_buffer(20),
    )
    _driver.cuDeviceGet(ctypes.byref(device), index)
    _driver.cuDeviceGetName(name, 80, device)
    _driver.cuDeviceGetPCIBusId(bus, 20, device)
    values = []
    for attribute in (75, 76, 16):
        value = ctypes.c_int()
        _driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
        values.append(value.value)
    domain, number, slot = bus.value.decode().partition(".")[0].split(":")
    return SimpleNamespace(
        name=name.value.decode(),
        major=values[0],
        minor=values[1],
        multi_processor_count=values[2],
        pci_domain_id=int(domain, 16),
        pci_bus_id=int(number, 16),
        pci_device_id=int(slot, 16),
    )


cuda = SimpleNamespace(
    is_available=lambda: _count() > 0,
    device_count=_count,
    get_device_properties=_properties,
    init=lambda: None,
    synchronize=_check,
    empty_cache=lambda: None,
    Event=Event,
)
backends = SimpleNamespace(
    cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=False)),
    cudnn=SimpleNamespace(allow_tf32=True, version=lambda: 90100),
)
_C = SimpleNamespace(
    _cuda_getArchFlags=lambda: "sm_80 sm_90",
    _cudnn=SimpleNamespace(getCompileVersion=lambda: (9, 1, 0)),
)


def get_float32_matmul_precision():
    return "high" if backends.cuda.matmul.allow_tf32 else "highest"


def is_autocast_enabled():
    return False
