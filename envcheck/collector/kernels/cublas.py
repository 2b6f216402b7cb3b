"""cublasGemmEx for each mode: types, compute types and layouts, cuBLAS 10 to 13.

Numbers are those of cublas_api.h and library_types.h (read in CUDA 12.9 and 13.0; those of CUDA 11 are the
same). All products are TN: A (n x n) row-major, B column-major, the result C column-major.
"""

import ctypes
from collections import namedtuple

STATUS = {
    1: "NOT_INITIALIZED",
    3: "ALLOC_FAILED",
    7: "INVALID_VALUE",
    8: "ARCH_MISMATCH",
    11: "MAPPING_ERROR",
    13: "EXECUTION_FAILED",
    14: "INTERNAL_ERROR",
    15: "NOT_SUPPORTED",
    16: "LICENSE_ERROR",
}
_ALLOC_FAILED = 3
_NOT_HERE = (8, 15)  # the chip, or this library, has no such product

# cudaDataType
TYPES = {
    "fp32": (0, "CUDA_R_32F"),
    "fp16": (2, "CUDA_R_16F"),
    "bf16": (14, "CUDA_R_16BF"),
    "e4m3": (28, "CUDA_R_8F_E4M3"),
    "int8": (3, "CUDA_R_8I"),
    "int32": (10, "CUDA_R_32I"),
}

# How a mode is asked for: the compute type's number and name, the algorithm, and the handle's math mode.
Way = namedtuple("Way", "number name algorithm math")
_DEFAULT, _TENSOR_OP = (-1, 99)  # CUBLAS_GEMM_DEFAULT, CUBLAS_GEMM_DEFAULT_TENSOR_OP
WAYS = {
    "fp32": Way(69, "CUBLAS_COMPUTE_32F_PEDANTIC", _DEFAULT, 0),
    "tf32": Way(77, "CUBLAS_COMPUTE_32F_FAST_TF32", _DEFAULT, 0),
    "fp16": Way(68, "CUBLAS_COMPUTE_32F", _DEFAULT, 0),
    "bf16": Way(68, "CUBLAS_COMPUTE_32F", _DEFAULT, 0),
    "int8": Way(72, "CUBLAS_COMPUTE_32I", _DEFAULT, 0),
}
# Before CUDA 11 the compute type is a cudaDataType; algorithm and math mode ask for Tensor Cores.
WAYS_10 = {
    "fp32": Way(0, "CUDA_R_32F", _DEFAULT, 0),
    "fp16": Way(0, "CUDA_R_32F, CUBLAS_GEMM_DEFAULT_TENSOR_OP", _TENSOR_OP, 1),
    "int8": Way(10, "CUDA_R_32I", _DEFAULT, 0),
}
TRANSPOSED, PLAIN = 1, 0  # cublasOperation_t: CUBLAS_OP_T, CUBLAS_OP_N

_int, _pointer, _address = ctypes.c_int, ctypes.c_void_p, ctypes.c_uint64
_ARGUMENTS = {
    "cublasCreate_v2": (_pointer,),
    "cublasSetStream_v2": (_pointer, _pointer),
    "cublasSetMathMode": (_pointer, _int),
    "cublasGemmEx": (_pointer,)
    + (_int,) * 5
    + (_pointer, _address, _int, _int, _address, _int, _int)
    + (_pointer, _address, _int, _int, _int, _int),
}


class CublasError(Exception):
    """A call that failed, or a function that this library does not have (status None)."""

    def __init__(self, function, status):
        name = "CUBLAS_STATUS_" + STATUS[status] if status in STATUS else "status %s" % status
        Exception.__init__(
            self, "%s: %s" % (function, name if status is not None else "this library has none")
        )
        self.function = function
        self.status = status

    @property
    def out_of_memory(self):
        return self.status == _ALLOC_FAILED

    @property
    def not_supported(self):
        return self.status is None or self.status in _NOT_HERE


def prepare(library, arguments):
    """Tell ctypes the arguments of the functions that a library has: it takes pointers for 32-bit ints."""
    for name, types in arguments.items():
        function = getattr(library, name, None)
        if function is not None:
            function.argtypes = types
            function.restype = _int


def call(library, name, *arguments):
    """Call a function that returns a cublasStatus_t. Raises CublasError."""
    function = getattr(library, name, None)
    status = None if function is None else function(*arguments)
    if status != 0:
        raise CublasError(name, status)


class Cublas(object):
    """A handle of a loaded libcublas, on the current context and the default stream; it lives as long as
    the process, which is there for nothing else.
    """

    def __init__(self, library):
        """library: a cublas_library.Library."""
        self._cublas = library.cublas
        self._ways = WAYS if library.major >= 11 else WAYS_10
        prepare(self._cublas, _ARGUMENTS)
        self._handle = _pointer()
        call(self._cublas, "cublasCreate_v2", ctypes.byref(self._handle))
        call(self._cublas, "cublasSetStream_v2", self._handle, None)

    def has(self, mode):
        """Whether this generation of cuBLAS knows the mode."""
        return mode in self._ways

    def text(self, mode, types):
        """The call in words: "cublasGemmEx TN CUDA_R_16F x CUDA_R_16F -> CUDA_R_32F, CUBLAS_COMPUTE_32F"."""
        given, made = (TYPES[name][1] for name in types)
        return "cublasGemmEx TN %s x %s -> %s, %s" % (given, given, made, self._ways[mode].name)

    def product(self, mode, types, a, b, c, n):
        """Start C = A x B of n x n matrices at device pointers; types: (of A and B, of C)."""
        way = self._ways[mode]
        given, made = (TYPES[name][0] for name in types)
        one, zero = (_scalar(types, value) for value in (1, 0))
        call(self._cublas, "cublasSetMathMode", self._handle, way.math)
        shape = (TRANSPOSED, PLAIN, n, n, n)
        operands = (ctypes.byref(one), a, given, n, b, given, n, ctypes.byref(zero), c, made, n)
        arguments = shape + operands + (way.number, way.algorithm)
        call(self._cublas, "cublasGemmEx", self._handle, *arguments)


def _scalar(types, value):
    """Alpha or beta: of the compute type, which is FP32 but for integers."""
    return ctypes.c_int32(value) if types[1] == "int32" else ctypes.c_float(value)
