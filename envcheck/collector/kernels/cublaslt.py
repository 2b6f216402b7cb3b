"""cublasLtMatmul for FP8: E4M3 x E4M3 -> FP32, TN, unscaled, without fast accumulation (cuBLASLt 11.11 on).

Numbers and structures are those of cublasLt.h (read in CUDA 12.9).
"""

import ctypes

from .cublas import PLAIN, TRANSPOSED, TYPES, CublasError, call, prepare

TEXT = "cublasLtMatmul TN CUDA_R_8F_E4M3 x CUDA_R_8F_E4M3 -> CUDA_R_32F, CUBLAS_COMPUTE_32F"

_COMPUTE_32F = 68
_TRANSA, _TRANSB = 3, 4  # cublasLtMatmulDescAttributes_t
_MAX_WORKSPACE = 1  # cublasLtMatmulPreferenceAttributes_t: CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES
_NOT_SUPPORTED = 15

_int, _size, _pointer, _address = (
    ctypes.c_int,
    ctypes.c_size_t,
    ctypes.c_void_p,
    ctypes.c_uint64,
)
_SET = (_pointer, _int, _pointer, _size)
_ARGUMENTS = {
    "cublasLtCreate": (_pointer,),
    "cublasLtMatmulDescCreate": (_pointer, _int, _int),
    "cublasLtMatmulDescSetAttribute": _SET,
    "cublasLtMatrixLayoutCreate": (_pointer, _int, _address, _address, ctypes.c_int64),
    "cublasLtMatmulPreferenceCreate": (_pointer,),
    "cublasLtMatmulPreferenceSetAttribute": _SET,
    "cublasLtMatmulAlgoGetHeuristic": (_pointer,) * 7 + (_int, _pointer, _pointer),
    "cublasLtMatmul": (_pointer,) * 3
    + (_address, _pointer) * 2
    + (_pointer,)
    + (_address, _pointer) * 2
    + (_pointer, _address, _size, _pointer),
}


class Algorithm(ctypes.Structure):
    """cublasLtMatmulAlgo_t: opaque."""

    _fields_ = [("data", ctypes.c_uint64 * 8)]


class Heuristic(ctypes.Structure):
    """cublasLtMatmulHeuristicResult_t."""

    _fields_ = [
        ("algorithm", Algorithm),
        ("workspace", _size),
        ("state", _int),
        ("waves", ctypes.c_float),
        ("reserved", _int * 4),
    ]


class CublasLt(object):
    """A handle of a loaded libcublasLt, and the products prepared with it, for the process's life."""

    def __init__(self, lt):
        """lt: the loaded library."""
        self._lt = lt
        self._plans = {}  # n: (operation, layout of A and B, of C, Heuristic)
        prepare(lt, _ARGUMENTS)
        self._handle = self._new("cublasLtCreate")

    def product(self, a, b, c, n, workspace, workspace_size):
        """Start C = A x B of n x n matrices at device pointers, with a workspace on the device.

        The kernel is the one that cuBLASLt's own heuristic names first. Raises CublasError.
        """
        if n not in self._plans:
            self._plans[n] = self._plan(n, workspace_size)
        operation, operand, result, found = self._plans[n]
        one, zero = ctypes.c_float(1), ctypes.c_float(0)
        operands = (ctypes.byref(one), a, operand, b, operand, ctypes.byref(zero), c, result)
        how = (c, result, ctypes.byref(found.algorithm), workspace, found.workspace, None)
        call(self._lt, "cublasLtMatmul", self._handle, operation, *(operands + how))

    def _plan(self, n, workspace_size):
        operation = self._new("cublasLtMatmulDescCreate", _COMPUTE_32F, TYPES["fp32"][0])
        for attribute, value in ((_TRANSA, TRANSPOSED), (_TRANSB, PLAIN)):
            self._set("cublasLtMatmulDescSetAttribute", operation, attribute, _int(value))
        operand, result = (self._layout(name, n) for name in ("e4m3", "fp32"))
        preference = self._new("cublasLtMatmulPreferenceCreate")
        self._set(
            "cublasLtMatmulPreferenceSetAttribute",
            preference,
            _MAX_WORKSPACE,
            ctypes.c_uint64(workspace_size),
        )
        found, count = Heuristic(), _int()
        layouts = (operand, operand, result, result)
        name = "cublasLtMatmulAlgoGetHeuristic"
        answer = (1, ctypes.byref(found), ctypes.byref(count))
        call(self._lt, name, self._handle, operation, *(layouts + (preference,) + answer))
        if count.value < 1 or found.state != 0:
            raise CublasError(name, found.state or _NOT_SUPPORTED)
        return operation, operand, result, found

    def _layout(self, element_type, n):
        number = TYPES[element_type][0]
        return self._new("cublasLtMatrixLayoutCreate", number, n, n, n)

    def _new(self, create, *arguments):
        handle = _pointer()
        call(self._lt, create, ctypes.byref(handle), *arguments)
        return handle

    def _set(self, function, handle, attribute, value):
        size = ctypes.sizeof(value)
        call(self._lt, function, handle, attribute, ctypes.byref(value), size)
